package embed

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"

	"github.com/nats-io/nats-server/v2/server"

	"reins/protocol"
	"reins/protocol/nats"
)

// gate decides who may connect, and what each may do (I1, I2).
type gate struct {
	stateDir string
	password string // of the daemon itself
	log      *slog.Logger
}

// inProcess is the network of a connection that never left the process.
const inProcess = "pipe"

// Check implements [server.Authentication].
func (g *gate) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.Username == nats.SystemUser {
		remote := c.RemoteAddress()
		if remote == nil || remote.Network() != inProcess || !same(o.Password, g.password) {
			return false
		}
		c.RegisterUser(&server.User{Username: nats.SystemUser})
		return true
	}
	password, known := g.passwordOf(o.Username)
	if !same(o.Password, password) || !known {
		return false
	}
	owner := protocol.OwnerID(o.Username)
	c.RegisterUser(&server.User{Username: o.Username, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: nats.OwnerMayPublish(owner)},
		Subscribe: &server.SubjectPermission{Allow: nats.OwnerMaySubscribe(owner)},
	}})
	return true
}

// passwordOf reads the password of an owner's file.
func (g *gate) passwordOf(user string) (password string, known bool) {
	file, err := nats.CredentialsFile(g.stateDir, user)
	if err != nil {
		return "", false
	}
	cred, err := nats.ReadCredentials(file)
	if err != nil {
		if !errors.Is(err, nats.ErrNoCredentials) {
			g.log.Warn("an owner cannot connect", "owner", user, "error", err)
		}
		return "", false
	}
	if string(cred.Owner) != user { // a file copied under another name makes nobody
		g.log.Warn("an owner cannot connect: its file is another owner's", "owner", user)
		return "", false
	}
	return cred.Password, true
}

// same compares in a time that tells neither the length nor the first difference.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
