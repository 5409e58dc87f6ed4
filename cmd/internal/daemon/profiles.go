package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// profilesFor is where the browser profiles of a state directory are: below it,
// unless this is root and the ordinary user that the browser runs as could not
// get there (root's own home is closed to everybody).
func profilesFor(stateDir string) string {
	own := filepath.Join(stateDir, "profiles")
	if os.Geteuid() != 0 || passable(filepath.Dir(stateDir)) {
		return own
	}
	sum := sha256.Sum256([]byte(stateDir))
	return filepath.Join("/var/lib/reins", hex.EncodeToString(sum[:6]), "profiles")
}

// passable reports whether everybody may pass through dir and all above it.
func passable(dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(abs)
		if err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if parent := filepath.Dir(abs); parent != abs {
			abs = parent
			continue
		}
		return true
	}
}
