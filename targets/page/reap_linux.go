package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	reapWait   = 5 * time.Second // for an old browser to be gone after it was killed
	sweepMost  = 2 * time.Second // for the rest of a browser that has ended
	sweepEvery = 10 * time.Millisecond
)

// browserRecord names the running browser of a profile, for the next daemon.
// The start time tells the process from another that got its id.
type browserRecord struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`
}

func recordPath(o Options) string { return o.ProfileDir + ".browser" }

func writeRecord(o Options, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	b, err := json.Marshal(browserRecord{PID: pid, Start: start, Boot: bootID()})
	if err != nil {
		return err
	}
	return os.WriteFile(recordPath(o), b, 0o600)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// startTime is when a process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command's name, in parentheses, may hold anything; 20 fields after it is the start time.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// reap kills every browser of this profile that an earlier daemon left behind,
// waits until it is gone, and clears the locks that it left.
func reap(ctx context.Context, o Options, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, reapWait)
	defer cancel()
	for {
		left := leftovers(o)
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			log.Warn("killing a browser that an earlier daemon left behind", "pid", pid)
			killGroup(pid)
		}
		select {
		case <-ctx.Done():
			return unavailable("an earlier browser of this profile (process %d) cannot be ended: end it by hand", left[0])
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, name := range []string{"SingletonLock", "SingletonCookie", "SingletonSocket"} {
		if err := os.Remove(filepath.Join(o.ProfileDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clearing an old lock of the profile: %w", err)
		}
	}
	if err := os.Remove(recordPath(o)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing the record of the earlier browser: %w", err)
	}
	return nil
}

// sweep kills what is left of a browser that has ended.
func sweep(o Options) {
	for end := time.Now().Add(sweepMost); time.Now().Before(end); {
		left := leftovers(o)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			killGroup(pid)
		}
		<-time.After(sweepEvery)
	}
}

// killGroup kills a process and, where it leads one, its group.
func killGroup(pid int) {
	if group, err := syscall.Getpgid(pid); err == nil && group == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// leftovers lists the living processes of this profile's browsers: the recorded
// one, and every one that names the profile, or the place of its crash reports,
// in its arguments.
func leftovers(o Options) []int {
	var pids []int
	if b, err := os.ReadFile(recordPath(o)); err == nil {
		var r browserRecord
		if json.Unmarshal(b, &r) == nil && r.PID > 1 && r.Boot == bootID() {
			if start, err := startTime(r.PID); err == nil && start == r.Start && alive(r.PID) {
				pids = append(pids, r.PID)
			}
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return pids
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		ours := namesProfile(args, o.ProfileDir) || bytes.Contains(args, []byte("--database="+homeDir(o)+"/"))
		if err == nil && ours && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// namesProfile reports whether a process's arguments name the profile. Chromium
// rewrites its own, some time after its start, with spaces between them.
func namesProfile(args []byte, profile string) bool {
	want := []byte("--user-data-dir=" + profile)
	for {
		i := bytes.Index(args, want)
		if i < 0 {
			return false
		}
		args = args[i+len(want):]
		if len(args) == 0 || args[0] == 0 || args[0] == ' ' {
			return true
		}
	}
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return len(rest) > 0 && rest[0] != "Z" && rest[0] != "X"
}
