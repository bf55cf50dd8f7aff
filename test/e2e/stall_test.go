package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// stallsEnv makes TestP01_StalledDisk stall that many times, the first longStalls of them for longStall.
	stallsEnv  = "NODEACTOR_STALLS"
	longStalls = 4
	longStall  = 30 * time.Second
	// onlyStall is long enough for a write that was not begun to be refused.
	onlyStall = 14 * time.Second
	// resumeLimit is what the node may take to work again once its disk does.
	resumeLimit = 2 * time.Second
	configMaps  = "/api/v1/namespaces/default/configmaps"
)

// traffic reads and writes until it is stopped, and notes what a client must never see.
type traffic struct {
	t    *testing.T
	base string
	http *http.Client
	stop chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex
	wrong    []string
	reads    int
	slowest  time.Duration // of the reads
	acked    map[string]bool
	refused  map[int]int // by status
	lastDone time.Time   // when a write last began that was done
}

// newTraffic makes a client of the node's API that touches no file.
func newTraffic(h *host) *traffic {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "admin.kubeconfig"))
	must(h.t, err)
	client, err := rest.HTTPClientFor(cfg)
	must(h.t, err)
	client.Timeout = 90 * time.Second
	return &traffic{t: h.t, base: cfg.Host, http: client, stop: make(chan struct{}), acked: map[string]bool{}, refused: map[int]int{}}
}

func (f *traffic) start(writers int) {
	f.loop(f.read)
	for range writers {
		f.loop(func() { f.write("w-") })
	}
}

func (f *traffic) loop(do func()) {
	f.wg.Go(func() {
		for {
			select {
			case <-f.stop:
				return
			case <-time.After(20 * time.Millisecond):
				do()
			}
		}
	})
}

func (f *traffic) end() {
	close(f.stop)
	f.wg.Wait()
}

