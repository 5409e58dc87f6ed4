package embed

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
	"reins/protocol/nats"
)

// The bounds of the bus.
const (
	MaxPayload     = 8 << 20          // bytes of a message
	MaxPending     = 32 << 20         // bytes waiting for one connection; over it the connection is cut
	MaxConnections = 1024             // at once
	MaxStore       = 256 << 20        // bytes of JetStream's files
	MaxMemory      = 64 << 20         // bytes of JetStream's memory
	WriteDeadline  = 2 * time.Second  // a connection that takes nothing for so long is cut
	startWithin    = 20 * time.Second // the store of JetStream is read by then
	stopWithin     = 3 * time.Second
	maxSubs        = 512 // of one connection
	authWithin     = 5 * time.Second
	pingEvery      = 20 * time.Second
)

// ErrListen: the bus cannot be reached where it should be.
var ErrListen = errors.New("the bus listens on a loopback address only, such as 127.0.0.1:0; name one with --listen")

// Options are the options of [Start]. Zero values take the defaults above.
type Options struct {
	// StateDir gets credentials, JetStream's files and the address.
	StateDir string
	// Listen is host:port on the loopback; by default 127.0.0.1:0, a free port.
	Listen string
	// WebSocket adds a second port for browsers.
	WebSocket bool
	Logger    *slog.Logger
	// MaxPayload is in bytes; MaxPending, in bytes, is more than it.
	MaxPayload, MaxPending int
	WriteDeadline          time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" {
		return o, errors.New("no state directory named")
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = MaxPayload
	}
	if o.MaxPending == 0 {
		o.MaxPending = MaxPending
	}
	if o.WriteDeadline == 0 {
		o.WriteDeadline = WriteDeadline
	}
	if o.MaxPayload < protocol.MaxRequestBytes || o.MaxPending <= o.MaxPayload {
		return o, fmt.Errorf("a message limit of %d bytes is less than a request, or more than the %d that may wait", o.MaxPayload, o.MaxPending)
	}
	return o, nil
}

// Server is a running bus.
type Server struct {
	Options
	ns *server.Server
	// password is the daemon's own, made anew at each start and kept in memory only.
	password string

	mu    sync.Mutex
	conns []*gonats.Conn // made by Connect
	once  sync.Once
}

// AddOwner makes credentials for an owner; one that has some keeps them. The
// name is 1–32 of a–z, 0–9 and -; see [nats.ErrOwner].
func AddOwner(stateDir, name string) error {
	_, err := nats.AddOwner(stateDir, name)
	return err
}

// Start starts a bus and makes the credentials of the default owner if there
// are none. Nobody is told where it is before [Server.Announce].
func Start(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	host, port, err := listenAddress(o.Listen)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.StateDir, 0o711); err != nil {
		return nil, fmt.Errorf("the state directory cannot be made; name another with --state: %w", err)
	}
	if err := AddOwner(o.StateDir, nats.DefaultOwner); err != nil {
		return nil, err
	}
	store := filepath.Join(o.StateDir, "jetstream")
	if err := os.MkdirAll(store, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the bus cannot be made; name another state directory with --state: %w", err)
	}
	s := &Server{Options: o, password: nats.NewPassword()}
	log := &serverLog{log: o.Logger, fatal: make(chan string, 1)}
	options := &server.Options{
		ServerName: "reins", Host: host, Port: port, NoSigs: true, NoLog: true, DisableShortFirstPing: true,
		JetStream: true, StoreDir: store, JetStreamMaxMemory: MaxMemory, JetStreamMaxStore: MaxStore,
		MaxPayload: int32(o.MaxPayload), MaxPending: int64(o.MaxPending), WriteDeadline: o.WriteDeadline,
		MaxConn: MaxConnections, MaxSubs: maxSubs, AuthTimeout: authWithin.Seconds(), PingInterval: pingEvery, MaxPingsOut: 2,
		CustomClientAuthentication: &gate{stateDir: o.StateDir, password: s.password, log: o.Logger},
	}
	if o.WebSocket {
		options.Websocket = server.WebsocketOpts{Host: host, Port: -1, NoTLS: true, AuthTimeout: authWithin.Seconds()}
	}
	s.ns, err = server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("the bus cannot be set up: %w", err)
	}
	s.ns.SetLoggerV2(log, false, false, false)
	if err := s.begin(log); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("the bus cannot start at %s with its files in %s; is the address taken, or the folder damaged? It may be removed: %w", o.Listen, store, err)
	}
	return s, nil
}

