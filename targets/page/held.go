package page

import "sync"

// heldKey is a key that is down.
type heldKey struct {
	key  string // as DOM's key
	code string // as DOM's code
	vk   int64  // Windows virtual key code
}

// heldButton is a mouse button that is down, and where it was pressed.
type heldButton struct {
	button string // left, right, middle
	x, y   float64
}

// held tracks what a resource's input holds down. It outlives an incarnation,
// so that the next one can release it.
type held struct {
	mu      sync.Mutex
	buttons []heldButton
	keys    []heldKey
}

// heldInput is what was held at one moment.
type heldInput struct {
	buttons []heldButton
	keys    []heldKey
}

// press notes that a button is about to go down; call it before the bytes leave.
func (h *held) press(button string, x, y float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buttons = append(h.dropButton(button), heldButton{button, x, y})
}

// release notes that a button is up; call it after the answer.
func (h *held) release(button string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buttons = h.dropButton(button)
}

func (h *held) dropButton(button string) []heldButton {
	kept := h.buttons[:0:0]
	for _, b := range h.buttons {
		if b.button != button {
			kept = append(kept, b)
		}
	}
	return kept
}

// keyDown notes that a key is about to go down; call it before the bytes leave.
func (h *held) keyDown(k heldKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys = append(h.dropKey(k), k)
}

// keyUp notes that a key is up; call it after the answer.
func (h *held) keyUp(k heldKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys = h.dropKey(k)
}

func (h *held) dropKey(k heldKey) []heldKey {
	kept := h.keys[:0:0]
	for _, o := range h.keys {
		if o != k {
			kept = append(kept, o)
		}
	}
	return kept
}

// snapshot is what is held now.
func (h *held) snapshot() heldInput {
	h.mu.Lock()
	defer h.mu.Unlock()
	return heldInput{append([]heldButton(nil), h.buttons...), append([]heldKey(nil), h.keys...)}
}
