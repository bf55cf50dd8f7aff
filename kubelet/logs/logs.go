// Package logs reads container logs: lines of time, stream, a tag for partial lines, and text.
package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	// followEvery is how often a followed log is looked at for more.
	followEvery = 100 * time.Millisecond
	// blockSize is the unit in which a log is read from its end.
	blockSize = 16 << 10
	// maxLine bounds one line of a log file; writers cut at 16 KiB.
	maxLine = 1 << 20
	newline = '\n'
)

// Options choose what of a log is wanted.
type Options struct {
	// Follow waits for more until Ended is closed and everything is read.
	Follow bool
	// TailLines is how many lines from the end; nil is all.
	TailLines *int64
	// Since leaves out older lines.
	Since time.Time
	// Timestamps puts the time before each line.
	Timestamps bool
	// LimitBytes ends the output after that many bytes; nil is no limit.
	LimitBytes *int64
	// Stream is "stdout" or "stderr"; empty is both.
	Stream string
	// Ended is closed when nothing will be written any more.
	Ended <-chan struct{}
	// Sleep waits between two looks.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Line is one line of a log file.
type Line struct {
	Time    time.Time
	Stamp   []byte
	Stream  string
	Partial bool
	// Text is the line with its newline, or without one when Partial.
	Text []byte
}

// ErrFormat is returned for what is not a line of a container log.
var ErrFormat = errors.New("not a line of a container log")

// Parse takes one line apart. The result shares memory with b.
func Parse(b []byte) (Line, error) {
	stamp, rest, ok1 := bytes.Cut(b, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tag, text, _ := bytes.Cut(bytes.TrimSuffix(rest, []byte{newline}), []byte{' '})
	if !ok1 || !ok2 {
		return Line{}, ErrFormat
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	l := Line{Time: at, Stamp: stamp, Stream: string(stream), Partial: bytes.HasPrefix(tag, []byte{'P'}), Text: text}
	if !l.Partial {
		l.Text = append(bytes.Clone(text), newline)
	}
	return l, nil
}

// Copy writes the wanted part of the log at path to w. It returns nil when the log ended or w took no more because of
// LimitBytes, and the context's error when that ended.
func Copy(ctx context.Context, w io.Writer, path string, o Options) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read log: %w", err)
	}
	defer func() { f.Close() }()
	if o.TailLines != nil {
		if err := seekTail(f, *o.TailLines); err != nil {
			return fmt.Errorf("cannot read log: %w", err)
		}
	}
	c := &copier{w: w, o: o, left: -1}
	if o.LimitBytes != nil {
		c.left = *o.LimitBytes
	}
	for {
		ended := closed(o.Ended)
		if err := c.drain(ctx, f); err != nil || c.left == 0 {
			return err
		}
		if fresh := replaced(path, f); fresh != nil {
			if err := c.drain(ctx, f); err != nil {
				return err
			}
			f.Close()
			f, c.rest = fresh, nil
			continue
		}
		if !o.Follow || ended {
			return nil
		}
		if err := o.Sleep(ctx, followEvery); err != nil {
			return err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// replaced opens path anew when it is another file than f, as after a rotation.
func replaced(path string, f *os.File) *os.File {
	a, err1 := os.Stat(path)
	b, err2 := f.Stat()
	if err1 != nil || err2 != nil || os.SameFile(a, b) {
		return nil
	}
	fresh, err := os.Open(path)
	if err != nil {
		return nil
	}
	return fresh
}

// copier carries an incomplete last line from one look to the next.
type copier struct {
	w     io.Writer
	o     Options
	rest  []byte
	left  int64 // bytes still wanted, negative without limit
	inMid bool  // the last line written was partial
}

// drain copies what f has now.
func (c *copier) drain(ctx context.Context, f io.Reader) error {
	r := bufio.NewReaderSize(f, blockSize)
	for ctx.Err() == nil && c.left != 0 {
		b, err := r.ReadBytes(newline)
		c.rest = append(c.rest, b...)
		if err != nil {
			if errors.Is(err, io.EOF) && len(c.rest) <= maxLine {
				return nil
			}
			return err
		}
		line := c.rest
		c.rest = nil
		if err := c.write(line); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *copier) write(b []byte) error {
	l, err := Parse(b)
	if err != nil || l.Time.Before(c.o.Since) || c.o.Stream != "" && l.Stream != c.o.Stream {
		return nil
	}
	out := l.Text
	if c.o.Timestamps && !c.inMid {
		out = append(append(bytes.Clone(l.Stamp), ' '), l.Text...)
	}
	c.inMid = l.Partial
	if c.left >= 0 {
		out = out[:min(int64(len(out)), c.left)]
		c.left -= int64(len(out))
	}
	_, err = c.w.Write(out)
	return err
}

// seekTail places f at the beginning of the n-th line from the end.
func seekTail(f *os.File, n int64) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || n <= 0 {
		return err
	}
	buf := make([]byte, blockSize)
	seen := int64(0)
	for at := end; at > 0; {
		size := min(int64(blockSize), at)
		at -= size
		if _, err := f.ReadAt(buf[:size], at); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			if buf[i] != newline || at+i == end-1 {
				continue
			}
			if seen++; seen == n {
				_, err := f.Seek(at+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// Tail is the text of the last lines of a log, at most limit bytes of it.
func Tail(path string, lines int64, limit int) (string, error) {
	var b bytes.Buffer
	err := Copy(context.Background(), &b, path, Options{TailLines: &lines})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text := b.Bytes()
	if len(text) > limit {
		text = text[len(text)-limit:]
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}
