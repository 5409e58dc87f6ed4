package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	cdprotocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
)

// pollEvery is how often cookies and titles are looked at while a Page lives: a
// changed cookie is durable within a second.
const pollEvery = 800 * time.Millisecond

// poll looks, while Pages live, for what the browser does not tell by itself.
func (b *browserProcess) poll() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.stopPoll:
			return
		case <-tick.C:
		}
		b.mu.Lock()
		idle := len(b.targets) == 0
		b.mu.Unlock()
		if idle {
			continue
		}
		err := b.syncCookies(b.ctx)
		if err != nil && !failing && b.ctx.Err() == nil {
			b.log.Warn("the cookies cannot be saved; the next success is told", "error", err)
		}
		if err == nil && failing {
			b.log.Info("the cookies are saved again")
		}
		failing = err != nil
		b.lookAtTitles()
	}
}

func (b *browserProcess) stopPolling() { b.pollOnce.Do(func() { close(b.stopPoll) }) }

// lookAtTitles tells incarnations whose target has another title than before;
// the browser has no event for that.
func (b *browserProcess) lookAtTitles() {
	ctx, cancel := context.WithTimeout(b.ctx, callMost)
	defer cancel()
	list, err := cdprotocol.Call(ctx, b.conn.Browser(), target.GetTargets, target.GetTargetsParams{
		Filter: target.Filter{{Type: "page"}, {Exclude: true}},
	})
	if err != nil {
		return
	}
	for _, t := range list.TargetInfos {
		if p := b.incarnationOf(t.TargetID); p != nil {
			p.titleHint(t.Title)
		}
	}
}

// cookieJar is what is saved: the cookies as the browser lists them.
type cookieJar struct {
	Cookies []*network.Cookie `json:"cookies"`
}

// syncCookies saves the cookies if they are others than those saved last.
func (b *browserProcess) syncCookies(ctx context.Context) error {
	store := b.opts.Cookies
	if store == nil {
		return nil
	}
	b.saving.Lock()
	defer b.saving.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callMost)
	defer cancel()
	got, err := cdprotocol.Call(ctx, b.conn.Browser(), storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		return err
	}
	raw, err := jsonv2.Marshal(cookieJar{got.Cookies})
	if err != nil {
		return fmt.Errorf("encoding the cookies: %w", err)
	}
	sum := sha256.Sum256(raw)
	if bytes.Equal(sum[:], b.saved[:]) {
		return nil
	}
	if err := store.Save(raw); err != nil {
		return err
	}
	b.saved = sum
	return nil
}

// restoreCookies sets the saved cookies again if the browser did not end in
// order, before any Page loads: its profile then lacks up to 30 s of them.
func (b *browserProcess) restoreCookies(ctx context.Context) error {
	store := b.opts.Cookies
	if store == nil {
		return nil
	}
	raw, clean, err := store.Load()
	if err != nil {
		return fmt.Errorf("reading the saved cookies: %w", err)
	}
	if err := store.MarkClean(false); err != nil {
		return fmt.Errorf("noting that the browser runs: %w", err)
	}
	if clean || len(raw) == 0 {
		return nil
	}
	var jar cookieJar
	if err := jsonv2.Unmarshal(raw, &jar); err != nil {
		b.log.Warn("the saved cookies do not decode and are left out", "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyMost)
	defer cancel()
	s := b.conn.Browser()
	if _, err := cdprotocol.Call(ctx, s, storage.ClearCookies, storage.ClearCookiesParams{}); err != nil {
		return fmt.Errorf("clearing the cookies of an unclean end: %w", err)
	}
	params := make([]*network.CookieParam, 0, len(jar.Cookies))
	for _, c := range jar.Cookies {
		params = append(params, cookieParam(c))
	}
	if _, err := cdprotocol.Call(ctx, s, storage.SetCookies, storage.SetCookiesParams{Cookies: params}); err == nil {
		b.log.Info("cookies set again after an unclean end", "cookies", len(params))
		return nil
	}
	// One that the browser does not take refuses them all: set them one by one.
	refused := 0
	for _, c := range params {
		if _, err := cdprotocol.Call(ctx, s, storage.SetCookies, storage.SetCookiesParams{Cookies: []*network.CookieParam{c}}); err != nil {
			refused++
		}
	}
	b.log.Warn("some cookies were not taken again after an unclean end", "cookies", len(params), "refused", refused)
	return ctx.Err()
}

// cookieParam turns a listed cookie into one to set.
func cookieParam(c *network.Cookie) *network.CookieParam {
	p := &network.CookieParam{
		Name: c.Name, Value: c.Value, Path: c.Path, Secure: c.Secure, HTTPOnly: c.HTTPOnly,
		SameSite: c.SameSite, Priority: c.Priority, SourceScheme: c.SourceScheme, SourcePort: c.SourcePort,
		PartitionKey: c.PartitionKey,
	}
	if !c.Session && c.Expires > 0 {
		p.Expires = cdprotocol.TimeSinceEpoch(c.Expires)
	}
	if len(c.Domain) > 0 && c.Domain[0] == '.' {
		p.Domain = c.Domain
		return p
	}
	// A cookie of one host alone: given a domain it would become one of its subdomains too.
	scheme := "http"
	if c.Secure {
		scheme = "https"
	}
	p.URL = scheme + "://" + hostOf(c.Domain) + c.Path
	return p
}

func hostOf(domain string) string {
	for i := range len(domain) {
		if domain[i] == ':' { // an IPv6 address
			return "[" + domain + "]"
		}
	}
	return domain
}
