package persistence

import (
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// freezer is the file system a database stands on. At the first write that
// fails it freezes: nothing reaches the disk any more, as if the process had
// died at that moment, which is what the database recovers from when it is
// opened anew. It cannot be told the error itself: of a failing log it makes the
// end of the process ("unlock of unlocked mutex" cannot even be recovered from),
// of a failing flush a loop without a pause. What is written after goes into
// memory, so that it can still read what it has and can be closed.
//
// Who writes asks [freezer.cause] behind each write: a write counts only if it is
// nil. The next database is opened only when [freezer.still] says that no
// operation that began before the freeze is still at the disk.
type freezer struct {
	vfs.FS
	writing  sync.RWMutex // held for reading by each operation that changes the disk
	after    vfs.FS       // what is created after the freeze, in memory
	frozen   atomic.Pointer[error]
	onFreeze func() // does not block
	restrict func(name string)
}

func newFreezer(below vfs.FS, restrict func(name string), onFreeze func()) *freezer {
	return &freezer{FS: below, after: vfs.NewMem(), onFreeze: onFreeze, restrict: restrict}
}

// freeze ends all writing, and reports whether it was this that did. The first
// cause stays.
func (z *freezer) freeze(cause error) bool {
	first := z.frozen.CompareAndSwap(nil, &cause)
	if first {
		z.onFreeze()
	}
	return first
}

// still reports that nothing reaches the disk any more. It is asked after the freeze.
func (z *freezer) still() bool {
	if !z.writing.TryLock() {
		return false
	}
	z.writing.Unlock()
	return true
}

// onDisk does an operation that changes the disk, unless it is frozen. frozen:
// it was, or it is by this operation, whose error is err.
func (z *freezer) onDisk(op func() error) (frozen bool, err error) {
	z.writing.RLock()
	defer z.writing.RUnlock()
	if z.cause() != nil {
		return true, nil
	}
	err = op()
	return z.note(err), err
}

// cause is why it is frozen, nil while it is not.
func (z *freezer) cause() error {
	if p := z.frozen.Load(); p != nil {
		return *p
	}
	return nil
}

// note freezes if an operation failed in a way that leaves open what is on the
// disk, and reports whether it is frozen now.
func (z *freezer) note(err error) bool {
	if err == nil || os.IsNotExist(err) || os.IsExist(err) {
		return false
	}
	z.freeze(err)
	return true
}

// mustGoOn says for which files the database does not survive an error: the log,
// the list of its files, and folders. A table that cannot be written it writes again.
func mustGoOn(name string) bool {
	name = path.Base(name)
	return strings.HasSuffix(name, ".log") || strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "marker.")
}

func (z *freezer) inMemory(name string) (vfs.File, error) {
	if err := z.after.MkdirAll(z.after.PathDir(name), 0o700); err != nil {
		return nil, err
	}
	return z.after.Create(name, vfs.WriteCategoryUnspecified)
}

// Create implements vfs.FS.
func (z *freezer) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return z.make(name, func() (vfs.File, error) { return z.FS.Create(name, c) })
}

// ReuseForWrite implements vfs.FS.
func (z *freezer) ReuseForWrite(from, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return z.make(name, func() (vfs.File, error) { return z.FS.ReuseForWrite(from, name, c) })
}

// OpenReadWrite implements vfs.FS.
func (z *freezer) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return z.make(name, func() (vfs.File, error) { return z.FS.OpenReadWrite(name, c, opts...) })
}

// make opens a file for writing: on the disk, or in memory after the freeze.
func (z *freezer) make(name string, open func() (vfs.File, error)) (f vfs.File, err error) {
	frozen, err := z.onDisk(func() error {
		f, err = open()
		return err
	})
	switch {
	case !frozen:
		return z.made(name, f, err)
	case err != nil && !mustGoOn(name):
		return nil, err
	}
	return z.inMemory(name)
}

func (z *freezer) made(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	z.restrict(name)
	return &frozenFile{File: f, z: z, goOn: mustGoOn(name)}, nil
}

// OpenDir implements vfs.FS.
func (z *freezer) OpenDir(name string) (vfs.File, error) {
	f, err := z.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &frozenFile{File: f, z: z, goOn: true}, nil
}

// Open implements vfs.FS.
func (z *freezer) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if z.cause() != nil {
		if f, err := z.after.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	return z.FS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (z *freezer) Stat(name string) (vfs.FileInfo, error) {
	if z.cause() != nil {
		if info, err := z.after.Stat(name); err == nil {
			return info, nil
		}
	}
	return z.FS.Stat(name)
}

// List implements vfs.FS.
func (z *freezer) List(dir string) ([]string, error) {
	names, err := z.FS.List(dir)
	if err == nil && z.cause() != nil {
		if more, err := z.after.List(dir); err == nil {
			names = append(names, more...)
		}
	}
	return names, err
}

// Remove implements vfs.FS.
func (z *freezer) Remove(name string) error {
	return z.change(func(fs vfs.FS) error { return fs.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (z *freezer) RemoveAll(name string) error {
	return z.change(func(fs vfs.FS) error { return fs.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (z *freezer) Rename(from, to string) error {
	return z.change(func(fs vfs.FS) error { return fs.Rename(from, to) })
}

// Link implements vfs.FS.
func (z *freezer) Link(from, to string) error {
	return z.change(func(fs vfs.FS) error { return fs.Link(from, to) })
}

// MkdirAll implements vfs.FS.
func (z *freezer) MkdirAll(dir string, perm os.FileMode) error {
	return z.change(func(fs vfs.FS) error { return fs.MkdirAll(dir, perm) })
}

// change does a change of names: on the disk, or what it can of it in memory.
func (z *freezer) change(do func(vfs.FS) error) error {
	frozen, err := z.onDisk(func() error { return do(z.FS) })
	if frozen {
		_ = do(z.after) // a name that is only on the disk keeps what it had at the freeze
		return nil
	}
	return err
}

// Lock implements vfs.FS. The store holds the lock over all openings.
func (z *freezer) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements vfs.FS.
func (z *freezer) Unwrap() vfs.FS { return z.FS }

// frozenFile is a file that was opened for writing before the freeze.
type frozenFile struct {
	vfs.File
	z    *freezer
	goOn bool
}

// do performs one operation that writes. After the freeze it is said to have
// succeeded where the database could not go on without it.
func (f *frozenFile) do(op func() error) error {
	frozen, err := f.z.onDisk(op)
	switch {
	case !frozen:
		return err
	case f.goOn:
		return nil
	case err == nil:
		return f.z.cause()
	}
	return err
}

func (f *frozenFile) Write(p []byte) (n int, err error) {
	err = f.do(func() error {
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// WriteAt implements vfs.File.
func (f *frozenFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do(func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Sync implements vfs.File.
func (f *frozenFile) Sync() error { return f.do(f.File.Sync) }

// SyncData implements vfs.File.
func (f *frozenFile) SyncData() error { return f.do(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *frozenFile) SyncTo(length int64) (full bool, err error) {
	err = f.do(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate implements vfs.File. It only makes things faster: an error of it
// says nothing of what is on the disk.
func (f *frozenFile) Preallocate(offset, length int64) error {
	f.z.writing.RLock()
	defer f.z.writing.RUnlock()
	if f.z.cause() != nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Close implements vfs.File.
func (f *frozenFile) Close() error {
	err := f.File.Close()
	if err != nil && (f.z.note(err) || f.z.cause() != nil) && f.goOn {
		return nil
	}
	return err
}
