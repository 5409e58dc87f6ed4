package supervisors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"reins/actors/index"
	"reins/actors/scope"
	"reins/protocol"
	"reins/targets"
)

// effect is one input that a page of the fake browser really took.
type effect struct {
	resource protocol.ResourceID
	gen      protocol.Generation
	op       protocol.OperationID
}

// browser is a host with pages in memory. Its ledger lives outside of everything
// that is killed.
type browser struct {
	mu       sync.Mutex
	down     chan struct{} // nil: it is not up
	pages    map[protocol.ResourceID]*fakePage
	ledger   []effect
	starts   int
	destroys int
	attaches map[protocol.ResourceID]int

	// what goes wrong; each may be nil
	startErr  func() error
	attachErr func(protocol.ResourceID) error
	barrier   func(protocol.ResourceID) error
	onRun     func(context.Context, targets.Call) // called before the input is given
}

// fakePage is a tab: it lives on between incarnations.
type fakePage struct {
	gen protocol.Generation // of the session that may write
	inc *fakeIncarnation    // that session
}

// end ends the page's session, with last words if there are any. mu is held.
func (p *fakePage) end(last *targets.Event) {
	i := p.inc
	if i == nil {
		return
	}
	p.inc = nil
	if last != nil {
		select {
		case i.events <- *last:
		default:
		}
	}
	close(i.over)
	close(i.events)
}

func newBrowser() *browser {
	return &browser{pages: map[protocol.ResourceID]*fakePage{}, attaches: map[protocol.ResourceID]int{}}
}

// Start implements targets.Host.
func (b *browser) Start(context.Context) (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.startErr != nil {
		if err := b.startErr(); err != nil {
			return nil, err
		}
	}
	if b.down == nil {
		b.starts++
		b.down = make(chan struct{})
	}
	return b.down, nil
}

// kill ends the browser and every page in it.
func (b *browser) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down == nil {
		return
	}
	close(b.down)
	for _, p := range b.pages {
		p.end(&targets.Event{Kind: targets.EventCrashed, Reason: protocol.ReasonBackendUnavailable, Message: "the browser ended"})
	}
	b.down, b.pages = nil, map[protocol.ResourceID]*fakePage{}
}

// Stop implements targets.Host.
func (b *browser) Stop(context.Context) error {
	b.kill()
	return nil
}

// Destroy implements targets.Host.
func (b *browser) Destroy(_ context.Context, r protocol.ResourceID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.destroys++
	if p := b.pages[r]; p != nil {
		p.end(nil)
		delete(b.pages, r)
	}
	return nil
}

// Attach implements targets.Host.
func (b *browser) Attach(_ context.Context, s targets.Spec) (targets.Incarnation, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attaches[s.Resource]++
	if b.down == nil {
		return nil, false, errors.New("the browser is down")
	}
	if b.attachErr != nil {
		if err := b.attachErr(s.Resource); err != nil {
			return nil, false, err
		}
	}
	p, loaded := b.pages[s.Resource], false
	if p != nil {
		p.end(nil)
	}
	if p == nil || s.Fresh {
		p, loaded = &fakePage{}, true
		b.pages[s.Resource] = p
	}
	if p.gen > s.Generation {
		return nil, false, fmt.Errorf("g%d was attached before g%d", p.gen, s.Generation)
	}
	p.gen = s.Generation
	p.inc = &fakeIncarnation{browser: b, page: p, spec: s, events: make(chan targets.Event, 8), over: make(chan struct{})}
	return p.inc, loaded, nil
}

// fakeIncarnation is a session with a page.
type fakeIncarnation struct {
	browser *browser
	page    *fakePage
	spec    targets.Spec
	events  chan targets.Event
	over    chan struct{}
}

func (i *fakeIncarnation) Prepare(context.Context, targets.Call) (targets.Prepared, *protocol.Problem) {
	return targets.Prepared{}, nil
}

// Run gives one input under its permit, if the session may still write.
func (i *fakeIncarnation) Run(ctx context.Context, c targets.Call, _ targets.Prepared, permit targets.Permit) targets.Outcome {
	b := i.browser
	if b.onRun != nil {
		b.onRun(ctx, c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := permit.Begin(0); err != nil {
		return targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonCancelled, LastDone: -1}
	}
	select {
	case <-i.over:
		return targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonFenced, LastDone: -1}
	default:
	}
	if b.pages[i.spec.Resource] != i.page {
		return targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonFenced, LastDone: -1}
	}
	if err := permit.Use(); err != nil {
		return targets.Outcome{State: protocol.StateRefused, Reason: protocol.ReasonCancelled, LastDone: -1}
	}
	b.ledger = append(b.ledger, effect{i.spec.Resource, i.spec.Generation, c.Operation})
	return targets.Outcome{State: protocol.StateApplied, Effect: protocol.EffectConfirmed, Begun: 1}
}

func (i *fakeIncarnation) Read(context.Context, protocol.ReadRequest) (protocol.ReadReply, string) {
	return protocol.ReadReply{Observation: &protocol.Observation{}}, "1x1"
}

func (i *fakeIncarnation) Frames(ctx context.Context, _ int, _ func(protocol.FrameHeader, []byte)) error {
	<-ctx.Done()
	return nil
}

