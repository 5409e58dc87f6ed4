package nats

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reins/protocol"
)

// The files of a state directory that this package and package embed know.
const (
	credentialsFolder = "credentials"
	addressFile       = "nats.json"
	maxFileBytes      = 64 << 10
	// DefaultOwner is the owner that the daemon makes at its first start: the command line's.
	DefaultOwner = "cli"
	// SystemUser is the daemon's own name on its bus; no owner can have it.
	SystemUser = "reins"
	// MaxOwnerBytes is the longest name of an owner.
	MaxOwnerBytes = 32
	passwordBytes = 32
)

// reservedOwners would make an owner's subjects ambiguous.
var reservedOwners = []string{"cue", "frame", "record", SystemUser}

var (
	// ErrOwner: the name cannot be an owner's.
	ErrOwner = errors.New("an owner's name is 1 to 32 of a–z, 0–9 and -, and none of cue, frame, record, reins; choose another")
	// ErrNoCredentials: the owner has no file of credentials.
	ErrNoCredentials = errors.New("this owner has no credentials here; make them with: reins owner add NAME")
	// ErrCredentials: the file is there and is not one of credentials.
	ErrCredentials = errors.New("the file of credentials is damaged; remove it and make new ones with: reins owner add NAME")
)

// Credentials are by which an owner's connections are known.
type Credentials struct {
	Owner    protocol.OwnerID `json:"owner"`
	User     string           `json:"user"`
	Password string           `json:"password"`
	// URL is where the bus is; empty for the daemon of the state directory.
	URL string `json:"url,omitempty"`
}

// CheckOwner returns an error that wraps [ErrOwner] if the name cannot be an owner's.
func CheckOwner(name string) error {
	ok := len(name) >= 1 && len(name) <= MaxOwnerBytes && !slices.Contains(reservedOwners, name) &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if !ok {
		return fmt.Errorf("%.40q: %w", name, ErrOwner)
	}
	return nil
}

// AddOwner makes credentials for an owner and returns their file. An owner that
// has some keeps them. The daemon need not be told.
func AddOwner(stateDir, name string) (string, error) {
	file, err := CredentialsFile(stateDir, name)
	if err != nil {
		return "", err
	}
	if _, err := ReadCredentials(file); !errors.Is(err, ErrNoCredentials) {
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("the folder of credentials cannot be made; name another state directory: %w", err)
	}
	if err := os.Chmod(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("the folder of credentials cannot be closed to others: %w", err)
	}
	c := Credentials{Owner: protocol.OwnerID(name), User: name, Password: NewPassword()}
	if err := writeFile(file, 0o600, c); err != nil {
		return "", fmt.Errorf("the credentials of %s cannot be written: %w", name, err)
	}
	return file, nil
}

// NewPassword makes 32 random bytes, written in hexadecimal.
func NewPassword() string {
	var secret [passwordBytes]byte
	rand.Read(secret[:])
	return hex.EncodeToString(secret[:])
}

// CredentialsFile is the path of an owner's credentials in a state directory.
func CredentialsFile(stateDir, name string) (string, error) {
	if err := CheckOwner(name); err != nil {
		return "", err
	}
	return filepath.Join(stateDir, credentialsFolder, name+".json"), nil
}

// ReadCredentials reads a file of credentials. The error wraps
// [ErrNoCredentials] where there is none, [ErrCredentials] where it is damaged.
func ReadCredentials(file string) (Credentials, error) {
	raw, err := readFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Credentials{}, fmt.Errorf("%s: %w", file, ErrNoCredentials)
	case err != nil:
		return Credentials{}, fmt.Errorf("the credentials cannot be read; use the user that runs the daemon: %w", err)
	}
	c, err := decodeCredentials(raw)
	if err != nil {
		return Credentials{}, fmt.Errorf("%s: %w: %w", file, ErrCredentials, err)
	}
	return c, nil
}

// decodeCredentials never repeats what it read: it has a secret in it.
func decodeCredentials(raw []byte) (Credentials, error) {
	c, p := protocol.DecodeMessage[Credentials](raw)
	switch {
	case p != nil:
		return Credentials{}, errors.New("it is not the JSON that was written")
	case CheckOwner(string(c.Owner)) != nil || c.User != string(c.Owner):
		return Credentials{}, errors.New("its owner is no owner")
	case len(c.Password) < 2*passwordBytes || len(c.Password) > protocol.MaxIDBytes:
		return Credentials{}, errors.New("its password is too short or too long")
	}
	if c.URL != "" {
		if err := checkBusURL(c.URL); err != nil {
			return Credentials{}, err
		}
	}
	return c, nil
}
