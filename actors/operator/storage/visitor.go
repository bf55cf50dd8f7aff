package storage

import (
	"bufio"
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// visitor is another process at its host: one goroutine reads what it asks, one writes what it is told, and what has to wait for the disk
// has a goroutine each. A process that is stopped holds up its own visitor alone: what it is told meanwhile is no more than the names of what has
// changed.
type visitor struct {
	host  *host
	conn  net.Conn
	group *supervision.Group
	// slots bound the requests that are being worked on.
	slots chan struct{}
	// signal holds a token when there is something to write.
	signal chan struct{}

	mu      sync.Mutex
	replies []reply
	feeds   map[uint64]*feed
	members SessionFeed
}

func newVisitor(ctx context.Context, h *host, conn net.Conn) *visitor {
	v := &visitor{
		host: h, conn: conn, slots: make(chan struct{}, requestsMost), signal: make(chan struct{}, 1), feeds: map[uint64]*feed{},
	}
	v.group = supervision.NewGroup(ctx, "visitor", func(f supervision.Fault) { h.log.Error("a connection to the store has failed", "reason", f.Err) })
	return v
}

// run serves the connection until one side ends it. Nothing that happens to it concerns others, so it returns no error.
func (v *visitor) run(context.Context) error {
	stop := context.AfterFunc(v.group.Context(), func() { _ = v.conn.Close() })
	defer stop()
	v.group.Go("read", v.read)
	v.group.Go("write", v.write)
	if err := v.group.Wait(); err != nil {
		v.host.log.Debug("a connection to the store has ended", "reason", err)
	}
	_ = v.conn.Close()
	v.leave()
	return nil
}

// leave ends what the process had.
func (v *visitor) leave() {
	v.host.unbind(v)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.feeds {
		f.Close()
	}
	if v.members != nil {
		v.members.Close()
	}
}

func (v *visitor) read(ctx context.Context) error {
	in := gob.NewDecoder(bufio.NewReader(v.conn))
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			return fmt.Errorf("cannot read a request: %w", err)
		}
		if r.Op != opWrite && r.Op != opAppend {
			v.say(v.answer(ctx, r))
			continue
		}
		select {
		case v.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		v.group.Go("request", func(ctx context.Context) error {
			defer func() { <-v.slots }()
			v.say(v.answer(ctx, r))
			return nil
		})
	}
}

// answer does what a request asks for.
func (v *visitor) answer(ctx context.Context, r request) reply {
	out := reply{Seq: r.Seq}
	var err error
	switch r.Op {
	case opHello:
		err = v.hello(r)
	case opGet:
		out.Object, err = v.host.GetObject(ctx, r.ID)
	case opLease:
		out.Lease, err = v.host.Lease(ctx, r.Manifest)
	case opPage:
		out, err = v.page(ctx, r)
	case opWrite:
		out.Revision, err = v.host.Write(ctx, r.Write)
	case opAppend:
		var done []Appended
		done, err = v.host.Append(ctx, r.Writes)
		out.Appended = wireAll(done)
	case opRenew, opEnd:
		err = v.session(ctx, r)
	case opWatch:
		err = v.watch(r)
	case opUnwatch:
		v.unwatch(r.Feed)
	default:
		err = fmt.Errorf("cannot do %d: it is not known", r.Op)
	}
	out.Fault = faultOf(err)
	return out
}

// hello begins: from now on the process is told of sessions.
func (v *visitor) hello(r request) error {
	if r.Version != wireVersion {
		return fmt.Errorf("cannot serve version %d, this is %d: %w", r.Version, wireVersion, ErrVersion)
	}
	v.host.bind(v, r.Sessions...)
	members := v.host.WatchSessions(v.wake)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.members = members
	return nil
}

func (v *visitor) page(ctx context.Context, r request) (out reply, err error) {
	out.Seq = r.Seq
	if r.Bucket != objects && r.Bucket != leases {
		return out, fmt.Errorf("cannot read %q: it is not known", r.Bucket)
	}
	out.Entries, out.Revision, out.More, err = v.host.page(ctx, r.Bucket, r.Prefix, r.After)
	return out, err
}

// session renews or ends a session of the process.
func (v *visitor) session(ctx context.Context, r request) error {
	if len(r.Sessions) != 1 {
		return fmt.Errorf("cannot renew or end %d sessions at once", len(r.Sessions))
	}
	if r.Op == opEnd {
		return v.host.local.End(ctx, r.Sessions[0])
	}
	v.host.bind(v, r.Sessions...)
	return v.host.local.Renew(ctx, r.Sessions[0], r.Leaving)
}

func (v *visitor) watch(r request) error {
	f, err := v.host.feeds.watch(r.From, r.Filter, v.wake)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.feeds[r.Feed] = f
	return nil
}

func (v *visitor) unwatch(feed uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.feeds[feed]; f != nil {
		f.Close()
		delete(v.feeds, feed)
	}
}

// say queues a reply; a request without a number wants none.
func (v *visitor) say(r reply) {
	if r.Seq == 0 {
		return
	}
	v.mu.Lock()
	v.replies = append(v.replies, r)
	v.mu.Unlock()
	v.wake()
}

// wake lets write look.
func (v *visitor) wake() {
	select {
	case v.signal <- struct{}{}:
	default:
	}
}

func (v *visitor) write(ctx context.Context) error {
	buffer := bufio.NewWriter(v.conn)
	out := gob.NewEncoder(buffer)
	for {
		select {
		case <-v.signal:
		case <-ctx.Done():
			return ctx.Err()
		}
		replies, err := v.news()
		if err != nil {
			return err
		}
		for _, r := range replies {
			if err := out.Encode(r); err != nil {
				return fmt.Errorf("cannot reply: %w", err)
			}
		}
		if err := buffer.Flush(); err != nil {
			return fmt.Errorf("cannot reply: %w", err)
		}
	}
}

// news are the replies there are, and what feeds have to tell.
func (v *visitor) news() ([]reply, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.replies
	v.replies = nil
	if v.members != nil {
		if m, any := v.members.Take(); any {
			out = append(out, reply{Members: &m})
		}
	}
	for id, f := range v.feeds {
		changes, at, err := f.take()
		if err != nil {
			return nil, err
		}
		for len(changes) > 0 {
			some := changes[:min(len(changes), pageEntries)]
			changes = changes[len(some):]
			news := reply{Feed: id, Changes: some}
			if len(changes) == 0 {
				news.Revision = at
			}
			out = append(out, news)
		}
	}
	return out, nil
}
