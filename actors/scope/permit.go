package scope

import (
	"fmt"
	"sync"

	"reins/protocol"
	"reins/targets"
)

// Mark is what a permit sets in shared memory before the first byte leaves, so
// that a later process can tell "nothing was sent" from "something may have been".
type Mark interface{ Set() }

// permit is the right of one running operation to give input.
type permit struct {
	mu      sync.Mutex
	revoked error
	marked  bool
	mark    Mark
	asked   bool
	once    bool // planted bug: asked once an operation instead of at each primitive
	pass    func(protocol.Step)
}

// Use implements targets.Permit.
func (p *permit) Use() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked != nil && !(p.once && p.asked) {
		return p.revoked
	}
	p.asked = true
	if !p.marked {
		p.marked = true
		if p.mark != nil {
			p.mark.Set()
		}
		p.pass(protocol.StepMarked)
	}
	return nil
}

// Begin implements targets.Permit.
func (p *permit) Begin(int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.once && p.asked {
		return nil
	}
	return p.revoked
}

// revoke ends the right: after it returned no further primitive starts.
func (p *permit) revoke(why protocol.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked == nil {
		p.revoked = fmt.Errorf("%w (%s)", targets.ErrRevoked, why)
	}
}

// used reports whether a byte may have left.
func (p *permit) used() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marked
}
