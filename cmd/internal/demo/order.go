package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"reins/protocol"
)

// cookieSync is when a cookie is certain to have been stored by the daemon: it
// does so within a second of each change.
const cookieSync = 1500 * time.Millisecond

func byRole(role, name string) *protocol.Locator { return &protocol.Locator{Role: role, Name: name} }

func byLabel(label string) *protocol.Locator { return &protocol.Locator{Label: label} }

func inPayment(l *protocol.Locator) *protocol.Locator {
	l.Frame = "payment"
	return l
}

// choose opens the shop, waits for the list that comes late, and takes a notebook.
func (j *job) choose(ctx context.Context) error {
	j.say.part("Choosing from a list that loads late")
	open := protocol.OpenArguments{Kind: protocol.KindPage, URL: j.url, Viewport: &protocol.Viewport{Width: 1280, Height: 800, Scale: 1}}
	receipt, err := j.act(ctx, "open the shop", protocol.MethodOpen, open, ActionList)
	if err != nil {
		return err
	}
	j.page, j.gen = receipt.Resource, receipt.Generation
	j.loads["/"]++
	if err := j.waitFor(ctx, "the list arrives", protocol.WaitArguments{Text: fmt.Sprintf("%d products in stock", len(products))}); err != nil {
		return err
	}
	click := protocol.ClickArguments{Locator: byRole("button", "Add Field notebook to basket")}
	if _, err := j.act(ctx, "put a notebook into the basket", protocol.MethodClick, click, ActionAdd); err != nil {
		return err
	}
	j.loads["/checkout"]++
	j.loads["/pay"]++
	j.added = time.Now()
	return j.waitFor(ctx, "the checkout page is there", protocol.WaitArguments{URL: "/checkout"})
}

// typed is what the job enters and has not saved when the browser dies.
var typed = []struct {
	label, text string
	frame       bool
}{
	{"Name", "Ada Byron", false},
	{"E-mail", "ada@example.org", false},
	{"Quantity", "2", false},
	{"Card number", "4242 4242 4242 4242", true},
	{"Expiry", "12/29", true},
	{"Security code", "123", true},
}

// fillIn enters everything and saves nothing yet.
func (j *job) fillIn(ctx context.Context) error {
	j.say.part("Filling in the form and the payment frame of another site")
	if err := j.waitFor(ctx, "the payment frame is there", protocol.WaitArguments{Locator: inPayment(byLabel("Card number"))}); err != nil {
		return err
	}
	return j.enter(ctx, "")
}

// enter fills every field. token is the observation that the first write rests on, if one is needed.
func (j *job) enter(ctx context.Context, token protocol.Token) error {
	for _, f := range typed {
		l, where := byLabel(f.label), ""
		if f.frame {
			l, where = inPayment(l), " in the payment frame"
		}
		r := protocol.Request{Method: protocol.MethodFill, Generation: j.gen, Observation: token}
		if _, err := j.actWith(ctx, "fill "+f.label+where, r, protocol.FillArguments{Locator: l, Text: f.text}); err != nil {
			return err
		}
		token = ""
	}
	express := &protocol.Locator{Role: "radio", Name: "Express", Contains: true}
	_, err := j.act(ctx, "choose express delivery", protocol.MethodClick, protocol.ClickArguments{Locator: express})
	return err
}

