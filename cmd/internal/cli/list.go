package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// ask connects and asks the daemon something that takes no turn.
func ask[T any](ctx context.Context, a *app, question func(context.Context, session) (T, error)) (T, error) {
	var none T
	s, err := a.connect(ctx)
	if err != nil {
		return none, err
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(ctx, askDeadline)
	defer stop()
	return question(ctx, s)
}

func (a *app) resourcesCommand() *cobra.Command {
	var closed bool
	cmd := &cobra.Command{
		Use: "resources", Aliases: []string{"ls"},
		Short: "List the targets",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			records, err := ask(cmd.Context(), a, func(ctx context.Context, s session) ([]protocol.Record, error) { return s.Resources(ctx) })
			if err != nil {
				return err
			}
			if !closed {
				records = slices.DeleteFunc(records, func(r protocol.Record) bool { return r.Lifecycle == protocol.LifecycleClosed })
			}
			if a.json {
				if records == nil {
					records = []protocol.Record{}
				}
				a.emit(records)
				return nil
			}
			for _, r := range records {
				a.record(r)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&closed, "closed", false, "list closed ones too")
	return cmd
}

// record is one target in one line.
func (a *app) record(r protocol.Record) {
	held := ""
	if r.HeldBy != "" {
		held = "held by " + clean(string(r.HeldBy))
	}
	title := ""
	if r.Title != "" {
		title = quoted(r.Title, 60)
	}
	a.line(string(r.ID), fmt.Sprintf("generation %d", r.Generation), string(r.Lifecycle), clean(r.URL), title, held, string(r.Reason), clean(r.Message))
}

func (a *app) historyCommand() *cobra.Command {
	var q protocol.HistoryQuery
	var since time.Duration
	var by string
	cmd := &cobra.Command{
		Use:   "history [ID]",
		Short: "Show what happened, newest last",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 {
				q.Resource = protocol.ResourceID(words[0])
			}
			if q.Limit < 0 || q.Limit > 1000 || since < 0 {
				return usagef("--limit is 1 to 1000, --since a duration such as 10m")
			}
			if since > 0 {
				q.Since = protocol.Time(time.Now().Add(-since).UnixMilli())
			}
			q.Owner = protocol.OwnerID(by)
			entries, err := ask(cmd.Context(), a, func(ctx context.Context, s session) ([]protocol.HistoryEntry, error) { return s.History(ctx, q) })
			if err != nil {
				return err
			}
			if a.json {
				if entries == nil {
					entries = []protocol.HistoryEntry{}
				}
				a.emit(entries)
				return nil
			}
			for _, e := range entries {
				a.line(day(e.At), e.Event, string(e.Resource), fmt.Sprintf("g%d", e.Generation), clean(string(e.Owner)), string(e.Method),
					clean(string(e.OperationID)), string(e.State), string(e.Effect), string(e.Reason), clean(e.Message))
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most so many, 1 to 1000; 100 by default")
	cmd.Flags().DurationVar(&since, "since", 0, "only the last so long, such as 10m")
	cmd.Flags().StringVar(&by, "by", "", "only operations of this owner")
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the daemon is",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := ask(cmd.Context(), a, func(ctx context.Context, s session) (protocol.Status, error) { return s.Status(ctx) })
			if err != nil {
				return err
			}
			if a.json {
				a.emit(st)
				return nil
			}
			a.line("daemon", st.Version, fmt.Sprintf("process %d", st.Process))
			a.line("store", st.Store, clean(st.Message))
			a.line("browser", st.Browser)
			var counts []string
			for _, l := range []protocol.Lifecycle{protocol.LifecycleOpening, protocol.LifecycleRestoring, protocol.LifecycleReady, protocol.LifecycleFailed, protocol.LifecycleClosed} {
				if n := st.Resources[string(l)]; n > 0 {
					counts = append(counts, fmt.Sprintf("%d %s", n, l))
				}
			}
			if len(counts) == 0 {
				counts = []string{"none"}
			}
			a.line("resources", strings.Join(counts, ", "))
			a.line(fmt.Sprintf("late results dropped %d, goroutines %d", st.LateResults, st.Goroutines))
			return nil
		},
	}
}
