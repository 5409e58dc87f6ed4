package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// framesTTL is how long one demand for frames lives; it is renewed at half of it.
const framesTTL = 5 * time.Second

func (a *app) watchCommand() *cobra.Command {
	var frames string
	var width, keep int
	cmd := &cobra.Command{
		Use:   "watch [ID]",
		Short: "Show what operations do as they do it, until interrupted",
		Long: "Show what operations do as they do it, one line a cue, until interrupted.\n" +
			"With --frames the pictures of the target's preview are saved too; they are captured only while somebody watches.",
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			id := protocol.ResourceID("")
			if len(words) == 1 {
				id = protocol.ResourceID(words[0])
			}
			if frames != "" && id == "" {
				return usagef("--frames needs the ID of one target")
			}
			if keep < 1 || keep > 100_000 {
				return usagef("--keep is 1 to 100000")
			}
			return a.watch(cmd.Context(), id, frames, width, keep)
		},
	}
	cmd.Flags().StringVar(&frames, "frames", "", "save frames into this folder")
	cmd.Flags().IntVar(&width, "width", 0, "widest frame wanted in pixels, 64 to 4096; 640 by default")
	cmd.Flags().IntVar(&keep, "keep", 500, "keep so many frames, the newest")
	return cmd
}

func (a *app) watch(ctx context.Context, id protocol.ResourceID, frames string, width, keep int) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	w := watcher{cue: a.cue, record: a.changed, down: a.broken, up: a.watching}
	if frames != "" {
		if err := os.MkdirAll(frames, 0o700); err != nil {
			return fmt.Errorf("the folder for the frames cannot be made: %w", err)
		}
		box := &frameBox{dir: frames, keep: keep}
		w.frame = func(h protocol.FrameHeader, image []byte) { a.frame(box, h, image) }
		renewed := make(chan error, 1)
		ctx, stop := context.WithCancelCause(ctx)
		go func() {
			renewed <- demand(ctx, stop, s, protocol.Demand{Resource: id, Width: width, TTLMS: framesTTL.Milliseconds()})
		}()
		err = s.Watch(ctx, id, w)
		stop(nil)
		if bad := <-renewed; bad != nil {
			return bad
		}
		return ended(err)
	}
	return ended(s.Watch(ctx, id, w))
}

// ended takes an interrupt as the ordinary end of watching.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// demand asks for frames again and again until ctx ends; a refusal ends the watching.
func demand(ctx context.Context, stop context.CancelCauseFunc, s session, d protocol.Demand) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("asking for frames broke: %v", r)
		}
		stop(err)
	}()
	renew := time.NewTicker(framesTTL / 2)
	defer renew.Stop()
	for {
		once, done := context.WithTimeout(ctx, framesTTL)
		err := s.Demand(once, d)
		done()
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-renew.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// frameBox is a folder of frames that keeps the newest.
type frameBox struct {
	dir   string
	keep  int
	names []string
	bad   bool
}

func (b *frameBox) put(h protocol.FrameHeader, image []byte) (string, error) {
	kind := "jpg"
	if h.MediaType == "image/png" {
		kind = "png"
	}
	id := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, string(h.Resource))
	name := filepath.Join(b.dir, fmt.Sprintf("%s-g%d-%06d.%s", id, h.Generation, h.Sequence, kind))
	if err := os.WriteFile(name, image, 0o600); err != nil {
		return "", err
	}
	b.names = append(b.names, name)
	if len(b.names) > b.keep {
		os.Remove(b.names[0]) // somebody else may have taken it away
		b.names = b.names[1:]
	}
	return name, nil
}

func (a *app) frame(b *frameBox, h protocol.FrameHeader, image []byte) {
	name, err := b.put(h, image)
	switch {
	case err != nil && !b.bad:
		fmt.Fprintln(a.err, "reins: a frame could not be saved:", err)
		b.bad = true
	case err != nil:
	case a.json:
		a.emit(map[string]any{"frame": h, "file": name})
	default:
		a.line(clock(h.Captured), "frame", fmt.Sprintf("g%d %d", h.Generation, h.Sequence), fmt.Sprintf("%d×%d", h.Width, h.Height), clean(name))
	}
}

func (a *app) cue(c protocol.Cue) {
	if a.json {
		a.emit(map[string]any{"cue": c})
		return
	}
	where := ""
	if c.Element != nil {
		where = clean(c.Element.Role) + " " + quoted(c.Element.Name, 60)
	}
	if c.Point != nil {
		where += fmt.Sprintf(" at %.0f,%.0f", c.Point.X, c.Point.Y)
	}
	a.line(clock(c.At), string(c.Resource), fmt.Sprintf("g%d", c.Generation), fmt.Sprintf("%-12s", c.Phase), clean(c.Words),
		strings.TrimSpace(where), clean(string(c.OperationID)), string(c.State), string(c.Reason))
}

// watching says that nothing is missed from here on; to standard error, as it is no answer.
func (a *app) watching() { fmt.Fprintln(a.err, "reins: watching; interrupt to end") }

func (a *app) broken(p *protocol.Problem) { fmt.Fprintln(a.err, "reins: "+problemLine(p)) }

func (a *app) changed(r protocol.Record) {
	if a.json {
		a.emit(map[string]any{"record": r})
		return
	}
	a.line(clock(r.Changed), string(r.ID), fmt.Sprintf("g%d", r.Generation), clean(r.State), clean(r.URL), string(r.Reason))
}
