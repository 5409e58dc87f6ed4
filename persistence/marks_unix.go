//go:build unix

package persistence

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// openMarks reads the marks of the last life and maps new ones. The new file
// takes the place of the old one only by keep, after what the old one tells is stored.
func openMarks(dir string) (m *marks, old oldMarks, keep func() error, err error) {
	boot, path := bootID(), filepath.Join(dir, "marks")
	if b, err := os.ReadFile(path); err == nil {
		old = decodeMarks(b, boot)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, old, nil, fmt.Errorf("read the marks: %w", err)
	}
	var life [8]byte
	rand.Read(life[:])
	id := binary.BigEndian.Uint64(life[:])
	mapping, err := mapFile(path+".new", marksHead(boot, id))
	if err != nil {
		return nil, old, nil, fmt.Errorf("map the marks: %w", err)
	}
	m = newMarks(mapping, path, id)
	// A mark may be set after the store was closed: the mapping goes only when
	// nobody holds one.
	runtime.AddCleanup(m, func(b []byte) { _ = unix.Munmap(b) }, mapping)
	return m, old, func() error { return os.Rename(path+".new", path) }, nil
}

// mapFile makes a file that begins with head and maps it. Every byte is written
// first: a hole could find the disk full at the moment of a store into it.
func mapFile(path string, head []byte) ([]byte, error) {
	_ = os.Remove(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, marksBytes)
	copy(b, head)
	if _, err := f.Write(b); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, marksBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func removeMarks(path string) {
	_ = os.Remove(path)
	_ = os.Remove(path + ".new")
}
