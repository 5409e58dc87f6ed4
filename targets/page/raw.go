package page

import (
	"context"
	"encoding/json"

	cdprotocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"reins/targets/page/internal/cdp"
)

// Raw is a bare DevTools session on a Page of a browser that is started exactly
// as a Host's is: no lane, no permit, no log. It is the alternative that
// benchmarks name; nothing that serves requests makes one.
type Raw struct {
	s *cdp.Session
}

// OpenRaw makes a tab in the running browser and attaches to it. The host knows
// nothing of the tab; it ends with the browser.
func (h *Host) OpenRaw(ctx context.Context, url string) (*Raw, error) {
	b := h.browser()
	if b == nil {
		return nil, unavailable("the browser is not up")
	}
	made, err := cdprotocol.Call(ctx, b.conn.Browser(), target.CreateTarget, target.CreateTargetParams{URL: url, NewWindow: ptr(true), Background: ptr(true)})
	if err != nil {
		return nil, err
	}
	at, err := cdprotocol.Call(ctx, b.conn.Browser(), target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: ptr(true)})
	if err != nil {
		return nil, err
	}
	return &Raw{s: b.conn.Session(at.SessionID)}, nil
}

// Call sends one command and decodes its result into out, unless that is nil.
func (r *Raw) Call(ctx context.Context, method string, params any, out any) error {
	var result json.RawMessage
	if err := r.s.Call(ctx, method, params, &result); err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(result, out)
}
