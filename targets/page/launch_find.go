package page

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"reins/protocol"
)

// Where distributions put the browser's own binary. The commands on PATH are
// often scripts that add flags and that do not exec: killing such a script
// would leave its browser behind, so only the binary itself is started.
var browserPaths = []string{
	"/usr/lib/chromium/chromium",
	"/usr/lib64/chromium-browser/chromium-browser",
	"/usr/lib/chromium-browser/chromium-browser",
	"/opt/google/chrome/chrome",
	"/opt/chromium.org/chromium/chrome",
	"/usr/lib/chromium/chromium-headless-shell",
}

var browserCommands = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
	"chromium-headless-shell", "chrome-headless-shell", "headless_shell",
}

// FindBrowser returns the path of a browser's binary: the one that is named, or
// the first of the usual places.
func FindBrowser(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", unavailable("the browser %q cannot be run (%v): name the path of Chromium's binary", named, err)
		}
		bin, err := browserBinary(path)
		if err != nil {
			return "", unavailable("the browser %q is not Chromium's own binary (%v): name that, for example /usr/lib/chromium/chromium", named, err)
		}
		return bin, nil
	}
	for _, path := range browserPaths {
		if bin, err := browserBinary(path); err == nil {
			return bin, nil
		}
	}
	for _, name := range browserCommands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if bin, err := browserBinary(path); err == nil {
			return bin, nil
		}
	}
	return "", unavailable("no Chromium was found in the usual places or on PATH: install it (Debian: apt-get install chromium), or name its binary")
}

// browserBinary follows links and the known wrapper scripts to the binary.
func browserBinary(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	script, err := isScript(real)
	if err != nil {
		return "", err
	}
	if !script {
		return real, nil
	}
	name := filepath.Base(path)
	beside := filepath.Dir(real)
	places := []string{filepath.Join(beside, "chrome")}
	if beside == "/usr/bin" || beside == "/bin" {
		// A distribution's wrapper; another script of that name may start anything.
		places = []string{filepath.Join("/usr/lib/chromium", name), filepath.Join("/usr/lib", name, name), filepath.Join("/usr/lib64", name, name)}
	}
	for _, c := range places {
		if script, err := isScript(c); err == nil && !script {
			return c, nil
		}
	}
	return "", fmt.Errorf("%s is a script and the binary behind it is not known", real)
}

// isScript tells a script from a binary. An error: neither can be run.
func isScript(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return false, fmt.Errorf("%s is not an executable file", path)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return false, fmt.Errorf("%s is not a program: %w", path, err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return true, nil
	case bytes.Equal(head, []byte("\x7fELF")):
		return false, nil
	}
	return false, fmt.Errorf("%s is not a program of this system", path)
}

// isHeadlessShell reports whether the binary is the old headless mode, now a
// program of its own: it isolates no sites by default and locks no profile.
func isHeadlessShell(bin string) bool {
	return strings.Contains(filepath.Base(bin), "headless")
}

func unavailable(format string, args ...any) error {
	return &protocol.Problem{Reason: protocol.ReasonBackendUnavailable, Message: fmt.Sprintf(format, args...)}
}