// Revoke ends the session's right to write, under the mutex of the writes.
func (i *fakeIncarnation) Revoke(context.Context) error {
	i.browser.mu.Lock()
	defer i.browser.mu.Unlock()
	if i.page.inc == i {
		i.page.end(nil)
	}
	return nil
}

func (i *fakeIncarnation) Barrier(context.Context) error {
	if f := i.browser.barrier; f != nil {
		return f(i.spec.Resource)
	}
	return nil
}

func (i *fakeIncarnation) Close(ctx context.Context) error {
	_ = i.Revoke(ctx)
	return i.browser.Destroy(ctx, i.spec.Resource)
}

func (i *fakeIncarnation) Snapshot() protocol.Page { return protocol.Page{URL: "http://example.test/"} }

func (i *fakeIncarnation) Events() <-chan targets.Event { return i.events }

// crash says that the session is over by itself.
func (i *fakeIncarnation) crash() {
	i.browser.mu.Lock()
	defer i.browser.mu.Unlock()
	if i.page.inc == i {
		i.page.end(&targets.Event{Kind: targets.EventCrashed, Reason: protocol.ReasonRendererCrashed, Message: "planted"})
	}
}

// memory is a store in memory, as strict as the real one.
type memory struct {
	mu      sync.Mutex
	gens    map[protocol.ResourceID]protocol.Generation
	records map[protocol.ResourceID]protocol.Record
	reserve map[protocol.ResourceID]protocol.Epoch
	epochs  map[protocol.ResourceID]protocol.Epoch // the highest admitted
	ops     map[index.Key]*admitted
	faults  []string // what no store should ever be asked
	full    bool
}

type admitted struct {
	hash [32]byte
	r    *protocol.Receipt
}

var errFull = errors.New("no disk")

func newMemory() *memory {
	return &memory{gens: map[protocol.ResourceID]protocol.Generation{}, records: map[protocol.ResourceID]protocol.Record{},
		reserve: map[protocol.ResourceID]protocol.Epoch{}, epochs: map[protocol.ResourceID]protocol.Epoch{}, ops: map[index.Key]*admitted{}}
}

func (m *memory) wrong(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

func (m *memory) RaiseGeneration(r protocol.ResourceID) (protocol.Generation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return 0, errFull
	}
	m.gens[r]++
	return m.gens[r], nil
}

func (m *memory) PutRecord(r protocol.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errFull
	}
	if old := m.records[r.ID]; old.Lifecycle == protocol.LifecycleClosed && r.Lifecycle != protocol.LifecycleClosed {
		m.wrong("%s was closed and is stored as %s", r.ID, r.Lifecycle)
	}
	m.records[r.ID] = r
	return nil
}

func (m *memory) History(protocol.HistoryEntry) {}

func (m *memory) Admit(op scope.Op, gen protocol.Generation, epoch, reserve protocol.Epoch) (scope.Mark, *protocol.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return nil, &protocol.Problem{Reason: protocol.ReasonStorageUnavailable}
	}
	k, r := index.Key(op.Key), op.Request.Resource
	if m.ops[k] != nil {
		m.wrong("%s was admitted twice", k.ID)
	}
	if gen > m.gens[r] {
		m.wrong("%s was admitted under g%d, %d are stored", k.ID, gen, m.gens[r])
	}
	if epoch <= m.epochs[r] {
		m.wrong("%s was admitted at epoch %d, after %d", k.ID, epoch, m.epochs[r])
	}
	m.epochs[r] = epoch
	m.reserve[r] = max(m.reserve[r], reserve)
	m.ops[k] = &admitted{hash: op.Hash}
	return nil, nil
}

func (m *memory) Finish(op scope.Op, r protocol.Receipt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errFull
	}
	a := m.ops[index.Key(op.Key)]
	switch {
	case a == nil:
		a = &admitted{hash: op.Hash}
		m.ops[index.Key(op.Key)] = a
	case a.r != nil:
		m.wrong("%s was %s and is stored as %s", op.Key.ID, a.r.State, r.State)
		return errors.New("it has an outcome")
	}
	a.r = &r
	return nil
}

func (m *memory) Reserve(r protocol.ResourceID, upTo protocol.Epoch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errFull
	}
	m.reserve[r] = max(m.reserve[r], upTo)
	return nil
}

func (m *memory) Operation(o protocol.OwnerID, id protocol.OperationID) (index.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.ops[index.Key{Owner: o, ID: id}]
	if a == nil {
		return index.Stored{}, nil
	}
	return index.Stored{Known: true, Hash: a.hash, Receipt: a.r}, nil
}

func (m *memory) Entries(protocol.HistoryQuery) ([]protocol.HistoryEntry, error) { return nil, nil }
func (m *memory) Health() (protocol.Reason, string)                              { return "", "" }

func (m *memory) load() ([]Retained, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Retained
	for id, r := range m.records {
		r.Generation = m.gens[id]
		all = append(all, Retained{Record: r, Reserve: m.reserve[id]})
	}
	slices.SortFunc(all, func(a, b Retained) int { return int(a.Record.Created - b.Record.Created) })
	return all, nil
}

// silent publishes nothing.
type silent struct{}

func (silent) Cue(protocol.Cue)                   {}
func (silent) Frame(protocol.FrameHeader, []byte) {}
func (silent) Record(protocol.Record)             {}

func (silent) Demand(string, protocol.Demand) {}
