package protocol

import "time"

// Version is the major version of the protocol, the `v1` of every subject.
const Version = 1

// The limits. docs/limits.md has them with what happens when each is reached.
const (
	MaxRequestBytes  = 1 << 20  // a request message
	MaxReplyBytes    = 8 << 20  // a reply with its image
	MaxTextBytes     = 64 << 10 // text to fill or type
	MaxNameBytes     = 4 << 10  // a string of a locator
	MaxURLBytes      = 8 << 10
	MaxIDBytes       = 128
	MaxJSONDepth     = 16
	MaxPrimitives    = 50
	MaxDeadline      = 10 * time.Minute
	QueueTimeout     = 120 * time.Second
	WriteDeadline    = 45 * time.Second // from the head of the queue
	NavigateDeadline = 20 * time.Second
	ReadDeadline     = 6 * time.Second
	WaitDeadline     = 30 * time.Second
	MaxQueue         = 256 // operations waiting in one scope
	LeaseIdle        = 10 * time.Minute
	LeaseLost        = 30 * time.Second // after the owner's last connection
	CancelMemory     = 60 * time.Second
	ReceiptsKept     = 2048 // an owner
	ReceiptsAge      = 24 * time.Hour
	EpochReserve     = 1000
	BudgetWrites     = 80 // a user turn
	BudgetURLs       = 20 // distinct main-frame URLs, a Page and user turn
	ObservationBytes = 16 << 10
	ObservationMax   = 64 << 10
	ValueCodePoints  = 8192
	MaxPages         = 200
)
