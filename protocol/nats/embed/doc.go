// Package embed runs the bus inside the daemon: a NATS server with JetStream
// and, if wanted, WebSocket, on the loopback address, with credentials that are
// made at the first start. What is in its JetStream store is a projection; it can
// be removed at any time.
//
//	Start → nats.Serve on Connect() → Announce → … → Shutdown
//
// Invariants:
//
//	I1  A connection is somebody: an owner by the password of its file, or the daemon itself, inside
//	    the process. Files are read at each connect, so that a new owner needs no restart.
//	I2  An owner's connection publishes below its own token only, and reads its own inbox, cues,
//	    frames and records only.
//	I3  It listens on a loopback address, or not at all.
//	I4  It handles no signal, ends no process, writes no line but to the logger, and keeps no password
//	    in one.
//	I5  Nobody finds the daemon before Announce, and Shutdown takes that back and returns within its bound.
//
// Imported by cmd/internal/daemon, and by tests below protocol/nats.
package embed
