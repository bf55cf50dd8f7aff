package storage

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// guest is the role of a process that asks the host for everything.
type guest struct {
	conn  net.Conn
	group *supervision.Group
	// signal holds a token when there is something to send.
	signal chan struct{}

	mu      sync.Mutex
	queue   []*exchange
	seq     uint64
	calls   map[uint64]*exchange
	feeds   map[uint64]*guestFeed
	members Membership
	// knows is set once the host has told of sessions.
	knows    bool
	watchers []*guestSessions
}

// exchange is a request; then is called with its reply, under the lock, and returns who is to be notified. Nil waits for none.
type exchange struct {
	request
	then func(reply) (notify func())
}

// newGuest connects to the host, and says which sessions this process has.
func newGuest(ctx context.Context, dir *directory, log *slog.Logger, own []lease.SessionID) (*guest, error) {
	conn, err := dir.dial()
	if err != nil {
		return nil, fmt.Errorf("cannot reach the process that has the store open: %w", err)
	}
	g := &guest{conn: conn, signal: make(chan struct{}, 1), calls: map[uint64]*exchange{}, feeds: map[uint64]*guestFeed{}}
	g.group = supervision.NewGroup(ctx, "guest", func(f supervision.Fault) { log.Error("the connection to the store has failed", "reason", f.Err) })
	context.AfterFunc(g.group.Context(), func() { _ = conn.Close() })
	g.group.Go("read", g.read)
	g.group.Go("write", g.write)
	if _, err := g.ask(ctx, request{Op: opHello, Version: wireVersion, Sessions: own}); err != nil {
		_ = g.close()
		return nil, err
	}
	return g, nil
}

func (g *guest) gone() <-chan struct{} { return g.group.Context().Done() }

func (g *guest) close() error {
	g.group.Cancel()
	_ = g.group.Wait() // what ended the connection is of no interest any more
	return nil
}

// ask sends a request and waits for the reply. ErrAway is returned when the host has gone meanwhile.
func (g *guest) ask(ctx context.Context, r request) (reply, error) {
	done := make(chan reply, 1)
	call := g.send(r, func(r reply) func() { done <- r; return nil })
	select {
	case out := <-done:
		return out, out.Fault.err()
	case <-ctx.Done():
		g.withdraw(call)
		return reply{}, ctx.Err()
	case <-g.gone():
		return reply{}, ErrAway
	}
}

// send queues a request.
func (g *guest) send(r request, then func(reply) func()) *exchange {
	call := &exchange{request: r, then: then}
	g.mu.Lock()
	if then != nil {
		g.seq++
		call.Seq = g.seq
		g.calls[call.Seq] = call
	}
	g.queue = append(g.queue, call)
	g.mu.Unlock()
	select {
	case g.signal <- struct{}{}:
	default:
	}
	return call
}

// withdraw forgets a request that nobody waits for any more; if it was not sent yet, it is not.
func (g *guest) withdraw(call *exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, call.Seq)
	if i := slices.Index(g.queue, call); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

func (g *guest) queued() []*exchange {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := g.queue
	g.queue = nil
	return calls
}

// write sends requests; those that wait together go together.
func (g *guest) write(ctx context.Context) error {
	buffer := bufio.NewWriter(g.conn)
	out := gob.NewEncoder(buffer)
	for {
		select {
		case <-g.signal:
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, call := range g.queued() {
			if err := out.Encode(call.request); err != nil {
				return fmt.Errorf("cannot send a request: %w", err)
			}
		}
		if err := buffer.Flush(); err != nil {
			return fmt.Errorf("cannot send a request: %w", err)
		}
	}
}

func (g *guest) read(context.Context) error {
	in := gob.NewDecoder(bufio.NewReader(g.conn))
	for {
		var r reply
		if err := in.Decode(&r); err != nil {
			return fmt.Errorf("cannot read a reply: %w", err)
		}
		for _, notify := range g.take(r) {
			notify()
		}
	}
}

// take hands a reply to whom it is for, and returns who is to be notified.
func (g *guest) take(r reply) (tell []func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case r.Seq != 0:
		call := g.calls[r.Seq]
		if delete(g.calls, r.Seq); call == nil {
			return nil
		}
		if notify := call.then(r); notify != nil {
			tell = append(tell, notify)
		}
	case r.Feed != 0:
		if f := g.feeds[r.Feed]; f != nil {
			f.add(r.Changes, r.Revision)
			tell = append(tell, f.notify)
		}
	case r.Members != nil:
		g.members, g.knows = *r.Members, true
		for _, w := range g.watchers {
			w.fresh = true
			tell = append(tell, w.notify)
		}
	}
	return tell
}

// GetObject implements role.
func (g *guest) GetObject(ctx context.Context, id ID) (Object, error) {
	out, err := g.ask(ctx, request{Op: opGet, ID: id})
	return out.Object, err
}

// Lease implements role.
func (g *guest) Lease(ctx context.Context, manifest string) (lease.Stored, error) {
	out, err := g.ask(ctx, request{Op: opLease, Manifest: manifest})
	return out.Lease, err
}

// Write implements role.
func (g *guest) Write(ctx context.Context, w Write) (Revision, error) {
	if err := w.check(); err != nil {
		return 0, err
	}
	out, err := g.ask(ctx, request{Op: opWrite, Write: w})
	if errors.Is(err, ErrAway) {
		err = fmt.Errorf("cannot write %s: %w", w.ID.Key(), err)
	}
	return out.Revision, err
}

// Append implements role.
func (g *guest) Append(ctx context.Context, writes []lease.Write) ([]Appended, error) {
	out, err := g.ask(ctx, request{Op: opAppend, Writes: writes})
	if err == nil && len(out.Appended) != len(writes) {
		err = fmt.Errorf("cannot write %d leases: the answer is for %d", len(writes), len(out.Appended))
	}
	return unwireAll(out.Appended), err
}

// Renew implements role.
func (g *guest) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	_, err := g.ask(ctx, request{Op: opRenew, Sessions: []lease.SessionID{id}, Leaving: leaving})
	return err
}

// End implements role.
func (g *guest) End(ctx context.Context, id lease.SessionID) error {
	_, err := g.ask(ctx, request{Op: opEnd, Sessions: []lease.SessionID{id}})
	return err
}

func (g *guest) page(ctx context.Context, bucket, prefix, after string) ([]entry, Revision, bool, error) {
	out, err := g.ask(ctx, request{Op: opPage, Bucket: bucket, Prefix: prefix, After: after})
	return out.Entries, out.Revision, out.More, err
}
