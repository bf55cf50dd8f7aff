package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	manyNS, manyPrefix = "many", "many-"
	// manyPayload is the size in bytes of the data of each of the many ConfigMaps, manyWriters how many clients create them.
	manyPayload, manyWriters = 1024, 16
	// restartLimit bounds the time from a kill to the first list.
	restartLimit = 3 * time.Minute
)

// manyObjects fills a side with ConfigMaps, and measures its memory with them, one list of all, and its restart after a kill.
func manyObjects(ctx context.Context, o options, s side, r *results) error {
	if o.many == 0 {
		return nil
	}
	fill, err := fillMany(ctx, s, o.many)
	if err != nil {
		return fmt.Errorf("cannot create %d ConfigMaps: %w", o.many, err)
	}
	if fill["rss_mib"], err = settledRSS(ctx, s); err != nil {
		return err
	}
	r.add(s.label(), "many", fill)
	if err := listMany(ctx, o.many, s, r); err != nil {
		return err
	}
	return restartMany(ctx, o.many, s, r)
}

// fillMany creates the ConfigMaps from many clients at once.
func fillMany(ctx context.Context, s side, n int) (line, error) {
	clients, err := manyClients(s, manyWriters)
	if err != nil {
		return nil, err
	}
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manyNS}}
	if _, err := clients[0].CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	began, before := time.Now(), cpuOf(s)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			for i := int(next.Add(1)); i <= n && failed.Load() == nil; i = int(next.Add(1)) {
				if _, err := c.CoreV1().ConfigMaps(manyNS).Create(ctx, manyMap(i), metav1.CreateOptions{}); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	took := time.Since(began).Seconds()
	return line{"n": n, "seconds": took, "per_s": float64(n) / took, "cpu_s": map[string]any{"total": cpuOf(s) - before}}, nil
}

func manyMap(i int) *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%06d", manyPrefix, i), Labels: map[string]string{"app": "many"}},
		Data:       map[string]string{"payload": strings.Repeat("x", manyPayload)},
	}
}

// manyClients returns clients with a connection each, for either side.
func manyClients(s side, n int) ([]kubernetes.Interface, error) {
	var clients []kubernetes.Interface
	for range n {
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig())
		if err != nil {
			return nil, err
		}
		config.QPS, config.UserAgent = -1, "bench"
		// A dialer of its own makes a connection of its own: otherwise clients share one.
		config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func cpuOf(s side) float64 {
	used, err := usageOf(s.processes())
	if err != nil {
		return 0
	}
	return used.cpuSeconds
}

// settledRSS is the memory of a side once it has come to rest.
func settledRSS(ctx context.Context, s side) (float64, error) {
	if err := settle(ctx); err != nil {
		return 0, err
	}
	return memoryOf(s.processes(), "VmRSS:")
}

// memoryOf sums a field of the processes' status, in MiB.
func memoryOf(processes []process, field string) (float64, error) {
	var kib int64
	for _, p := range processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			return 0, fmt.Errorf("cannot watch %s: %w", p.name, err)
		}
		kib += fieldOf(strings.ReplaceAll(string(status), " kB", ""), field)
	}
	return float64(kib) / 1024, nil
}

// forgetPeaks makes the kernel note the processes' largest memory anew.
func forgetPeaks(processes []process) error {
	for _, p := range processes {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0); err != nil {
			return fmt.Errorf("cannot watch %s: %w", p.name, err)
		}
	}
	return nil
}

// listMany lists all objects, at once and in pages, and notes how much memory that took at most.
func listMany(ctx context.Context, n int, s side, r *results) error {
	clients, err := manyClients(s, 1)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		measure string
		list    func(context.Context, kubernetes.Interface) (int, error)
	}{{"many_list", listWhole}, {"many_pages", listPages}} {
		if err := forgetPeaks(s.processes()); err != nil {
			return err
		}
		began, before := time.Now(), cpuOf(s)
		got, err := l.list(ctx, clients[0])
		if err == nil && got != n {
			err = fmt.Errorf("listed %d objects, want %d", got, n)
		}
		if err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		peak, err := memoryOf(s.processes(), "VmHWM:")
		if err != nil {
			return err
		}
		r.add(s.label(), l.measure, line{"n": 1, "seconds": took, "peak_mib": peak, "cpu_s": map[string]any{"total": cpuOf(s) - before}})
	}
	return nil
}

// listWhole reads one consistent list of everything, and counts what it has without decoding it.
func listWhole(ctx context.Context, c kubernetes.Interface) (int, error) {
	body, err := c.CoreV1().RESTClient().Get().Namespace(manyNS).Resource("configmaps").Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return countNames(body)
}

// listPages reads the same in pages of 500, as kubectl does.
func listPages(ctx context.Context, c kubernetes.Interface) (n int, err error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := c.CoreV1().ConfigMaps(manyNS).List(ctx, options)
		if err != nil {
			return n, err
		}
		for i := range page.Items {
			// Either side may keep ConfigMaps of its own there.
			if strings.HasPrefix(page.Items[i].Name, manyPrefix) {
				n++
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return n, nil
		}
	}
}

// countNames counts the many ConfigMaps in a JSON list.
func countNames(body io.Reader) (n int, err error) {
	name := []byte(`"name":"` + manyPrefix)
	buffer := make([]byte, 0, 1<<20)
	for {
		got, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+got]
		n += bytes.Count(buffer, name)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		// What may be the beginning of a name is looked at again with what follows.
		keep := min(len(buffer), len(name)-1)
		buffer = append(buffer[:0], buffer[len(buffer)-keep:]...)
	}
}

// restartMany kills a side's processes, starts it again and times the first list that has everything.
func restartMany(ctx context.Context, n int, s side, r *results) error {
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	began := time.Now()
	kill(s.processes())
	up := make(chan error, 1)
	go func() {
		err := s.again(ctx)
		if err != nil {
			cancel() // nobody will answer
		}
		up <- err
	}()
	listed, err := firstList(ctx, s, n)
	if err = errors.Join(err, <-up); err != nil {
		return fmt.Errorf("cannot start again: %w", err)
	}
	rss, err := settledRSS(ctx, s)
	if err != nil {
		return err
	}
	peak, err := memoryOf(s.processes(), "VmHWM:")
	if err != nil {
		return err
	}
	r.add(s.label(), "many_restart", line{"n": 1, "seconds": listed.Sub(began).Seconds(), "rss_mib": rss, "peak_mib": peak})
	return nil
}

// kill ends processes as a crash does.
func kill(processes []process) {
	for _, p := range processes {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	for _, p := range processes {
		for ended(p.pid) != nil {
			time.Sleep(pollInterval)
		}
	}
}

// ended is nil once a process is gone, or only its parent has to hear of it. Its first thread may be dead while others still hold its ports.
func ended(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if len(threads) <= 1 && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z")) {
		return nil
	}
	return fmt.Errorf("process %d still runs", pid)
}

// firstList returns when the first list was complete.
func firstList(ctx context.Context, s side, n int) (time.Time, error) {
	clients, err := manyClients(s, 1)
	if err != nil {
		return time.Time{}, err
	}
	for {
		got, err := listWhole(ctx, clients[0])
		switch {
		case err == nil && got == n:
			return time.Now(), nil
		case err == nil:
			return time.Time{}, fmt.Errorf("the first list has %d objects of %d", got, n)
		case ctx.Err() != nil, apierrors.IsNotFound(err):
			return time.Time{}, err
		}
		time.Sleep(pollInterval)
	}
}
