package page

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// minSHM is the least /dev/shm that many Pages can share; containers have 64 MiB.
	minSHM = 512 << 20
	// firstUID is where the uids begin that a root daemon gives its profiles.
	firstUID, countUID = 61000, 4000
	// pipeLinger is how long Wait waits for the rest of stderr after the exit.
	pipeLinger = time.Second
)

// process is a browser process and the ends of its pipes that are ours.
type process struct {
	pid    int
	exited chan struct{} // closed after it was waited for
	err    error         // how it exited; read after exited
	reads  *os.File      // what the browser writes
	writes *os.File      // what the browser reads
	stderr *tail
}

// launch starts the browser in its own process group. The kernel kills it when
// this process dies, and so does the end of its pipes.
func launch(bin string, o Options, id identity) (*process, error) {
	childR, ourW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the browser: %w", err)
	}
	ourR, childW, err := os.Pipe()
	if err != nil {
		closeAll(childR, ourW)
		return nil, fmt.Errorf("making a pipe for the browser: %w", err)
	}
	p := &process{exited: make(chan struct{}), reads: ourR, writes: ourW, stderr: &tail{}}
	cmd := exec.Command(bin, browserArgs(o, bin, smallSHM())...)
	cmd.ExtraFiles = []*os.File{childR, childW} // fds 3 and 4
	cmd.Dir = "/"
	cmd.Env = browserEnv(o)
	cmd.Stderr = p.stderr
	cmd.WaitDelay = pipeLinger
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: id.credential()}

	started := make(chan error, 1)
	go p.run(cmd, o, started)
	err = <-started
	closeAll(childR, childW)
	if err != nil {
		closeAll(ourR, ourW)
		return nil, unavailable("the browser %s does not start: %v", bin, err)
	}
	return p, nil
}

// run starts the process and waits for it on one thread that lives as long as
// the browser: the kernel takes the end of the thread that forked for the death
// of the parent.
func (p *process) run(cmd *exec.Cmd, o Options, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		p.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	p.err = cmd.Wait()
	// Nothing of it may be left, whatever it was: neither of its group, nor the
	// handler of its crash reports, which has a group of its own and was seen to
	// hang over a renderer that was killed in the middle of its report.
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	sweep(o)
	close(p.exited)
}

// kill ends the whole process group.
func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func smallSHM() bool {
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil {
		return true
	}
	return st.Blocks*uint64(st.Bsize) < minSHM
}

// identity is who the browser runs as.
type identity struct{ uid, gid int }

// browserIdentity is this user, or an ordinary uid of the profile's own where
// this is root: Chromium's sandbox does not run as root.
func browserIdentity(o Options) identity {
	if os.Geteuid() != 0 {
		return identity{os.Geteuid(), os.Getegid()}
	}
	uid := o.UID
	if uid == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(o.ProfileDir))
		uid = firstUID + int(h.Sum32()%countUID)
	}
	return identity{uid, uid}
}

func (id identity) other() bool { return id.uid != os.Geteuid() }

func (id identity) credential() *syscall.Credential {
	if !id.other() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
}

// browserEnv leaves out everything of our environment that the browser does
// not need: it may hold secrets of the daemon's user.
func browserEnv(o Options) []string {
	home := homeDir(o)
	env := []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"XDG_RUNTIME_DIR=" + home,
		"DBUS_SESSION_BUS_ADDRESS=disabled:",
		"DBUS_SYSTEM_BUS_ADDRESS=disabled:",
	}
	keep := []string{"PATH", "LANG", "LANGUAGE", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "LD_LIBRARY_PATH"}
	if o.Headful {
		keep = append(keep, "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY")
	}
	for _, name := range []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "auto_proxy", "SOCKS_SERVER"} {
		keep = append(keep, name, strings.ToUpper(name))
	}
	for _, name := range keep {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func homeDir(o Options) string { return o.ProfileDir + ".home" }

// stagingDir is where the browser writes downloads; nothing there is trusted.
func stagingDir(o Options) string { return o.ProfileDir + ".staging" }

// prepareDirs makes the directories of the profile, for the browser's user.
func prepareDirs(ctx context.Context, o Options, id identity) error {
	if err := os.MkdirAll(filepath.Dir(o.ProfileDir), 0o755); err != nil {
		return fmt.Errorf("making the profile's directory: %w", err)
	}
	for _, dir := range []string{o.ProfileDir, homeDir(o)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
		if err := giveTo(ctx, dir, id); err != nil {
			return fmt.Errorf("giving %s to the browser's user: %w", dir, err)
		}
	}
	staging := stagingDir(o)
	if err := os.RemoveAll(staging); err != nil {
		return fmt.Errorf("clearing %s: %w", staging, err)
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", staging, err)
	}
	if id.other() {
		// Ours; the browser may only put files into it.
		if err := errors.Join(os.Chown(staging, os.Geteuid(), id.gid), os.Chmod(staging, 0o770)); err != nil {
			return fmt.Errorf("opening %s to the browser's user: %w", staging, err)
		}
		return reachable(o.ProfileDir, id)
	}
	return nil
}

// giveTo makes dir and everything in it the browser's user's.
func giveTo(ctx context.Context, dir string, id identity) error {
	if !id.other() {
		return nil
	}
	if fi, err := os.Lstat(dir); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) == id.uid {
			return nil
		}
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return os.Lchown(path, id.uid, id.gid)
	})
}

// reachable checks that the browser's user may pass through every directory
// above its profile.
func reachable(dir string, id identity) error {
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		fi, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("looking at %s: %w", d, err)
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		mode, bit := fi.Mode().Perm(), os.FileMode(0o001)
		switch {
		case int(st.Uid) == id.uid:
			bit = 0o100
		case int(st.Gid) == id.gid:
			bit = 0o010
		}
		if mode&bit == 0 {
			return unavailable("a root daemon runs the browser as the ordinary user %d, who may not enter %s: choose a profile directory elsewhere, or chmod o+x that one", id.uid, d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
