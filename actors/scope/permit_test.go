package scope

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"reins/protocol"
	"reins/targets"
)

// countingMark counts how often it was set.
type countingMark struct{ n atomic.Int64 }

func (m *countingMark) Set() { m.n.Add(1) }

// TestPermitMarksOnce: the mark is set before the first byte, once, and not by asking whether to begin.
func TestPermitMarksOnce(t *testing.T) {
	mark := &countingMark{}
	passed := 0
	p := &permit{mark: mark, pass: func(protocol.Step) { passed++ }}
	if err := p.Begin(0); err != nil || p.used() || mark.n.Load() != 0 {
		t.Fatal("beginning is no input", err)
	}
	for range 3 {
		if err := p.Use(); err != nil {
			t.Fatal(err)
		}
	}
	if !p.used() || mark.n.Load() != 1 || passed != 1 {
		t.Fatalf("marked %d times, passed %d", mark.n.Load(), passed)
	}
}

// TestPermitRevoked: after a revocation nothing begins and nothing is written;
// the first reason stays.
func TestPermitRevoked(t *testing.T) {
	p := &permit{pass: func(protocol.Step) {}}
	p.revoke(protocol.ReasonCancelled)
	p.revoke(protocol.ReasonFenced)
	if err := p.Use(); !errors.Is(err, targets.ErrRevoked) {
		t.Fatal(err)
	}
	if err := p.Begin(1); !errors.Is(err, targets.ErrRevoked) {
		t.Fatal(err)
	}
	if p.used() {
		t.Fatal("a revoked permit was used")
	}
}

// TestPermitRace: whatever runs at the same time, no use begins after revoke returned.
func TestPermitRace(t *testing.T) {
	for range 200 {
		p := &permit{pass: func(protocol.Step) {}}
		var revoked atomic.Bool
		var late atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					after := revoked.Load()
					if p.Use() == nil && after {
						late.Add(1)
					}
				}
			})
		}
		p.revoke(protocol.ReasonCancelled)
		revoked.Store(true)
		wg.Wait()
		if late.Load() > 0 {
			t.Fatalf("%d uses after the revocation", late.Load())
		}
	}
}

// TestPermitOnceHasTeeth: the planted bug asks once an operation, and so gives
// input after a revocation.
func TestPermitOnceHasTeeth(t *testing.T) {
	p := &permit{once: true, pass: func(protocol.Step) {}}
	if err := p.Use(); err != nil {
		t.Fatal(err)
	}
	p.revoke(protocol.ReasonCancelled)
	if p.Use() != nil || p.Begin(1) != nil {
		t.Fatal("the planted bug does nothing")
	}
}
