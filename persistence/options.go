package persistence

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"reins/protocol"
)

// The defaults and bounds of the store.
const (
	reserveMax   = 64 << 20 // bytes that have to be free for an admission: the smaller of this
	reserveShare = 20       // and one part in so many of the disk
	ballastMax   = 4 << 20  // bytes of the ballast: the smaller of this
	ballastShare = 64       // and one part in so many of the disk
	openSlack    = 1 << 20  // bytes that opening needs beside what the log is long

	// HistoryAge is how long history is kept by default.
	HistoryAge = 30 * 24 * time.Hour
	// HistoryBytes is how much history is kept by default.
	HistoryBytes = 64 << 20

	storeDeadline = 10 * time.Second // a write that takes longer is a failing disk
	closeDeadline = 4 * time.Second  // each part of closing
	pollEvery     = time.Second      // how often the keeper looks at the disk
	reopenMost    = 30 * time.Second // between two tries to open anew

	queueLength = 1024 // writes waiting; the next one waits for room
	groupMost   = 256  // writes that share one sync
)

// Options are what a store is opened with. The zero value is what ships.
type Options struct {
	// Logger is told what a person may have to know; nil is silent.
	Logger *slog.Logger
	// Now is the clock of what is stored; nil takes time.Now.
	Now func() time.Time
	// Seams plants faults for tests. NoSync is the one of this package; with
	// RetryUncertain and LateOverwrites the store stands back, so that a fault
	// planted above it shows.
	Seams protocol.Seams
	// FS is the file system; nil is the real one. With another one marks live
	// in memory only, so that recovery takes every death for a power cut.
	FS vfs.FS
	// Free tells the bytes that are free and all there are; nil asks the file system.
	Free func(dir string) (free, total uint64, err error)
	// OnHealth is told when the store becomes able or unable to record. It is
	// called from one goroutine and does not block.
	OnHealth func(ok bool, message string)
	// HistoryAge and HistoryBytes bound the history; 0 takes the defaults.
	HistoryAge   time.Duration
	HistoryBytes int64

	poll     time.Duration // how often the keeper looks; tests shorten it
	deadline time.Duration // how long a write may take; tests shorten it
	mapped   bool          // marks are mapped also where FS is set: it lies on the real one
	kept     uint64        // receipts an owner keeps at least; tests lower it
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnHealth == nil {
		o.OnHealth = func(bool, string) {}
	}
	if o.HistoryAge == 0 {
		o.HistoryAge = HistoryAge
	}
	if o.HistoryBytes == 0 {
		o.HistoryBytes = HistoryBytes
	}
	if o.poll == 0 {
		o.poll = pollEvery
	}
	if o.deadline == 0 {
		o.deadline = storeDeadline
	}
	if o.kept == 0 {
		o.kept = protocol.ReceiptsKept
	}
	return o
}

func (o Options) planted(b protocol.Bug) bool { return o.Seams.Planted[b] }

func (o Options) now() protocol.Time { return protocol.Time(o.Now().UnixMilli()) }
