package protocol

import "context"

// Handler is what a transport calls. Every method answers within the request's
// deadline and never panics. Implementations do not know the transport.
type Handler interface {
	// Hello registers a connection of an owner and returns its nonce.
	Hello(ctx context.Context, owner OwnerID, h Hello) HelloReply
	// Alive says that the connection still lives; Bye that it ended.
	Alive(c Caller)
	Bye(c Caller)
	// Do runs a write and returns its receipt. raw is the request as it came;
	// an undecodable one is answered with a refusal.
	Do(ctx context.Context, c Caller, raw []byte) Receipt
	// Cancel asks that an operation of this owner stops.
	Cancel(ctx context.Context, c Caller, id OperationID) Receipt
	// Receipt returns the recorded receipt, or refused/unknown_operation.
	Receipt(ctx context.Context, c Caller, id OperationID) Receipt
	// Read looks at a target.
	Read(ctx context.Context, c Caller, raw []byte) ReadReply
	// Claim and Release take and give up the lease of a Page.
	Claim(ctx context.Context, c Caller, id ResourceID) *Problem
	Release(ctx context.Context, c Caller, id ResourceID) *Problem
	// Restart starts a failed resource again, or a ready one anew.
	Restart(ctx context.Context, c Caller, id ResourceID) *Problem
	Resources(ctx context.Context, c Caller) ([]Record, *Problem)
	History(ctx context.Context, c Caller, q HistoryQuery) ([]HistoryEntry, *Problem)
	// Demand asks for preview frames for a while.
	Demand(ctx context.Context, c Caller, d Demand) *Problem
	Status(ctx context.Context, c Caller) Status
}

// Publisher is how the daemon tells everybody something. It never blocks: where
// a transport cannot keep up it drops the oldest.
type Publisher interface {
	Cue(Cue)
	Frame(FrameHeader, []byte)
	Record(Record)
}
