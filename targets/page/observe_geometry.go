package page

import (
	"context"
	"errors"
	"fmt"
	"math"

	"reins/protocol"
)

// geometry is what coordinates depend on: the viewport, how far the main frame
// is scrolled, the device pixel ratio and the document.
type geometry struct {
	W   float64 `json:"w"`
	H   float64 `json:"h"`
	X   float64 `json:"x"`
	Y   float64 `json:"y"`
	DPR float64 `json:"dpr"`
	Doc string  `json:"doc"`
	// Title and URL are not part of the geometry; they are asked in the same breath.
	Title string `json:"title"`
	URL   string `json:"url"`
}

// String is the form that goes with a token.
func (g geometry) String() string {
	return fmt.Sprintf("%gx%g@%g+%g,%g#%s", g.W, g.H, g.DPR, g.X, g.Y, g.Doc)
}

var errNoDocument = errors.New("the page has no document that answers")

// onto takes over what the document says of itself at this moment, which the
// browser's events may tell later. The browser's error page says nothing true.
func (g geometry) onto(page *protocol.Page, s *secrets, f *frame) {
	if f != nil && !f.failed {
		page.Title, page.URL = clip(s.scrub(g.Title), maxTitle), s.scrub(cleanURL(g.URL))
	}
}

// mainFrame is the main frame, or nil while there is none.
func (p *incarnation) mainFrame() *frame {
	if fs := p.frames(); len(fs) > 0 && fs[0].main {
		return fs[0]
	}
	return nil
}

// measure asks the main frame for the geometry and remembers it.
func (p *incarnation) measure(ctx context.Context) (geometry, error) {
	var g geometry
	f := p.mainFrame()
	if f == nil {
		return g, errNoDocument
	}
	one, cancel := f.patience(ctx)
	defer cancel()
	if err := f.world(one, "geometry", &g); err != nil {
		return g, err
	}
	p.remember(g)
	return g, nil
}

func (p *incarnation) remember(g geometry) {
	a := p.acting()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.geometry = g.String()
}

// knownGeometry is the newest geometry that was measured.
func (p *incarnation) knownGeometry() string {
	a := p.acting()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.geometry
}

// roundBox keeps a hundredth of a pixel.
func roundBox(b [4]float64) [4]float64 {
	for i, v := range b {
		b[i] = math.Round(v*100) / 100
	}
	return b
}
