package page

import (
	"strings"
	"sync"
)

// maxTail is how much of the browser's own words is kept.
const maxTail = 64 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > maxTail {
		b = b[len(b)-maxTail:]
	}
	if over := len(t.buf) + len(b) - maxTail; over > 0 {
		t.buf = append(t.buf[:0:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// last returns the last lines.
func (t *tail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
