package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// metaHost is the key in meta of the sessions of the process that has the store open.
const metaHost = "host"

// host has the file of a shared store open and serves the other processes.
type host struct {
	*local
	dir      *directory
	log      *slog.Logger
	announce bool
	group    *supervision.Group
	listener net.Listener

	mu sync.Mutex
	// own are the sessions of this process, bound who of the others has which session.
	own   map[lease.SessionID]bool
	bound map[lease.SessionID]*visitor
}

// newHost opens the store for all; the caller has the lock of the directory.
func newHost(ctx context.Context, dir *directory, o options) (*host, error) {
	l, err := openLocal(filepath.Join(dir.path, fileName), o)
	if err != nil {
		return nil, err
	}
	h := &host{local: l, dir: dir, log: o.log, announce: o.announce, own: map[lease.SessionID]bool{}, bound: map[lease.SessionID]*visitor{}}
	if err := h.inherit(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if h.listener, err = dir.listen(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	h.group = supervision.NewGroup(ctx, "host", func(f supervision.Fault) { h.log.Error("the host of the store has failed", "reason", f.Err) })
	context.AfterFunc(h.group.Context(), func() { _ = h.listener.Close() })
	h.group.Go("accept", h.accept)
	return h, nil
}

// inherit says of the sessions of the last host that their process is no more: it would have the lock.
func (h *host) inherit() error {
	var last []lease.SessionID
	err := h.back.view(func(t table) error {
		b := t.get(meta, metaHost)
		if b == nil {
			return nil
		}
		return json.Unmarshal(b, &last)
	})
	if err != nil {
		return fmt.Errorf("cannot read who had the store open: %w", err)
	}
	if h.announce {
		h.sessions.announce(true, last...)
	}
	return nil
}

// Renew notes durably which sessions are of this process before it opens them, for the next host to know.
func (h *host) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	if err := h.keep(ctx, id); err != nil {
		return err
	}
	return h.local.Renew(ctx, id, leaving)
}

func (h *host) keep(ctx context.Context, id lease.SessionID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own[id] {
		return nil
	}
	own := []lease.SessionID{id}
	for other := range h.own {
		own = append(own, other)
	}
	b, err := json.Marshal(own)
	if err != nil {
		return err
	}
	if err := h.writer.do(ctx, func(t *txn) error { return t.put(meta, metaHost, b) }); err != nil {
		return fmt.Errorf("cannot note session %s: %w", id, err)
	}
	h.own[id] = true
	return nil
}

func (h *host) watch(from Revision, f Filter, notify func()) (source, error) {
	feed, err := h.feeds.watch(from, f, notify)
	if err != nil {
		return nil, err
	}
	return feed, nil
}

func (h *host) gone() <-chan struct{} { return h.group.Context().Done() }

// close ends the connections and then lets go of the file.
func (h *host) close() error {
	h.group.Cancel()
	err := h.group.Wait()
	return errors.Join(err, h.local.Close())
}

func (h *host) accept(ctx context.Context) error {
	for {
		conn, err := h.listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // whoever came now has to look for the next host
			}
			return ctx.Err()
		}
		if err != nil { // as when there are too many open files: others may be closed
			h.log.Warn("cannot let another process in", "reason", err)
			if err := h.sessions.clock.Sleep(ctx, retryFault); err != nil {
				return err
			}
			continue
		}
		v := newVisitor(ctx, h, conn)
		h.group.Go("visitor", v.run)
	}
}

// bind notes that a session is of the process behind a connection; its process lives, then.
func (h *host) bind(v *visitor, ids ...lease.SessionID) {
	h.mu.Lock()
	for _, id := range ids {
		h.bound[id] = v
	}
	h.mu.Unlock()
	h.sessions.announce(false, ids...)
}

// unbind says of the sessions of a connection that has ended that their process has ended, too.
func (h *host) unbind(v *visitor) {
	h.mu.Lock()
	var ids []lease.SessionID
	for id, of := range h.bound {
		if of == v {
			ids = append(ids, id)
			delete(h.bound, id)
		}
	}
	h.mu.Unlock()
	if h.announce && h.group.Context().Err() == nil {
		h.sessions.announce(true, ids...)
	}
}