// kill ends the browser by SIGKILL and waits until the page is back.
func (j *job) kill(ctx context.Context) error {
	j.say.part("Killing the browser")
	synced := time.NewTimer(time.Until(j.added.Add(cookieSync)))
	defer synced.Stop()
	select {
	case <-synced.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	pid, err := browserOf(j.daemon.pid())
	if err != nil {
		return err
	}
	if err := killProcess(pid); err != nil {
		return fmt.Errorf("the browser could not be killed: %w", err)
	}
	j.say.note("SIGKILL to the browser, process %d, with the form filled in and nothing saved", pid)
	return j.back(ctx, time.Now())
}

// back waits for the page's next generation and looks at what was restored.
func (j *job) back(ctx context.Context, killed time.Time) error {
	before := j.gen
	var r protocol.Record
	err := until(ctx, 45*time.Second, "the return of the page", func(ctx context.Context) (ok bool, err error) {
		r, err = j.record(ctx)
		return err == nil && r.Generation > before && r.Lifecycle == protocol.LifecycleReady, err
	})
	if err != nil {
		return fmt.Errorf("%w; its record says: generation %d %s %s %s", err, r.Generation, r.State, r.Reason, r.Message)
	}
	if r.Generation != before+1 {
		return fmt.Errorf("the page came back as generation %d, not %d", r.Generation, before+1)
	}
	if want := j.url + "checkout"; r.URL != want {
		return fmt.Errorf("the page came back at %s, not at %s", r.URL, want)
	}
	j.gen = r.Generation
	j.loads["/checkout"]++
	j.loads["/pay"]++
	j.say.note("restored %s as generation %d at %s after %d ms", r.ID, r.Generation, r.URL, time.Since(killed).Milliseconds())
	return j.oldHandle(ctx, before)
}

// oldHandle shows that a request for the generation that died is refused.
func (j *job) oldHandle(ctx context.Context, old protocol.Generation) error {
	const what = "place the order with the old handle"
	r := protocol.Request{OperationID: j.say.nextID(), Resource: j.page, Generation: old, Method: protocol.MethodClick, Arguments: []byte(`{"locator":{"role":"button","name":"Place order"}}`)}
	receipt, err := j.client.Do(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	j.say.receipt(what, receipt)
	if receipt.State != protocol.StateRefused || receipt.Reason != protocol.ReasonStaleGeneration {
		return fmt.Errorf("%s: it was %s %s, it must be refused stale_generation", what, receipt.State, receipt.Reason)
	}
	return nil
}

// fillInAgain sees what survived and what did not, and does the lost part anew.
func (j *job) fillInAgain(ctx context.Context) error {
	j.say.part("Looking at what came back")
	if err := j.verify(ctx, "the basket survived, by its cookie", protocol.VerifyArguments{Assert: "text", Text: "Field notebook"}); err != nil {
		return err
	}
	empty := ""
	if err := j.verify(ctx, "what was typed and not saved is gone", protocol.VerifyArguments{Assert: "value", Locator: byLabel("Name"), Equals: &empty}); err != nil {
		return err
	}
	if err := j.waitFor(ctx, "the payment frame is back", protocol.WaitArguments{Locator: inPayment(byLabel("Card number"))}); err != nil {
		return err
	}
	seen, err := j.look(ctx, "observe, as a restart demands", protocol.MethodObserve, protocol.ObserveArguments{})
	if err != nil {
		return err
	}
	if seen.Observation == nil {
		return fmt.Errorf("the observation came empty")
	}
	j.say.part("Filling in again what was lost")
	return j.enter(ctx, seen.Observation.Token)
}

// buy saves the form, pays and places the order.
func (j *job) buy(ctx context.Context) error {
	j.say.part("Paying and placing the order")
	save := protocol.ClickArguments{Locator: byRole("button", "Save details")}
	if _, err := j.act(ctx, "save the details", protocol.MethodClick, save, ActionForm); err != nil {
		return err
	}
	if err := j.waitFor(ctx, "the shop has the details", protocol.WaitArguments{Text: "Details saved"}); err != nil {
		return err
	}
	pay := protocol.ClickArguments{Locator: inPayment(byRole("button", "Use this card"))}
	if _, err := j.act(ctx, "pay in the payment frame", protocol.MethodClick, pay, ActionPayment); err != nil {
		return err
	}
	paid := &protocol.Locator{Text: "Card ending in 4242", Contains: true}
	if err := j.waitFor(ctx, "the card is taken", protocol.WaitArguments{Locator: inPayment(paid)}); err != nil {
		return err
	}
	place := protocol.ClickArguments{Locator: byRole("button", "Place order")}
	receipt, err := j.act(ctx, "place the order; a dialog opens", protocol.MethodClick, place)
	if err != nil {
		return err
	}
	if receipt.Reason != protocol.ReasonDialogOpen {
		return fmt.Errorf("the click on Place order ended with %q; a dialog should be open", receipt.Reason)
	}
	if d := receipt.Page; d != nil && d.Dialog != nil {
		j.say.note("the dialog asks: %s", d.Dialog.Message)
	}
	if _, err := j.act(ctx, "accept the dialog", protocol.MethodDialog, protocol.DialogArguments{Accept: true}, ActionConfirm); err != nil {
		return err
	}
	if err := j.waitFor(ctx, "the order page is there", protocol.WaitArguments{Text: "Thank you, Ada Byron"}); err != nil {
		return err
	}
	j.loads["/orders"]++
	total := sum(products[0], Details{Quantity: 2, Delivery: "express"})
	want := money(total)
	return j.verify(ctx, "the order page shows the total", protocol.VerifyArguments{Assert: "text", Locator: &protocol.Locator{TestID: "total"}, Equals: &want})
}

// fetch downloads the invoice and takes the picture of the last page.
func (j *job) fetch(ctx context.Context) error {
	j.say.part("Fetching the invoice")
	link := protocol.DownloadArguments{Locator: byRole("link", "Download invoice")}
	receipt, err := j.act(ctx, "download the invoice", protocol.MethodDownload, link, ActionInvoice)
	if err != nil {
		return err
	}
	d := receipt.Download
	if d == nil || d.State != "completed" {
		return fmt.Errorf("the receipt names no completed download: %+v", d)
	}
	invoice := filepath.Join(j.cfg.OutDir, "invoice.pdf")
	sha, err := copyFile(d.Path, invoice)
	if err != nil {
		return err
	}
	if sha != d.SHA256 {
		return fmt.Errorf("the receipt says SHA-256 %s, the file has %s", d.SHA256, sha)
	}
	j.say.invoice = sha
	picture := filepath.Join(j.cfg.OutDir, "order.png")
	if _, err := j.picture(ctx, picture); err != nil {
		return fmt.Errorf("the picture of the last page: %w", err)
	}
	j.say.note("invoice %s, %d bytes, SHA-256 %s", invoice, d.Bytes, sha)
	j.say.note("picture of the last page: %s", picture)
	return nil
}

// copyFile copies a file and returns the SHA-256 of what was copied.
func copyFile(from, to string) (string, error) {
	f, err := os.Open(from)
	if err != nil {
		return "", fmt.Errorf("the downloaded file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return "", fmt.Errorf("the downloaded file: %w", err)
	}
	return sum256(b), os.WriteFile(to, b, 0o644)
}
