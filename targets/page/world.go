package page

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/runtime"
)

//go:embed js/*.js
var worldFiles embed.FS

// worldParts is the order of the parts; each uses what stands before it.
var worldParts = []string{
	"base", "roles", "nodes", "secrets", "states", "walk", "find", "aim", "watch", "edit", "rest", "api",
}

// worldScript is what runs in the isolated world "reins" of every frame before
// the page's own scripts. The page sees nothing of it, and running it twice in
// one document changes nothing.
var worldScript = func() string {
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\nif (globalThis.__reins && globalThis.__reins.document === document) return;\n")
	for _, name := range worldParts {
		part, err := worldFiles.ReadFile("js/" + name + ".js")
		if err != nil {
			panic("page: part of the world missing from the binary: " + name)
		}
		b.Write(part)
	}
	b.WriteString("})();\n")
	return b.String()
}()

// errDialog ends what waits for a page whose main thread stands still because a
// dialog is open.
var errDialog = errors.New("a dialog is open: answer it with the method dialog first")

// acting is what looking and acting keep of one incarnation.
type acting struct {
	secrets *secrets
	reports <-chan bindingCall // of the isolated worlds, for secrets

	seen atomic.Uint64 // observations made

	mu       sync.Mutex            // guards what follows
	owners   map[*frame]frameOwner // of frames that are listed
	geometry string                // the newest known
}

// frameOwner is the element of the parent's document that shows a frame.
type frameOwner struct {
	handle runtime.RemoteObjectID
	elemID string
}

// acting returns the state, made at the first use.
func (p *incarnation) acting() *acting {
	p.actOnce.Do(func() {
		reports, _ := p.subscribeBinding()
		p.act = &acting{secrets: newSecrets(), reports: reports, owners: map[*frame]frameOwner{}}
	})
	return p.act
}

// report is one message of the isolated world.
type report struct {
	Secret string `json:"secret"`
	Watch  string `json:"w"`
	Type   string `json:"t"`
	Hit    bool   `json:"hit"`
}

// secrets returns the known secrets after taking in what the worlds reported.
func (p *incarnation) secrets() *secrets {
	a := p.acting()
	for {
		select {
		case c, ok := <-a.reports:
			if !ok {
				return a.secrets
			}
			var r report
			if json.Unmarshal([]byte(c.payload), &r) == nil && r.Secret != "" {
				a.secrets.add(r.Secret)
			}
		default:
			return a.secrets
		}
	}
}

// world calls a function of the isolated world in a frame.
func (f *frame) world(ctx context.Context, name string, out any, args ...any) error {
	return f.call(ctx, "(...a) => __reins."+name+"(...a)", out, args...)
}

// untilDialog returns a context that also ends, with the cause [errDialog], when
// a dialog opens. end stops the watch.
func (p *incarnation) untilDialog(ctx context.Context) (scoped context.Context, end func()) {
	scoped, cancel := context.WithCancelCause(ctx)
	opened := p.dialogSignal()
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		select {
		case <-opened:
			cancel(errDialog)
		case <-scoped.Done():
		}
	}()
	return scoped, func() {
		cancel(context.Canceled)
		watch.Wait()
	}
}

// dialogCut reports whether err (or the end of ctx) is due to a dialog.
func dialogCut(ctx context.Context, err error) bool {
	return errors.Is(err, errDialog) || (err != nil && errors.Is(context.Cause(ctx), errDialog))
}

// sketch is an element in a few words, for a message.
type sketch struct {
	Tag  string `json:"tag"`
	Role string `json:"role"`
	Name string `json:"name"`
}

// words says what an element is: dialog "Delete a row" (dialog#dlg).
func (s *sketch) words() string {
	if s == nil {
		return "something"
	}
	out := s.Role
	if out == "generic" || out == "" {
		out = "an element"
	}
	if s.Name != "" {
		name, _ := capRunes(s.Name, 80)
		out += " \"" + name + "\""
	}
	return out + " (" + s.Tag + ")"
}
