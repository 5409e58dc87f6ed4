package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"reins/targets/page"
)

// nobody is the uid under which the sandbox is tried when root asks: the browser
// never runs as root either.
const nobody = 65534

func checkBrowser(ctx context.Context, named string) row {
	const install = "apt-get install chromium chromium-sandbox, or name one with --browser"
	path, err := page.FindBrowser(named)
	if err != nil {
		return row{"browser", rowBad, err.Error(), install}
	}
	ctx, stop := context.WithTimeout(ctx, checkDeadline)
	defer stop()
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return row{"browser", rowBad, fmt.Sprintf("%s does not run: %v", path, err), install}
	}
	return row{Name: "browser", Verdict: rowOK, Found: path + ", " + strings.TrimSpace(string(version))}
}

// checkSandbox makes a user namespace as an ordinary user, which is what the
// browser's sandbox does, and looks for its setuid helper where that fails.
func checkSandbox(ctx context.Context, browser row) row {
	ctx, stop := context.WithTimeout(ctx, checkDeadline)
	defer stop()
	try := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "true")
	who := "as this user"
	if os.Geteuid() == 0 {
		try.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		who = "as an ordinary user"
	}
	if err := try.Run(); err == nil {
		return row{Name: "sandbox", Verdict: rowOK, Found: "user namespaces work " + who}
	}
	path, _, _ := strings.Cut(browser.Found, ",")
	helper := filepath.Join(filepath.Dir(path), "chrome-sandbox")
	if st, err := os.Stat(helper); err == nil && st.Mode()&fs.ModeSetuid != 0 {
		return row{Name: "sandbox", Verdict: rowOK, Found: helper + " is set up"}
	}
	return row{"sandbox", rowBad, "neither user namespaces nor " + helper + " work " + who,
		"apt-get install chromium-sandbox, or allow them: sysctl kernel.unprivileged_userns_clone=1"}
}

func checkShm() row {
	const enough = 512 << 20
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil {
		return row{"shm", rowNote, "there is no /dev/shm: " + err.Error(), "mount a tmpfs there; until then the browser does without it, slower"}
	}
	size := st.Blocks * uint64(st.Bsize)
	found := fmt.Sprintf("/dev/shm has %d MiB", size>>20)
	if size < enough {
		return row{"shm", rowNote, found, "give it 512 MiB or more (docker run --shm-size=1g); until then the browser does without it, slower"}
	}
	return row{Name: "shm", Verdict: rowOK, Found: found}
}

func checkFonts(ctx context.Context) row {
	const install = "apt-get install fonts-liberation fonts-dejavu-core fonts-noto-color-emoji"
	n := 0
	home, _ := os.UserHomeDir()
	for _, dir := range []string{"/usr/share/fonts", "/usr/local/share/fonts", filepath.Join(home, ".fonts"), filepath.Join(home, ".local/share/fonts")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			switch strings.ToLower(filepath.Ext(path)) {
			case ".ttf", ".otf", ".ttc", ".pfb":
				n++
			}
			return nil
		})
		if err != nil {
			break
		}
	}
	if n == 0 {
		return row{"fonts", rowNote, "no fonts were found: pictures show boxes instead of letters", install}
	}
	return row{Name: "fonts", Verdict: rowOK, Found: fmt.Sprintf("%d font files", n)}
}

func checkState(dir string) row {
	const reserve = 64 << 20
	at := dir
	for {
		_, err := os.Stat(at)
		if err == nil || at == filepath.Dir(at) {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return row{"state", rowBad, err.Error(), "name another with --state"}
		}
		at = filepath.Dir(at)
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return row{"state", rowBad, at + " cannot be written: " + err.Error(), "name another with --state"}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return row{"state", rowBad, err.Error(), "name another with --state"}
	}
	free := st.Bavail * uint64(st.Bsize)
	found := fmt.Sprintf("%s, %d MiB free", dir, free>>20)
	if at != dir {
		found += " (not made yet)"
	}
	if free < 2*reserve {
		return row{"state", rowBad, found, "free space there: 64 MiB are kept in reserve"}
	}
	return row{Name: "state", Verdict: rowOK, Found: found}
}