func (f *traffic) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *traffic) read() {
	begin := time.Now()
	resp, err := f.http.Get(f.base + configMaps + "/kube-root-ca.crt")
	if err != nil {
		f.note("read: %v", err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		f.note("read: %s", resp.Status)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	f.slowest = max(f.slowest, time.Since(begin))
}

// write creates one object; it must be done, or refused in a way that tells what to do.
func (f *traffic) write(prefix string) (code int, body string) {
	begin := time.Now()
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":%q}}`, prefix)
	resp, err := f.http.Post(f.base+configMaps, "application/json", strings.NewReader(object))
	if err != nil {
		f.note("write: %v", err)
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case resp.StatusCode == http.StatusCreated:
		var made v1.ConfigMap
		if err := json.Unmarshal(b, &made); err == nil {
			f.acked[made.Name] = true
		}
		if begin.After(f.lastDone) {
			f.lastDone = begin
		}
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "",
		resp.StatusCode == http.StatusTooManyRequests:
		f.refused[resp.StatusCode]++
	default:
		f.wrong = append(f.wrong, fmt.Sprintf("write: %s %s", resp.Status, b))
	}
	return resp.StatusCode, string(b)
}

// awaitWrites waits until a write that began after since is done, and returns how long that took.
func (f *traffic) awaitWrites(since time.Time) time.Duration {
	f.t.Helper()
	for time.Since(since) < time.Minute {
		f.mu.Lock()
		done := f.lastDone.After(since)
		f.mu.Unlock()
		if done {
			return time.Since(since)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatal("writes are not done for a minute")
	return 0
}

// check reports what clients must not have seen, and looks for every acknowledged object.
func (f *traffic) check() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wrong) > 0 {
		f.t.Errorf("%d answers were wrong, the first: %s", len(f.wrong), f.wrong[0])
	}
	resp, err := f.http.Get(f.base + configMaps)
	must(f.t, err)
	defer resp.Body.Close()
	var list v1.ConfigMapList
	must(f.t, json.NewDecoder(resp.Body).Decode(&list))
	for _, m := range list.Items {
		delete(f.acked, m.Name)
	}
	if len(f.acked) > 0 {
		f.t.Errorf("%d acknowledged objects are lost: %v", len(f.acked), f.acked)
	}
	f.t.Logf("%d reads, the slowest took %s; %d objects; refused %v", f.reads, f.slowest.Round(time.Millisecond), len(list.Items), f.refused)
}

// faults is how many faults the node has counted.
func (f *traffic) faults() float64 {
	f.t.Helper()
	sum, _ := f.metric("nodeactor_faults_total{")
	return sum
}

// metric is the sum of the node's samples whose names and labels begin like that, and whether there is one.
func (f *traffic) metric(begin string) (sum float64, found bool) {
	f.t.Helper()
	resp, err := f.http.Get(f.base + "/metrics")
	must(f.t, err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || !strings.HasPrefix(lines.Text(), begin) {
			continue
		}
		n, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		must(f.t, err)
		sum, found = sum+n, true
	}
	return sum, found
}

// measured checks that the node tells how its store did.
func (f *traffic) measured() {
	f.t.Helper()
	for begin, least := range map[string]float64{
		"nodeactor_store_commit_seconds_count": float64(len(f.acked)), "nodeactor_store_fsync_total{file=\"log\"}": 1, "nodeactor_store_db_in_use_bytes": 1,
		"nodeactor_store_refused_writes_total{reason=\"stalled\"}": 1,
	} {
		if n, found := f.metric(begin); !found || n < least {
			f.t.Errorf("%s is %v (there: %v), want at least %v", begin, n, found, least)
		}
	}
}

// ready tells whether /readyz passes.
func (f *traffic) ready() bool {
	resp, err := f.http.Get(f.base + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// refusedBy begins a write while the disk does not answer: it must be told so before the time, which is waited for.
func (f *traffic) refusedBy(end time.Time) {
	f.t.Helper()
	time.Sleep(2 * time.Second) // by now the stall is known
	if code, body := f.write("stalled-"); code != http.StatusServiceUnavailable || !strings.Contains(body, "disk") || time.Now().After(end) {
		f.t.Errorf("a write on a disk that does not answer: %d after %s %s", code, time.Since(end), body)
	}
	time.Sleep(time.Until(end))
}

// TestP01_StalledDisk: while the disk does not answer the process lives, no part of it fails, reads go on, and writes wait or are told when
// to try again; everything works within two seconds of the disk's return; and the node tells how its store did (P26). One short stall, or as many as NODEACTOR_STALLS says.
func TestP01_StalledDisk(t *testing.T) {
	stalls := 1
	if s := os.Getenv(stallsEnv); s != "" {
		var err error
		stalls, err = strconv.Atoi(s)
		must(t, err)
	}
	h, d := newHostOn(t, 5, 600)
	h.start()
	f := newTraffic(h)
	before := f.faults()
	f.start(4)
	for i := range stalls {
		time.Sleep(300 * time.Millisecond)
		d.freeze()
		stalled := time.Now()
		switch {
		case stalls == 1:
			f.refusedBy(stalled.Add(onlyStall))
		case i < longStalls:
			f.refusedBy(stalled.Add(longStall))
		default:
			time.Sleep(time.Second)
		}
		d.thaw()
		thawed := time.Now()
		took := f.awaitWrites(thawed)
		for !f.ready() && time.Since(thawed) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		ready := time.Since(thawed)
		if took > resumeLimit || ready > resumeLimit {
			t.Errorf("stall %d: writes took %s, readiness %s to come back", i+1, took, ready)
		}
		if i < longStalls {
			t.Logf("stalled for %s: writes were back after %s, readiness after %s", thawed.Sub(stalled).Round(time.Millisecond), took.Round(time.Millisecond), ready.Round(time.Millisecond))
		}
	}
	f.end()
	h.runs()
	f.measured()
	if n := f.faults() - before; n != 0 {
		t.Errorf("%v faults were counted: %s", n, h.tail(60))
	}
	f.check()
}

// nearlyFull leaves so little of the disk that only what makes room is taken, and must go on.
func (f *traffic) nearlyFull(h *host, d *disk) {
	f.t.Helper()
	h.kubectl("create", "configmap", "doomed")
	d.fillBut(13 << 20)
	h.eventually(10*time.Second, "a write to be refused", func() error {
		if code, body := f.write("nearly-"); code != http.StatusServiceUnavailable || !strings.Contains(body, "free some space") {
			return notYet("it is answered with %d %s", code, body)
		}
		return nil
	})
	h.kubectl("delete", "configmap", "doomed")
	h.apply(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","namespace":"default"},"spec":{"holderIdentity":"me"}}`)
	if out := h.kubectl("get", "--raw", "/readyz?verbose"); !strings.Contains(out, "[~]store-writes: refused") {
		f.t.Errorf("/readyz says nothing of it: %s", out)
	}
}

// TestFullDiskKeepsTheNode: on a full disk the process lives, reads go on and writes are refused with the reason; they are taken again
// within two seconds of there being room.
func TestFullDiskKeepsTheNode(t *testing.T) {
	h, d := newHostOn(t, 6, 160)
	h.start()
	f := newTraffic(h)
	f.start(2)
	time.Sleep(300 * time.Millisecond)
	f.nearlyFull(h, d)
	d.fill()
	h.eventually(10*time.Second, "a write to be refused", func() error {
		if code, body := f.write("full-"); code != http.StatusServiceUnavailable || !strings.Contains(body, h.dir) {
			return notYet("it is answered with %d %s", code, body)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	d.drain()
	if took := f.awaitWrites(time.Now()); took > resumeLimit {
		t.Errorf("writes were taken again after %s", took)
	}
	f.end()
	h.runs()
	f.check()
}

// TestLostEngineIsReplaced: when the store's engine fails, reads and watches go on as if nothing had been, and writes are told when to try
// again until the next engine is there.
func TestLostEngineIsReplaced(t *testing.T) {
	h := newHost(t, 5)
	h.start()
	f := newTraffic(h)
	resp, err := f.http.Get(f.base + configMaps + "?watch=true&resourceVersion=" + h.kubectl("get", "configmaps", "-o", "jsonpath={.metadata.resourceVersion}"))
	must(t, err)
	defer resp.Body.Close()
	f.start(2)
	for range 3 {
		must(t, h.inject("node/store/engine", "panic"))
		if took := f.awaitWrites(time.Now()); took > 10*time.Second {
			t.Errorf("writes were taken again after %s", took)
		}
	}
	time.Sleep(2 * time.Second)
	f.end()
	if code, body := f.write("last-"); code != http.StatusCreated {
		t.Fatalf("the last write: %d %s", code, body)
	}
	seen := make(chan bool, 1)
	go func() {
		for lines := bufio.NewReader(resp.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil || bytes.Contains(line, []byte(`"name":"last-`)) {
				seen <- err == nil
				return
			}
		}
	}()
	select {
	case ok := <-seen:
		if !ok {
			t.Error("the watch ended with an engine")
		}
	case <-time.After(20 * time.Second):
		t.Error("the watch does not see what the next engine took")
	}
	f.check()
}
