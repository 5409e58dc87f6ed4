package embed

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"reins/protocol/nats"
)

// caller is a connection as the gate sees it.
type caller struct {
	options server.ClientOpts
	remote  net.Addr
	user    *server.User
}

func (c *caller) GetOpts() *server.ClientOpts                 { return &c.options }
func (c *caller) GetTLSConnectionState() *tls.ConnectionState { return nil }
func (c *caller) RegisterUser(u *server.User)                 { c.user = u }
func (c *caller) RemoteAddress() net.Addr                     { return c.remote }
func (c *caller) GetNonce() []byte                            { return nil }
func (c *caller) Kind() int                                   { return server.CLIENT }
func (c *caller) GetID() uint64                               { return 1 }

// TestTheDaemonComesFromInside holds that the daemon's own name is taken from
// inside the process only, even with its password.
func TestTheDaemonComesFromInside(t *testing.T) {
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	g := &gate{stateDir: t.TempDir(), password: nats.NewPassword(), log: slog.New(slog.DiscardHandler)}
	for _, row := range []struct {
		name, password string
		remote         net.Addr
		ok             bool
	}{
		{"inside", g.password, pipe.RemoteAddr(), true},
		{"inside without the password", "", pipe.RemoteAddr(), false},
		{"over TCP", g.password, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, false},
		{"from nowhere", g.password, nil, false},
	} {
		c := &caller{options: server.ClientOpts{Username: nats.SystemUser, Password: row.password}, remote: row.remote}
		if got := g.Check(c); got != row.ok || (c.user != nil) != row.ok {
			t.Errorf("%s: %v, want %v", row.name, got, row.ok)
		}
	}
}
