package daemon

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"reins/protocol"
)

// smallDisk mounts a file system of 64 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(openTemp(t))
	mount := []string{"mount", "-t", "tmpfs", "-o", "size=64m,mode=0711", "tmpfs", dir}
	unmount := []string{"umount", "-l", dir}
	if os.Geteuid() != 0 {
		mount, unmount = append([]string{"sudo", "-n"}, mount...), append([]string{"sudo", "-n"}, unmount...)
	}
	if out, err := exec.Command(mount[0], mount[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("this test needs a small disk of its own: run it as root, or as a user who may sudo mount: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(unmount[0], unmount[1:]...).Run() })
	return dir
}

// A disk that is full to the last page: writes are refused before anything is
// sent, reads go on, and with room again everything does, in the same process.
func TestCaseDiskFull(t *testing.T) {
	disk := smallDisk(t)
	w := newWorld(t, func(c *Config) {
		c.StateDir, c.ProfileDir, c.DownloadDir = filepath.Join(disk, "state"), filepath.Join(openTemp(t), "profiles"), openTemp(t)
	})
	c := w.client("cli")
	id := c.opened(w.web.URL + "/cases/ref-renumbered.html")
	is(t, c.do(id, protocol.MethodClick, button("Alpha")), protocol.StateApplied, "")
	noted := c.send(protocol.Request{OperationID: c.id(), Resource: id, Generation: 1, Method: protocol.MethodScroll, Arguments: args(t, m{"dy": 10})})

	fill(t, filepath.Join(disk, "filler"))
	rc := c.do(id, protocol.MethodClick, button("Beta"))
	is(t, rc, protocol.StateRefused, protocol.ReasonStorageUnavailable)
	c.observe(id)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s, err := c.Status(ctx); err != nil || s.Store != string(protocol.ReasonStorageUnavailable) {
		t.Fatalf("health does not say so: %s %v", show(s), err)
	}

	full, err := os.Stat(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(disk, "filler"), full.Size()-20<<20); err != nil {
		t.Fatal(err)
	}
	for rc.Reason == protocol.ReasonStorageUnavailable { // the daemon sees the room by itself
		<-time.After(50 * time.Millisecond)
		rc = c.with(c.observe(id), protocol.MethodClick, button("Gamma"))
		if ctx.Err() != nil {
			t.Fatal("the store did not come back though there is room")
		}
	}
	is(t, rc, protocol.StateApplied, "")
	again, err := c.Receipt(ctx, noted.OperationID)
	if err != nil || show(again) != show(noted) {
		t.Fatalf("what was noted before is lost: %s %v", show(again), err)
	}
	if r := c.result(id); show(r["pressed"]) != `["Alpha","Gamma"]` {
		t.Fatalf("wrong result: %s", show(r))
	}
}

// fill writes until the disk takes no more.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	_ = f.Sync() // on a full disk its error says nothing new
}
