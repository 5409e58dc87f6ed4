package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"reins/protocol"
)

var (
	// ErrNoAddress: no daemon says that it serves the state directory.
	ErrNoAddress = errors.New("no daemon serves this state directory; start one with: reins serve")
	// ErrAddress: the file that says where the daemon is, is damaged.
	ErrAddress = errors.New("the file that says where the daemon is, is damaged; restart the daemon")
)

// Address says where a daemon is. The daemon writes it when it serves, and
// removes it when it stops.
type Address struct {
	URL          string `json:"url"`
	WebSocketURL string `json:"websocket_url,omitempty"`
	Process      int    `json:"pid"`
	// Protocol is the daemon's major version.
	Protocol int `json:"protocol"`
}

// WriteAddress says that the daemon of a state directory serves at an address.
func WriteAddress(stateDir string, a Address) error {
	if err := writeFile(filepath.Join(stateDir, addressFile), 0o600, a); err != nil {
		return fmt.Errorf("where the daemon is cannot be written down: %w", err)
	}
	return nil
}

// ReadAddress reads where the daemon of a state directory is. The error wraps
// [ErrNoAddress] or [ErrAddress].
func ReadAddress(stateDir string) (Address, error) {
	file := filepath.Join(stateDir, addressFile)
	raw, err := readFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Address{}, fmt.Errorf("%s: %w", stateDir, ErrNoAddress)
	case err != nil:
		return Address{}, fmt.Errorf("where the daemon is cannot be read; use the user that runs the daemon: %w", err)
	}
	a, err := decodeAddress(raw)
	if err != nil {
		return Address{}, fmt.Errorf("%s: %w: %w", file, ErrAddress, err)
	}
	return a, nil
}

// RemoveAddress takes back what this process wrote; what another wrote stays.
func RemoveAddress(stateDir string) error {
	a, err := ReadAddress(stateDir)
	if err != nil || a.Process != os.Getpid() {
		return nil // nothing of ours is there
	}
	if err := os.Remove(filepath.Join(stateDir, addressFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("that the daemon is gone cannot be written down: %w", err)
	}
	return nil
}

// decodeAddress takes fields that it does not know: a newer daemon has to be
// able to say that it is newer.
func decodeAddress(raw []byte) (Address, error) {
	var a Address
	if err := json.Unmarshal(raw, &a); err != nil {
		return Address{}, errors.New("it is not the JSON that was written")
	}
	if err := checkBusURL(a.URL); err != nil {
		return Address{}, err
	}
	if a.WebSocketURL != "" {
		if err := checkBusURL(a.WebSocketURL); err != nil {
			return Address{}, err
		}
	}
	if a.Protocol < 1 {
		return Address{}, errors.New("it names no version of the protocol")
	}
	return a, nil
}

// checkBusURL takes the URL of one server, without credentials in it.
func checkBusURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || len(s) > protocol.MaxURLBytes || u.Host == "" || u.Opaque != "" || u.User != nil ||
		!slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return errors.New("the URL of the bus must be nats://host:port, or tls, ws or wss, without a password in it")
	}
	return nil
}

// readFile reads a small file whole.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(raw) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxFileBytes)
	}
	return raw, err
}

// writeFile puts v in the place of a file at once, so that nobody reads half of it.
func writeFile(file string, mode fs.FileMode, v any) (err error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the one to tell
		}
	}()
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
