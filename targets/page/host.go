package page

import (
	"log/slog"
	"time"

	"reins/protocol"
)

// CookieStore keeps the cookies of the profile over an unclean end.
type CookieStore interface {
	// Load returns what was saved last and whether the end before was clean.
	Load() (cookies []byte, clean bool, err error)
	Save(cookies []byte) error
	MarkClean(clean bool) error
}

// Options are the settings of a [Host].
type Options struct {
	// Browser is the path of the browser's own binary; empty finds one.
	Browser string
	// ProfileDir is the profile's directory.
	ProfileDir string
	// DownloadDir is where finished downloads are put.
	DownloadDir     string
	Headful         bool
	ExtraFlags      []string
	UID             int
	Cookies         CookieStore
	Logger          *slog.Logger
	Seams           protocol.Seams
	MaxPages        int
	BarrierDeadline time.Duration
}

// Host is one browser process and its Pages. It implements targets.Host.
type Host struct {
	opts Options
}

// New makes a host; nothing is started.
func New(opts Options) *Host { return &Host{opts: opts} }
