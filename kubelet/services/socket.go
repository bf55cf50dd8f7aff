package services

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	mdnetlink "github.com/mdlayher/netlink"
)

// socketBuffer takes the largest batch, a table with 100,000 backends, and its answers, in bytes.
const socketBuffer = 64 << 20

// dial gives the table's socket, for calls that are answered before ctx ends. It stays open between them: when one closes,
// the kernel waits until no packet uses what was removed, which is longer than all the rest of a small change.
func (t *Table) dial(ctx context.Context) (*nftables.Conn, error) {
	if t.conn == nil {
		if err := t.open(); err != nil {
			t.hangUp()
			return nil, fmt.Errorf("cannot talk to nftables: %w", err)
		}
	}
	end, _ := ctx.Deadline()
	if err := errors.Join(ctx.Err(), t.socket.SetDeadline(end)); err != nil {
		t.hangUp()
		return nil, fmt.Errorf("cannot talk to nftables: %w", err)
	}
	return t.conn, nil
}

func (t *Table) open() (err error) {
	options := nftables.WithSockOptions(func(socket *mdnetlink.Conn) error {
		t.socket = socket
		return errors.Join(socket.SetWriteBuffer(socketBuffer), socket.SetReadBuffer(socketBuffer))
	})
	t.conn, err = nftables.New(nftables.WithNetNSFd(int(t.ns)), nftables.AsLasting(), options)
	return err
}

// batch sends what build appends, all or nothing. After an error the socket may hold answers that nobody waits for, or half
// a batch, so it is given up.
func (t *Table) batch(ctx context.Context, build func(*nftables.Conn) error) error {
	conn, err := t.dial(ctx)
	if err != nil {
		return err
	}
	if err = build(conn); err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.hangUp()
	}
	return err
}

// hangUp closes the socket; the next call opens another.
func (t *Table) hangUp() {
	switch {
	case t.conn != nil:
		_ = t.conn.CloseLasting() // nothing is lost with it
	case t.socket != nil:
		_ = t.socket.Close()
	}
	t.conn, t.socket = nil, nil
}
