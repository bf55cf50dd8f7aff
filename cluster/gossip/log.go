package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// bridge gives memberlist, which writes lines like "[WARN] memberlist: ...", to the daemon's log.
func bridge(to *slog.Logger) *log.Logger { return log.New(lineWriter{to}, "", 0) }

type lineWriter struct{ to *slog.Logger }

var levels = map[string]slog.Level{"[DEBUG]": slog.LevelDebug, "[INFO]": slog.LevelDebug, "[WARN]": slog.LevelInfo, "[ERR]": slog.LevelWarn}

// Write takes one line. What memberlist calls an error is mostly a peer that is away.
func (w lineWriter) Write(line []byte) (int, error) {
	level, text, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	l, ok := levels[string(level)]
	if !ok {
		l, text = slog.LevelInfo, bytes.TrimSpace(line)
	}
	w.to.Log(context.Background(), l, string(bytes.TrimPrefix(text, []byte("memberlist: "))))
	return len(line), nil
}
