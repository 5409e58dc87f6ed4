package persistence

import (
	"os"
	"strings"
)

// bootID is the same until the machine starts again.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
