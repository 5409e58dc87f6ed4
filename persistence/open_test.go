package persistence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reins/protocol"
)

// filled makes a store with tables, a log and a list, and returns its folder.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{Free: smallDisk})
	for i := range 40 {
		id := fmt.Sprint("op", i)
		_, err := s.Admit(admission("ann", id))
		if err := errors.Join(err, s.Finish(ending("ann", id, protocol.StateApplied)), s.PutCookies(fmt.Sprint("profile", i%7), incompressible(6<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// abandoned makes of a store what it is when its process dies: with a log.
func abandoned(t *testing.T, dir string) {
	t.Helper()
	living := t.TempDir()
	s := mustOpen(t, living, Options{})
	for i := range 100 {
		if _, err := s.Admit(admission("ann", fmt.Sprint("op", i))); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(ending("ann", fmt.Sprint("op", i), protocol.StateApplied)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(living)); err != nil {
		t.Fatal(err)
	}
}

func incompressible(n int) []byte {
	b := make([]byte, 0, n)
	for i := uint64(0); len(b) < n; i++ {
		sum := sha256.Sum256(encodeCounter(i))
		b = append(b, sum[:]...)
	}
	return b[:n]
}

// fileOf finds the last file of the database that matches, by name.
func fileOf(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "db", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return names[len(names)-1]
}

// flip changes bytes all over a part of a file.
func flip(t *testing.T, file string, from, to float64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := int(float64(len(b)) * from); i < int(float64(len(b))*to); i += 1 + len(b)/64 {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents of every file of the database.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][32]byte{}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, "db", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = sha256.Sum256(b)
	}
	return all
}

// TestDamagedStore holds I7: each damage is an error that names the way out, and
// nothing of what is there is changed.
func TestDamagedStore(t *testing.T) {
	remove := func(pattern string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(fileOf(t, dir, pattern)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		want  error
	}{
		"the list is gone":            {remove("MANIFEST-*"), ErrCorrupt},
		"what names the list is gone": {remove("marker.manifest.*"), ErrCorrupt},
		"the list is changed":         {func(t *testing.T, dir string) { flip(t, fileOf(t, dir, "MANIFEST-*"), 0.1, 0.8) }, ErrCorrupt},
		"a table is gone":             {remove("*.sst"), ErrCorrupt},
		"a table is changed":          {func(t *testing.T, dir string) { flip(t, fileOf(t, dir, "*.sst"), 0.1, 1) }, ErrCorrupt},
		"a table is cut short": {func(t *testing.T, dir string) {
			if err := os.Truncate(fileOf(t, dir, "*.sst"), 100); err != nil {
				t.Fatal(err)
			}
		}, ErrCorrupt},
		"the log is changed": {func(t *testing.T, dir string) {
			abandoned(t, dir)
			flip(t, fileOf(t, dir, "*.log"), 0.1, 0.6)
		}, ErrCorrupt},
		"the version of the files is newer": {func(t *testing.T, dir string) {
			old := fileOf(t, dir, "marker.format-version.*")
			if err := os.Rename(old, old[:strings.LastIndex(old, ".")]+".999"); err != nil {
				t.Fatal(err)
			}
		}, ErrNewerSchema},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			c.spoil(t, dir)
			before := contents(t, dir)
			s, err := Open(dir, Options{})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v", err)
			}
			after := contents(t, dir)
			for file, sum := range before {
				if after[file] != sum {
					t.Errorf("%s was changed or removed", file)
				}
			}
		})
	}
}

// TestStrangeStore holds I7 for what our own keys say.
func TestStrangeStore(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*tx)
		want  error
	}{
		"a newer schema":            {func(t *tx) { t.set(named(keyMeta, metaSchema), []byte("2")) }, ErrNewerSchema},
		"a schema that is none":     {func(t *tx) { t.set(named(keyMeta, metaSchema), []byte("one")) }, ErrCorrupt},
		"no schema":                 {func(t *tx) { t.delete(named(keyMeta, metaSchema)) }, ErrCorrupt},
		"no key for hashes":         {func(t *tx) { t.delete(named(keyMeta, metaHashKey)) }, ErrCorrupt},
		"a counter that is none":    {func(t *tx) { t.set(named(keyGeneration, "pg_1"), []byte("one")) }, ErrCorrupt},
		"a pending key that is bad": {func(t *tx) { t.set([]byte("p\xff"), nil) }, ErrCorrupt},
		"a pending operation that is not JSON": {func(t *tx) {
			t.set(operationKey(keyPending, "ann", "op"), nil)
			t.set(operationKey(keyOperation, "ann", "op"), []byte("{"))
		}, ErrCorrupt},
		"a history key that is bad": {func(t *tx) { t.set([]byte("h"), nil) }, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir, Options{})
			if r := s.do(&job{build: func(t *tx) error { c.spoil(t); return nil }}); r.err != nil {
				t.Fatal(r.err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the error stays: nothing was repaired in silence
				s, err := Open(dir, Options{})
				if err == nil {
					_ = s.Close()
				}
				if !errors.Is(err, c.want) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// TestDamageFoundLater holds I7 for a table whose damage shows when it is read:
// the store takes no more admissions, and is not opened anew.
func TestDamageFoundLater(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	err := error(nil)
	for i := range 7 {
		err = errors.Join(err, s.PutCookies(fmt.Sprint("profile", i), incompressible(6<<10)))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	flip(t, fileOf(t, dir, "*.sst"), 0.05, 0.8) // what opening reads comes behind the cookies
	s = mustOpen(t, dir, Options{poll: 10 * time.Millisecond})
	for i := range 7 {
		if _, _, err = s.Cookies(fmt.Sprint("profile", i)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	eventually(t, "the damage is told", func() bool { _, message := s.Health(); return strings.Contains(message, "damaged") })
	if _, err := s.Admit(admission("ann", "op")); err == nil {
		t.Error("an operation was admitted")
	}
	var out bytes.Buffer
	if err := s.Check(&out); err == nil {
		t.Errorf("the check found nothing: %s", &out)
	}
	if _, message := s.Health(); !strings.Contains(message, "damaged") {
		t.Errorf("it was opened anew: %s", message)
	}
}

// TestFirstOpenCutShort holds that a death in the middle of the first opening is
// no damage.
func TestFirstOpenCutShort(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db", "MANIFEST-000001"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, Options{})
	if _, err := s.Admit(admission("ann", "op")); err != nil {
		t.Error(err)
	}
}

// TestClosedFolder holds that a folder that cannot be used is told by its name.
func TestClosedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}
