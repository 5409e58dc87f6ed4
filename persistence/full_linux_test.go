package persistence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { childModes["diskfull"] = childDiskFull }

// TestDiskFullOnTmpfs does the same on a real file system, in a process with
// mounts of its own.
func TestDiskFullOnTmpfs(t *testing.T) {
	for _, flags := range []uintptr{syscall.CLONE_NEWNS, syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childMode+"=diskfull", childDir+"="+t.TempDir())
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags&syscall.CLONE_NEWUSER != 0 {
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := c.CombinedOutput()
		switch code := c.ProcessState.ExitCode(); {
		case err == nil:
			return
		case code == 1:
			t.Fatalf("%s", out)
		}
		t.Logf("no mount with flags %x: %v %s", flags, err, out)
	}
	// Nothing may be mounted here: TestDiskFull has to do, with another shape of it.
	if err := diskFull(countedDisk(t.TempDir())); err != nil {
		t.Fatal(err)
	}
}

// exitNoMount says that the child could not mount anything.
const exitNoMount = 3

func childDiskFull(dir string) error {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", diskBytes))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(exitNoMount)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	defer filler.Close()
	return diskFull(disk{dir: filepath.Join(dir, "store"), fill: func(leave int64) error {
		if leave < 0 {
			return filler.Truncate(0)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			return err
		}
		info, err := filler.Stat()
		if err != nil {
			return err
		}
		free := int64(st.Bavail)*st.Bsize - leave
		if free <= 0 {
			return nil
		}
		if err := unix.Fallocate(int(filler.Fd()), 0, info.Size(), free); err != nil && !full(err) {
			return err
		}
		return nil
	}})
}
