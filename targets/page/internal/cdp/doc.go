// Package cdp carries DevTools commands over a browser's pipe: one link, many
// flat sessions. chromedp frames and encodes the messages; who may write, what
// a call's end means and how events are queued is decided here.
//
// A call ends in exactly one of these ways, and the caller can tell which:
//
//	answered by the browser           a result, or a *cdproto.Error
//	not written                       [NotWritten]: revoked, refused by its permit, link down before the write
//	written, never answered           [Unanswered]: deadline, crash, detach, link lost after the write
//
// Invariants:
//
//	I1  A command with a permit asks it while it holds the write token, right before its bytes leave; an error writes nothing.
//	I2  After [Conn.Revoke] returned no byte of that session, or of a session below it, is written.
//	I3  The reader never waits for a listener: each session has its own capped queue and its own goroutine.
//	I4  Every call ends by its deadline; one without a deadline gets [DefaultDeadline].
//	I5  Message ids stay below 2^31: beyond it the browser does not answer.
//	I6  A write that cannot finish ends with the link: a half-written message is never followed by another.
//
// Only targets/page imports this package.
package cdp
