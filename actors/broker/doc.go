// Package broker takes requests from the transports, decides what can be decided
// before a scope is asked (bounds, connection, id, authority, budget), finds the
// scope, and answers. It implements [protocol.Handler] and knows no transport.
//
// The way of a write: DecodeRequest → connection → index (same id?) → policy and
// budget → scope.Do → answer. The way of a read: DecodeRead → wait until the
// target is there → scope.BeginLook → the adapter → scope.EndLook (token).
//
// Invariants:
//
//	I1  Every Do returns a receipt; every operation that was begun is ended in the index.
//	I2  A caller who stops waiting changes nothing: the operation goes on and its receipt is kept.
//	I3  Nothing is sent twice by the broker; only reads are tried again.
//	I4  Live parts are taken from the Directory, used, and never kept.
//
// Imported by supervisors (which write the Directory) and cmd.
package broker
