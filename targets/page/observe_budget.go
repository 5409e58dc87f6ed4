package page

import (
	"encoding/json"
	"fmt"
	"strings"

	"reins/protocol"
)

// spareBytes is kept of the limit for what others add: token, epoch, image.
const spareBytes = 1 << 10

// budget fits an observation into its size.
type budget struct {
	o             *protocol.Observation
	limit, offset int // of controls, as asked; 0: what fits

	skipped, shown, shownText int
}

func (b *budget) most() int {
	if b.limit > 0 {
		return protocol.ObservationMax - spareBytes
	}
	return protocol.ObservationBytes - spareBytes
}

// fill adds controls from the offset on, then text, while there is room. A page
// of a long list has no text.
func (b *budget) fill(controls []protocol.Control, text []string) {
	room := b.most() - sizeOf(b.o)
	b.skipped = min(b.offset, len(controls))
	for _, c := range controls[b.skipped:] {
		n := sizeOf(c) + 1
		if n > room || (b.limit > 0 && b.shown >= b.limit) {
			break
		}
		room -= n
		b.o.Controls = append(b.o.Controls, c)
		b.shown++
	}
	if b.skipped > 0 {
		return
	}
	for _, t := range text {
		n := sizeOf(t) + 1
		if n > room {
			break
		}
		room -= n
		b.o.Text = append(b.o.Text, t)
		b.shownText++
	}
}

// omitted says what was left out and how to get it.
func (b *budget) omitted(controls, text int, unseen []string) *protocol.Omitted {
	om := &protocol.Omitted{Controls: controls - b.shown, Text: text - b.shownText}
	var how []string
	if b.skipped+b.shown < controls {
		how = append(how, fmt.Sprintf("offset %d continues the list of %d controls; find keeps those that contain some words; limit raises the size", b.skipped+b.shown, controls))
	} else if b.skipped > 0 {
		how = append(how, "offset 0 begins the list")
	}
	if om.Text > 0 && b.skipped == 0 {
		how = append(how, "find keeps the lines that contain some words")
	}
	if len(unseen) > 0 {
		how = append(how, "these frames did not answer in time, observe again: "+strings.Join(unseen, ", "))
	}
	if len(how) == 0 {
		return nil
	}
	om.How = strings.Join(how, "; ")
	return om
}

func sizeOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return protocol.ObservationMax // cannot be sent
	}
	return len(b)
}