// begin starts the server. It says through its log what keeps it from starting.
func (s *Server) begin(log *serverLog) error {
	started := make(chan error, 1)
	go func() { // ends with Start, or is left behind by a disk that hangs
		defer func() {
			if r := recover(); r != nil {
				log.log.Error("starting the bus panicked", "panic", r, "stack", string(debug.Stack()))
				started <- fmt.Errorf("panic: %v", r)
			}
		}()
		s.ns.Start()
		started <- nil
	}()
	late := time.NewTimer(startWithin)
	defer late.Stop()
	select {
	case err := <-started:
		if err != nil {
			return err
		}
	case <-late.C:
		return fmt.Errorf("it did not start within %v", startWithin)
	}
	select {
	case why := <-log.fatal:
		return errors.New(why)
	default:
	}
	if !s.ns.ReadyForConnections(startWithin) {
		return fmt.Errorf("it took no connections within %v", startWithin)
	}
	return nil
}

// listenAddress reads host and port of a loopback address (I3).
func listenAddress(s string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("%q: %w", s, ErrListen)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", 0, fmt.Errorf("%q: %w", s, ErrListen)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q: %w", s, ErrListen)
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

// URL is where clients connect to.
func (s *Server) URL() string { return s.ns.ClientURL() }

// WebSocketURL is where browsers connect to; empty without WebSocket.
func (s *Server) WebSocketURL() string {
	if !s.WebSocket {
		return ""
	}
	return s.ns.WebsocketURL()
}

// Connect makes a connection of the daemon itself, inside the process, with
// every right. It comes back by itself if the server ever cuts it, and is closed
// by Shutdown.
func (s *Server) Connect() (*gonats.Conn, error) {
	nc, err := gonats.Connect("", gonats.InProcessServer(s.ns), gonats.UserInfo(nats.SystemUser, s.password), gonats.Name("reins"),
		gonats.MaxReconnects(-1), gonats.ReconnectWait(50*time.Millisecond), gonats.ReconnectJitter(0, 0),
		gonats.ErrorHandler(func(_ *gonats.Conn, _ *gonats.Subscription, err error) {
			s.Logger.Warn("the daemon's own connection to the bus complains", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("the daemon cannot connect to its own bus: %w", err)
	}
	s.mu.Lock()
	s.conns = append(s.conns, nc)
	s.mu.Unlock()
	return nc, nil
}

// Announce writes where the bus is, for clients to find it. Call it when
// requests are served.
func (s *Server) Announce() error {
	return nats.WriteAddress(s.StateDir, nats.Address{URL: s.URL(), WebSocketURL: s.WebSocketURL(), Process: os.Getpid(), Protocol: protocol.Version})
}

// Shutdown takes the address back, closes every connection and ends the server,
// within 3 s; a server that takes longer is left behind and said so in the log.
func (s *Server) Shutdown() {
	s.once.Do(func() {
		if err := nats.RemoveAddress(s.StateDir); err != nil {
			s.Logger.Warn("the address of the bus is still there", "error", err)
		}
		s.mu.Lock()
		conns := s.conns
		s.mu.Unlock()
		for _, nc := range conns {
			nc.Close()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if r := recover(); r != nil {
					s.Logger.Error("ending the bus panicked", "panic", r, "stack", string(debug.Stack()))
				}
			}()
			s.ns.Shutdown()
			s.ns.WaitForShutdown()
		}()
		late := time.NewTimer(stopWithin)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
			s.Logger.Error("the bus did not end in time and is left behind", "within", stopWithin)
		}
	})
}
