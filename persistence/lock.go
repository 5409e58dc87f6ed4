package persistence

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lock keeps other processes out, and tells them who is in.
type lock struct {
	fs   vfs.FS
	pid  string // the file
	held io.Closer
}

func takeLock(fs vfs.FS, dir string) (*lock, error) {
	l := &lock{fs: fs, pid: fs.PathJoin(dir, "pid")}
	held, err := fs.Lock(fs.PathJoin(dir, "LOCK"))
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("%s cannot be locked; give its owner the right to write there: %w", dir, err)
		}
		if full(err) {
			return nil, fmt.Errorf("%s: %w", dir, unavailable(err))
		}
		return nil, fmt.Errorf("%s%s: %w (%v)", dir, l.holder(), ErrLocked, err)
	}
	l.held = held
	if err := writeFile(fs, l.pid, []byte(strconv.Itoa(os.Getpid())+"\n")); err != nil {
		// Nothing depends on it but the words of an error in another process.
		_ = fs.Remove(l.pid)
	}
	return l, nil
}

// holder names the process that has the store, where that is known.
func (l *lock) holder() string {
	b, err := readFile(l.fs, l.pid, 32)
	if err != nil {
		return ""
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		return fmt.Sprintf(" (process %d has it)", pid)
	}
	return ""
}

func (l *lock) release() error {
	_ = l.fs.Remove(l.pid)
	return l.held.Close()
}

func writeFile(fs vfs.FS, name string, b []byte) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// readFile reads at most so many bytes.
func readFile(fs vfs.FS, name string, most int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}
