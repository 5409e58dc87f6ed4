package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// look has the flags of every read.
type look struct {
	generation uint64
	deadline   time.Duration
}

func (l *look) add(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&l.generation, "generation", 0, "generation meant; any by default")
	cmd.Flags().DurationVar(&l.deadline, "deadline", 0, "how long it may take, such as 10s")
}

// read asks once and returns the answer.
func (a *app) read(ctx context.Context, l look, id string, m protocol.Method, args json.RawMessage) (protocol.ReadReply, error) {
	ms, err := milliseconds(l.deadline)
	if err != nil {
		return protocol.ReadReply{}, err
	}
	s, err := a.connect(ctx)
	if err != nil {
		return protocol.ReadReply{}, err
	}
	defer s.Close()
	limit := max(protocol.ReadDeadline, l.deadline)
	if info, ok := m.Info(); ok && l.deadline == 0 {
		limit = info.Run
	}
	ctx, stop := context.WithTimeout(ctx, limit+answerGrace)
	defer stop()
	reply, err := s.Read(ctx, protocol.ReadRequest{
		Resource: protocol.ResourceID(id), Generation: protocol.Generation(l.generation), Method: m, Arguments: args, DeadlineMS: ms,
	})
	if err != nil {
		return reply, err
	}
	if reply.Problem != nil {
		return reply, reply.Problem
	}
	return reply, nil
}

func (a *app) observeCommand() *cobra.Command {
	var l look
	var image string
	flags := []short{
		{"find", "find", "only controls whose name, value or text has this"},
		{"limit", "limit", "at most so many controls, 1 to 5000"},
		{"offset", "offset", "leave out so many controls first"},
	}
	cmd := &cobra.Command{
		Use:   "observe ID",
		Short: "List the controls and texts of a target, with a token for the next write",
		Args:  exactly(1, "one ID"),
	}
	l.add(cmd)
	addShort(cmd, flags)
	cmd.Flags().StringVar(&image, "image", "", "save a picture to this file too")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		b, err := newArguments(protocol.MethodObserve)
		if err != nil {
			return err
		}
		if err := b.take(cmd, flags); err != nil {
			return err
		}
		if image != "" {
			if err := b.set("image", "true"); err != nil {
				return err
			}
		}
		args, err := b.raw()
		if err != nil {
			return err
		}
		reply, err := a.read(cmd.Context(), l, words[0], protocol.MethodObserve, args)
		if err != nil {
			return err
		}
		if image != "" {
			if err := save(image, reply.ImageBytes); err != nil {
				return err
			}
		}
		if a.json {
			a.emit(reply.Observation)
		} else if reply.Observation != nil {
			a.observation(reply.Observation)
		}
		return nil
	}
	return cmd
}

func (a *app) screenshotCommand() *cobra.Command {
	var l look
	var quality int
	cmd := &cobra.Command{
		Use:   "screenshot ID FILE",
		Short: "Save a picture of a target as .png or .jpg",
		Args:  exactly(2, "ID and FILE"),
	}
	l.add(cmd)
	cmd.Flags().IntVar(&quality, "quality", 0, "quality of a .jpg, 1 to 100")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		arguments := protocol.ScreenshotArguments{Format: "png", Quality: quality}
		if name := strings.ToLower(words[1]); strings.HasSuffix(name, ".jpg") || strings.HasSuffix(name, ".jpeg") {
			arguments.Format = "jpeg"
		}
		args, err := json.Marshal(arguments)
		if err != nil {
			return err
		}
		reply, err := a.read(cmd.Context(), l, words[0], protocol.MethodScreenshot, args)
		if err != nil {
			return err
		}
		if err := save(words[1], reply.ImageBytes); err != nil {
			return err
		}
		switch o := reply.Observation; {
		case a.json:
			a.emit(o)
		case o != nil && o.Image != nil:
			a.line("saved", clean(words[1]), fmt.Sprintf("%d×%d, %d bytes", o.Image.Width, o.Image.Height, len(reply.ImageBytes)))
			a.line("token", string(o.Token))
		default:
			a.line("saved", clean(words[1]))
		}
		return nil
	}
	return cmd
}

// save writes a picture; only its owner may read it.
func save(name string, image []byte) error {
	if len(image) == 0 {
		return &protocol.Problem{Reason: protocol.ReasonCaptureFailed, Message: "the answer came without a picture; try again"}
	}
	if err := os.WriteFile(name, image, 0o600); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder of %s does not exist; make it first", clean(name))
		}
		return fmt.Errorf("the picture could not be saved: %w", err)
	}
	return nil
}
