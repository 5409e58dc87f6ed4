package chaos

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"reins/protocol"
)

// Row is what came of all runs of one step.
type Row struct {
	Step       string
	Runs       int
	Said       map[string]int // of the operations under test
	Happened   int            // of these, at least in part
	Duplicates int
	Violations int
	Orphans    int
	Broken     int // runs that did not go as planned
	Took       time.Duration
}

// Summary gathers results by their step.
type Summary struct{ rows []*Row }

// Add counts a run.
func (s *Summary) Add(step string, r Result) {
	i := slices.IndexFunc(s.rows, func(row *Row) bool { return row.Step == step })
	if i < 0 {
		i = len(s.rows)
		s.rows = append(s.rows, &Row{Step: step, Said: map[string]int{}})
	}
	row := s.rows[i]
	row.Runs++
	row.Said[r.Said]++
	row.Duplicates += r.Duplicates
	if r.Happened > 0 {
		row.Happened++
	}
	row.Violations += len(r.Violations)
	row.Orphans += r.Orphans
	row.Took += r.Took
	if r.Err != nil {
		row.Broken++
	}
}

// words are the columns of what was said, in the order of their truth.
var words = []string{"unknown", string(protocol.StateCancelled), string(protocol.StateUncertain), string(protocol.StateFailed), string(protocol.StateApplied)}

// Print writes a table with one line a step and one for all.
func (s *Summary) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "step\truns\t")
	for _, word := range words {
		fmt.Fprintf(t, "%s\t", word)
	}
	fmt.Fprintln(t, "happened\tduplicates\tviolations\torphans\tbroken\tseconds\t")
	all := &Row{Step: "all", Said: map[string]int{}}
	for _, row := range s.rows {
		row.print(t)
		all.Runs += row.Runs
		all.Duplicates += row.Duplicates
		all.Happened += row.Happened
		all.Violations += row.Violations
		all.Orphans += row.Orphans
		all.Broken += row.Broken
		all.Took += row.Took
		for word, n := range row.Said {
			all.Said[word] += n
		}
	}
	all.print(t)
	return t.Flush()
}

func (r *Row) print(w io.Writer) {
	fmt.Fprintf(w, "%s\t%d\t", r.Step, r.Runs)
	for _, word := range words {
		fmt.Fprintf(w, "%d\t", r.Said[word])
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.0f\t\n", r.Happened, r.Duplicates, r.Violations, r.Orphans, r.Broken, r.Took.Seconds())
}
