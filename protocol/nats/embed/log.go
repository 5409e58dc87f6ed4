package embed

import (
	"context"
	"fmt"
	"log/slog"
)

// serverLog takes the server's log. What the server calls fatal does not end
// the process: the first such line is why it did not start.
type serverLog struct {
	log   *slog.Logger
	fatal chan string
}

func (l *serverLog) say(level slog.Level, format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	l.log.Log(context.Background(), level, text, "part", "bus")
	return text
}

// Noticef implements [server.Logger]. The server's notices are details of ours.
func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Warnf implements [server.Logger].
func (l *serverLog) Warnf(format string, v ...any) { l.say(slog.LevelWarn, format, v) }

// Errorf implements [server.Logger].
func (l *serverLog) Errorf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Debugf implements [server.Logger].
func (l *serverLog) Debugf(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Tracef implements [server.Logger].
func (l *serverLog) Tracef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Fatalf implements [server.Logger].
func (l *serverLog) Fatalf(format string, v ...any) {
	text := l.say(slog.LevelError, format, v)
	select {
	case l.fatal <- text:
	default:
	}
}
