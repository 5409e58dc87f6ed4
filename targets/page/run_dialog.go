package page

import (
	"context"
	"time"

	"github.com/chromedp/cdproto"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
	"reins/targets/page/internal/cdp"
)

// nextDialog is how long after an answer the page may take to show that the
// dialog is gone, or that another one opens.
const nextDialog = 2 * time.Second

// dialogLook is how often the state is looked at until then: there is no signal
// for a dialog that closes.
const dialogLook = 5 * time.Millisecond

// answer answers the open dialog and waits for what the page does next: a
// further dialog is named, and otherwise the page settles.
func (r *run) answer() (step, error) {
	before := r.p.dialog()
	if before == nil {
		return step{}, problem(protocol.ReasonNoDialog, "no dialog is open any more; nothing was answered")
	}
	params := &cdpage.HandleJavaScriptDialogParams{Accept: r.pre.dialog.Accept}
	switch {
	case r.pre.dialog.Text != nil:
		params.PromptText = *r.pre.dialog.Text
	case before.Type == "prompt":
		params.PromptText = before.Default // what a person who just agrees would send
	}
	pend, err := r.start(cdproto.CommandPageHandleJavaScriptDialog, params)
	if err != nil {
		return step{}, err
	}
	r.firstWritten()
	r.lastWritten()
	if err := r.wait(pend, nil); err != nil {
		return step{}, err
	}
	if err := r.closed(before); err != nil {
		return step{}, err
	}
	r.seam(protocol.StepAcknowledged)
	// From here on a further dialog ends the waiting, as in any operation.
	outer := r.ctx
	scoped, end := r.p.untilDialog(outer)
	r.ctx = scoped
	defer func() { end(); r.ctx = outer }()
	if r.p.dialog() == nil && r.p.loaded(r.ctx, loadBound) {
		r.atRest = r.settled()
	}
	return applied(protocol.EffectConfirmed), nil
}

// closed waits until the browser says that this dialog is gone; another one may
// stand in its place already.
func (r *run) closed(before *protocol.Dialog) error {
	ctx, cancel := context.WithTimeout(r.ctx, nextDialog)
	defer cancel()
	look := time.NewTicker(dialogLook)
	defer look.Stop()
	for r.p.dialog() == before {
		select {
		case <-look.C:
		case <-r.p.ended():
			return cdp.ErrDetached
		case <-ctx.Done():
			return context.Cause(r.ctx) // nil: the answer was taken, whatever is shown
		}
	}
	return nil
}
