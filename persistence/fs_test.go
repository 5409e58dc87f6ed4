package persistence

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// newRealFS is the real file system under another name: Options.FS that is not nil.
func newRealFS() vfs.FS { return struct{ vfs.FS }{vfs.Default} }

// hookFS lets a test see and spoil what is written.
type hookFS struct {
	vfs.FS
	// before is asked before each write, sync and creation; an error is what comes of it.
	before func(op, name string, bytes int) error
	// behind is told of what was written.
	behind func(op, name string, bytes int)
}

func (h *hookFS) do(op, name string, bytes int, f func() error) error {
	if h.before != nil {
		if err := h.before(op, name, bytes); err != nil {
			return err
		}
	}
	err := f()
	if err == nil && h.behind != nil {
		h.behind(op, name, bytes)
	}
	return err
}

func (h *hookFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = h.do("create", name, 0, func() error {
		f, err = h.FS.Create(name, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h, name}, nil
}

func (h *hookFS) ReuseForWrite(from, name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = h.do("create", name, 0, func() error {
		f, err = h.FS.ReuseForWrite(from, name, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h, name}, nil
}

func (h *hookFS) Remove(name string) error {
	size := 0
	if info, err := h.FS.Stat(name); err == nil {
		size = int(info.Size())
	}
	return h.do("remove", name, size, func() error { return h.FS.Remove(name) })
}

type hookFile struct {
	vfs.File
	h    *hookFS
	name string
}

func (f *hookFile) Write(p []byte) (n int, err error) {
	err = f.h.do("write", f.name, len(p), func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *hookFile) Sync() error { return f.h.do("sync", f.name, 0, f.File.Sync) }

func (f *hookFile) SyncData() error { return f.h.do("sync", f.name, 0, f.File.SyncData) }

func (f *hookFile) Preallocate(int64, int64) error { return nil }

// quotaFS is a disk of so many bytes on the real one.
type quotaFS struct {
	hookFS
	mu    sync.Mutex
	total int64
	used  int64
}

func newQuotaFS(below vfs.FS, total int64) *quotaFS {
	q := &quotaFS{total: total}
	q.hookFS = hookFS{FS: below, before: q.before, behind: q.behind}
	return q
}

func (q *quotaFS) before(op, _ string, bytes int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+int64(bytes) > q.total && op != "remove" || op == "create" && q.used >= q.total {
		return syscall.ENOSPC
	}
	return nil
}

func (q *quotaFS) behind(op, _ string, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch op {
	case "write":
		q.used += int64(bytes)
	case "remove":
		q.used -= int64(bytes)
	}
}

func (q *quotaFS) free(string) (uint64, uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return uint64(max(0, q.total-q.used)), uint64(q.total), nil
}

// syncCounter counts the syncs of logs.
type syncCounter struct {
	vfs.FS
	syncs atomic.Int64
}

func (c *syncCounter) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, k)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	c *syncCounter
}

func (f *countedFile) Sync() error {
	f.c.syncs.Add(1)
	return f.File.Sync()
}

func (f *countedFile) SyncData() error {
	f.c.syncs.Add(1)
	return f.File.SyncData()
}
