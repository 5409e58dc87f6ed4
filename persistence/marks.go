package persistence

import (
	"encoding/binary"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Mark says "a byte may have left". It lies in memory that survives the death
// of the process, but not of the machine.
type Mark interface {
	// Set is called before the first byte of input. It takes no lock, does not
	// fail and may be called again, also after the operation ended.
	Set()
}

// The state of a slot, in the two low bits of its word; the rest is the number
// of its user. A word of 0 is a free slot.
const (
	slotAdmitted   = 0 // nothing was sent
	slotDispatched = 1 // a byte may have left
	slotWithdrawn  = 2 // the admission was answered with an error
	slotDisowned   = 3 // the outcome was answered as not stored
)

const (
	slots       = 4096 // operations under way at a time
	marksMagic  = "reinsmk1"
	marksHeader = 4096 // bytes: magic, life, length of the boot's id, the boot's id
	marksBytes  = marksHeader + 8*slots
)

// marks are the slots of one opening of the store.
type marks struct {
	life    uint64
	words   []uint64 // read and written atomically
	mapping []byte   // what words lies in; nil: ordinary memory
	path    string
	lost    atomic.Bool

	mu   sync.Mutex
	free []int  // guarded by mu
	seq  uint64 // guarded by mu
}

// newMarks makes marks on a mapping, or in ordinary memory if it is nil.
func newMarks(mapping []byte, path string, life uint64) *marks {
	m := &marks{life: life, mapping: mapping, path: path, free: make([]int, slots)}
	if mapping == nil {
		m.words = make([]uint64, slots)
	} else {
		m.words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[marksHeader])), slots)
	}
	for i := range m.free {
		m.free[i] = slots - 1 - i
	}
	return m
}

// take gives a free slot to an operation.
func (m *marks) take() (slotRef, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) == 0 {
		return slotRef{}, false
	}
	m.seq++
	s := slotRef{Life: m.life, Index: m.free[len(m.free)-1], Seq: m.seq}
	m.free = m.free[:len(m.free)-1]
	m.guard(func() { atomic.StoreUint64(&m.words[s.Index], s.Seq<<2|slotAdmitted) })
	return s, true
}

// release makes the slot of an operation that has its outcome free again.
func (m *marks) release(s slotRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.guard(func() { atomic.StoreUint64(&m.words[s.Index], 0) })
	m.free = append(m.free, s.Index)
}

// state notes how an operation went that has no stored outcome.
func (m *marks) state(s slotRef, state uint64) {
	m.guard(func() { atomic.StoreUint64(&m.words[s.Index], s.Seq<<2|state) })
}

// mark is a slot as the one who sends sees it.
type mark struct {
	m *marks
	s slotRef
}

// Set implements Mark. A slot that has another user by now is left alone.
func (k mark) Set() {
	k.m.guard(func() {
		atomic.CompareAndSwapUint64(&k.m.words[k.s.Index], k.s.Seq<<2|slotAdmitted, k.s.Seq<<2|slotDispatched)
	})
}

// guard writes to the mapping. Where its file was cut short, or its file system
// has no room for the page, the fault takes neither the process nor the truth:
// the file goes, and without it recovery takes every operation for uncertain.
func (m *marks) guard(write func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil && m.lost.CompareAndSwap(false, true) {
			removeMarks(m.path)
		}
	}()
	write()
}

// marksHead is what tells one boot and one life from another.
func marksHead(boot string, life uint64) []byte {
	b := append(make([]byte, 0, marksHeader), marksMagic...)
	b = binary.BigEndian.AppendUint64(b, life)
	b = binary.BigEndian.AppendUint16(b, uint16(len(boot)))
	return append(b, boot...)
}

// oldMarks are the marks that the last life left.
type oldMarks struct {
	life  uint64
	words []uint64 // none: another boot, or no marks at all
}

// decodeMarks reads the file of marks. Of another boot, or a file that is not
// whole, nothing is known.
func decodeMarks(b []byte, boot string) oldMarks {
	const fixed = len(marksMagic) + 10
	if len(b) != marksBytes || boot == "" || !strings.HasPrefix(string(b[:fixed]), marksMagic) {
		return oldMarks{}
	}
	n := int(binary.BigEndian.Uint16(b[fixed-2:]))
	if n > marksHeader-fixed || string(b[fixed:fixed+n]) != boot {
		return oldMarks{}
	}
	old := oldMarks{life: binary.BigEndian.Uint64(b[len(marksMagic):]), words: make([]uint64, slots)}
	for i := range old.words {
		old.words[i] = binary.NativeEndian.Uint64(b[marksHeader+8*i:])
	}
	return old
}

// of is the state of an operation's slot; known is false where the slot proves nothing.
func (o oldMarks) of(s *slotRef) (state uint64, known bool) {
	if s == nil || s.Life != o.life || s.Index >= len(o.words) || o.words[s.Index]>>2 != s.Seq {
		return 0, false
	}
	return o.words[s.Index] & 3, true
}
