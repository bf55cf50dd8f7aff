package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure remembers the first fatal condition and tells who waits for it.
type failure struct {
	once sync.Once
	ch   chan struct{}
	err  error
}

func newFailure() *failure { return &failure{ch: make(chan struct{})} }

func (f *failure) set(err error) {
	f.once.Do(func() { f.err = err; close(f.ch) })
}

func (f *failure) get() error {
	select {
	case <-f.ch:
		return f.err
	default:
		return nil
	}
}

// OnWrite implements zapcore.CheckWriteHook for fatal and panicking log lines: the member cannot go on, the process can.
// Only the goroutine that met the condition ends.
func (f *failure) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok {
			err = fmt.Errorf("%s: %w", e.Message, cause)
		}
	}
	f.set(err)
	runtime.Goexit()
}

// newLogger sends the member's log to log, one level lower: what is news to a log engine is detail to a node.
func newLogger(log *slog.Logger, f *failure) *zap.Logger {
	return zap.New(&slogCore{log: log}, zap.WithFatalHook(f), zap.WithPanicHook(f))
}

// slogCore is a zapcore.Core over slog.
type slogCore struct {
	log *slog.Logger
}

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return slog.LevelError
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn
	case l >= zapcore.WarnLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(l zapcore.Level) bool {
	return l > zapcore.InfoLevel && c.log.Enabled(context.Background(), slogLevel(l))
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{log: c.log.With(slogArgs(fields)...)}
}

// expected are complaints of a member about what is so on purpose or settles by itself at the first boot.
var expected = map[string]bool{
	"failed to update storage version":                          true,
	"quota exceeds the maximum value":                           true, // it lies above the store's own
	"Failed to detect schema version":                           true,
	"simple token is not cryptographically signed":              true,
	"use default bcrypt cost instead of the invalid given cost": true,
}

// Check implements zapcore.Core.
func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !expected[e.Message] {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), slogLevel(e.Level), e.Message, slogArgs(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

func slogArgs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	args := make([]any, 0, 2*len(enc.Fields))
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	return args
}
