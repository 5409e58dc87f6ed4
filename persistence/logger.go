package persistence

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// dbLog takes what the database says. It says the same thousands of times a
// second when a disk is full, so that only a few lines in a while are passed on.
type dbLog struct {
	log   *slog.Logger
	fatal func(message string)
	rate  rate
}

// rate lets a few lines pass in a while, and counts the rest.
type rate struct {
	mu    sync.Mutex
	since time.Time // guarded by mu
	lines int       // guarded by mu
	left  int       // guarded by mu
}

const (
	logWindow = 10 * time.Second
	logLines  = 5 // a window
)

// Infof implements pebble.Logger.
func (l *dbLog) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("store: " + fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l *dbLog) Errorf(format string, args ...any) {
	if left, ok := l.rate.allow(); ok {
		l.log.Warn("store: "+fmt.Sprintf(format, args...), "left_out_before", left)
	}
}

// Fatalf implements pebble.Logger. The database expects it not to return; it
// does, after the freeze, and nothing the database says from then on counts.
func (l *dbLog) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.fatal(message)
	l.Errorf("%s", message)
}

func (l *rate) allow() (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) > logWindow {
		l.since, l.lines = now, 0
	}
	if l.lines++; l.lines > logLines {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}
