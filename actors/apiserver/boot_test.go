package apiserver

import (
	"context"
	"io"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/store"
)

// BenchmarkNew measures assembling and starting, BenchmarkBootstrap a first and BenchmarkRebootstrap a second bootstrap.
func BenchmarkNew(b *testing.B)         { benchmarkBoot(b, 0) }
func BenchmarkBootstrap(b *testing.B)   { benchmarkBoot(b, 1) }
func BenchmarkRebootstrap(b *testing.B) { benchmarkBoot(b, 2) }

// cpu returns the processor time this process has used: on a shared machine the steadier clock.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func benchmarkBoot(b *testing.B, bootstraps int) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var used time.Duration
	defer func() { b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op") }()
	for range b.N {
		var start time.Duration
		b.StopTimer()
		dir := b.TempDir()
		id, err := identity.Load(dir + "/pki")
		if err != nil {
			b.Fatal(err)
		}
		db, err := store.Open(context.Background(), store.Config{Dir: dir + "/store", NodeName: "n", Log: log})
		if err != nil {
			b.Fatal(err)
		}
		if bootstraps == 0 {
			b.StartTimer()
			start = cpu()
		}
		s, err := New(context.Background(), Config{Store: db, Identity: id, Log: log, AdvertiseAddr: "192.0.2.1:6443"})
		if err != nil {
			b.Fatal(err)
		}
		for i := range bootstraps {
			if i == bootstraps-1 {
				b.StartTimer()
				start = cpu()
			}
			if err := s.Bootstrap(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		used += cpu() - start
		s.Close()
		if err := db.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
