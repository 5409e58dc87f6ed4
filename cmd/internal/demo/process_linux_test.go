package demo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// I5: a process that is stopped is gone, and what it started is found first.
func TestProcessesEnd(t *testing.T) {
	p, err := startProcess("/bin/sh", []string{"-c", `echo '{"url":"http://127.0.0.1:1/"}'; sleep 60 & wait`}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	url, err := p.address(t.Context())
	if err != nil || url != "http://127.0.0.1:1/" {
		t.Fatalf("%q %v", url, err)
	}
	var below []int
	err = until(t.Context(), 10*time.Second, "the start of its child", func(context.Context) (bool, error) {
		below = descendants(p.pid())
		return len(below) == 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(descendants(os.Getpid()), below[0]) {
		t.Error("a grandchild is not among the descendants")
	}
	if _, err := browserOf(p.pid()); err == nil {
		t.Error("sleep was taken for a browser")
	}
	if err := killProcess(below[0]); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := gone(t.Context(), append(below, p.pid())); err != nil {
		t.Error(err)
	}
}

func TestProcessThatPrintsNoAddress(t *testing.T) {
	p, err := startProcess("/bin/sh", []string{"-c", "echo oops"}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if url, err := p.address(t.Context()); err == nil {
		t.Errorf("it has the address %q", url)
	}
	if err := p.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
