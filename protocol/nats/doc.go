// Package nats carries the protocol over NATS: [Serve] stands between the bus
// and a [protocol.Handler], [Publisher] tells everybody what happens, and
// [Client] is what programs use.
//
//	Client ── reins.v1.<owner>.do ──▶ bus ──▶ Service ──▶ protocol.Handler
//	       ◀─ _INBOX_<owner>.… ─────      ◀── (one goroutine a request, bounded)
//	Watch  ◀─ reins.v1.cue|frame|record.<resource> ── Publisher
//
// The owner of a request is a token of its subject, and the server lets a
// connection publish only under its own; nothing in a body names an owner. All
// subjects and headers are in subjects.go. A newcomer reads that, then Serve,
// then Dial.
//
// Invariants:
//
//	I1  A message is handed to the handler at most once, never after its expiry, and never if its
//	    reply would go to somebody else's inbox.
//	I2  Nothing that a client could not send at once is sent later: a connection that broke is never
//	    used again, and what it had not written is gone with it.
//	I3  The client sends a write once. An error of the client says whether it was sent: answer_lost
//	    means that it was and its outcome is unknown; every other reason that nothing happened.
//	I4  A refusal made here says refused only where the handler was not called. After a panic in a
//	    write the answer is uncertain.
//	I5  No callback of the bus blocks, and no publisher waits for a viewer: queues are bounded,
//	    frames and records keep the latest, cues drop the oldest, and what was dropped is counted.
//	I6  Each goroutine is waited for by Close, within its bound.
//
// Imported by cmd. It imports protocol only, and never package embed, so that a
// client carries no server.
package nats
