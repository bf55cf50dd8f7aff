package linear

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// readyFor bounds the wait for a member that was started.
const readyFor = 60 * time.Second

// fleet is three members, each a process.
type fleet struct {
	t       *testing.T
	members []*process
}

// process is one member.
type process struct {
	name, dir, addr string
	spec            string

	mu     sync.Mutex
	cmd    *exec.Cmd
	client *rpc.Client
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f, all, dir := &fleet{t: t}, "", t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		p := &process{name: name, dir: filepath.Join(dir, name), addr: freeAddr(t, fmt.Sprintf("127.0.0.%d", 21+i))}
		f.members = append(f.members, p)
		all += " " + name + "=" + p.addr
	}
	for _, p := range f.members {
		p.spec = p.name + " " + p.dir + " " + p.addr + all
		p.start(t)
	}
	t.Cleanup(f.end)
	for _, p := range f.members {
		p.ready(t)
	}
	return f
}

func freeAddr(t *testing.T, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (f *fleet) end() {
	for _, p := range f.members {
		p.kill()
	}
	if f.t.Failed() {
		for _, p := range f.members {
			b, _ := os.ReadFile(p.dir + ".log")
			f.t.Logf("end of the log of %s:\n%s", p.name, b[max(0, len(b)-4000):])
		}
	}
}

func (p *process) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberEnv+"="+p.spec)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = os.Remove(socketOf(p.dir))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
}

// kill ends the member as a crash does.
func (p *process) kill() {
	p.mu.Lock()
	cmd, client := p.cmd, p.client
	p.cmd, p.client = nil, nil
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if client != nil {
		_ = client.Close()
	}
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

func (p *process) dial() (*rpc.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		return p.client, nil
	}
	if p.cmd == nil {
		return nil, errors.New("not running")
	}
	conn, err := net.DialTimeout("unix", socketOf(p.dir), time.Second)
	if err != nil {
		return nil, err
	}
	p.client = rpc.NewClient(conn)
	return p.client, nil
}

// errNotSent is returned when a call did not leave the client.
var errNotSent = errors.New("not sent")

// call asks the member; without errNotSent nobody knows what became of a call that failed.
func (p *process) call(ctx context.Context, method string, in, out any) error {
	c, err := p.dial()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	call := c.Go("Member."+method, in, out, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if errors.Is(call.Error, rpc.ErrShutdown) || errors.Is(call.Error, io.ErrUnexpectedEOF) {
		p.mu.Lock()
		if p.client == c {
			p.client = nil
		}
		p.mu.Unlock()
	}
	return call.Error
}

func (p *process) ready(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(readyFor); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var version uint64
		err := p.call(ctx, "Revision", struct{}{}, &version)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("member %s is not ready: %v", p.name, err)
		}
	}
}

// ask is one request of a client to a member. Most clients have given up before the member does.
func (p *process) ask(r Request, patience time.Duration) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var a Answer
	err := p.call(ctx, "Do", r, &a)
	switch {
	case errors.Is(err, errNotSent):
		return Answer{Outcome: Refused}
	case err != nil:
		return Answer{Outcome: Unknown}
	}
	return a
}

// isolate cuts a member off from the others.
func (f *fleet) isolate(victim *process) {
	for _, p := range f.members {
		if p != victim {
			f.cut(p, ipOf(victim.addr))
			f.cut(victim, ipOf(p.addr))
		}
	}
}

// cut makes p hang up on the addresses; without any it mends its lines.
func (f *fleet) cut(p *process, ips ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := p.call(ctx, "Cut", ips, new(struct{})); err != nil {
		f.t.Logf("cut %s: %v", p.name, err)
	}
}

func (f *fleet) mend() {
	for _, p := range f.members {
		f.cut(p)
	}
}

// stop ends a member in order.
func (f *fleet) stop(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*callFor)
	defer cancel()
	// The process may be gone before its answer.
	if err := p.call(ctx, "Stop", struct{}{}, new(struct{})); ctx.Err() != nil {
		f.t.Errorf("member %s does not end: %v", p.name, err)
	}
	p.kill()
}

func (f *fleet) leader() *process {
	for _, p := range f.members {
		var yes bool
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := p.call(ctx, "Leads", struct{}{}, &yes)
		cancel()
		if err == nil && yes {
			return p
		}
	}
	return nil
}

// faults are what happens to a member, and how it ends.
var faults = []struct {
	name string
	do   func(*fleet, *process)
	undo func(*fleet, *process)
}{
	{"crash", func(_ *fleet, p *process) { p.kill() }, func(f *fleet, p *process) { p.start(f.t) }},
	{"restart", (*fleet).stop, func(f *fleet, p *process) { p.start(f.t) }},
	{"pause", func(_ *fleet, p *process) { p.signal(syscall.SIGSTOP) }, func(_ *fleet, p *process) { p.signal(syscall.SIGCONT) }},
	{"partition", func(f *fleet, p *process) { f.isolate(p) }, func(f *fleet, _ *process) { f.mend() }},
}

// disturb does one fault after another until the time is over, and leaves the members well. Half of them hit the leader.
func (f *fleet) disturb(ctx context.Context, rnd *rand.Rand) map[string]int {
	done := map[string]int{}
	for next := rnd.IntN(len(faults)); ctx.Err() == nil; next++ {
		fault, victim := faults[next%len(faults)], f.members[rnd.IntN(len(f.members))]
		if l := f.leader(); l != nil && rnd.IntN(2) == 0 {
			victim = l
		}
		fault.do(f, victim)
		last := time.Duration(300+rnd.IntN(2700)) * time.Millisecond
		if rnd.IntN(5) == 0 {
			last *= 3
		}
		time.Sleep(last)
		fault.undo(f, victim)
		done[fault.name]++
		for _, p := range f.members {
			p.ready(f.t)
		}
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
	}
	return done
}

// setting is a number from the environment.
func setting(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
