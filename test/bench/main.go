package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options is what one run is told.
type options struct {
	kit, kbench, peerBin, bin, out string
	rounds                         int
	idle                           time.Duration
	only                           string
	podStarts, many                int
	blast                          time.Duration
	large, skipPeer, skipOwn       bool
	pprof                          string
	kbenchArgs                     []string
}

// loadMeasures are the kit's measures that run on both sides, in the kit's order.
const loadMeasures = "rss_idle,create_seq,create_conc,get_seq,update_seq,list,watch,watch_fanout,delete_seq,deploy,rss_after"

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		if err := runWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.kit, "kit", os.Getenv("BENCH_KIT"), "`folder` of the benchmark kit")
	flag.StringVar(&o.kbench, "kbench", "", "the kit's load `program`, built")
	flag.StringVar(&o.peerBin, "peer-bin", os.Getenv("PEER_BIN"), "`folder` of the upstream programs")
	flag.StringVar(&o.bin, "bin", "bin", "`folder` of nodeactor's programs")
	flag.StringVar(&o.out, "out", "bench.jsonl", "`file` the raw JSON lines are added to")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, in which the sides take turns")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long idleness is watched, once per side; 0 leaves it out")
	flag.StringVar(&o.only, "only", loadMeasures, "the kit's `measures` to run; operators runs only what package operator is measured by, without kit and peer")
	flag.IntVar(&o.podStarts, "pod-starts", 50, "pods whose start is timed on nodeactor; 0 leaves it out")
	flag.IntVar(&o.many, "many", 100000, "`ConfigMaps` of 1 KiB, or manifests of operators, with which memory, lists and a restart are measured, once per side; 0 leaves it out")
	flag.DurationVar(&o.blast, "blast", 80*time.Second, "how long the API is loaded beside a controller that panics and one that does not, in turns; 0 leaves it out")
	flag.BoolVar(&o.large, "large", false, "also schedule 10,000 pods on 5,000 fake nodes, on nodeactor alone")
	flag.BoolVar(&o.skipPeer, "skip-peer", false, "measure nodeactor alone")
	flag.BoolVar(&o.skipOwn, "skip-own", false, "measure the peer alone")
	flag.StringVar(&o.pprof, "pprof", "", "`folder` for CPU profiles of nodeactor under each load; makes it slower")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "bench [flags] [-- flags for the kit's load program]")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.kbenchArgs = flag.Args()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	out, err := os.OpenFile(o.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	results := &results{out: out}
	work, err := os.MkdirTemp("", "nabench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if o.only == operatorsOnly {
		err := measureOperators(ctx, o, results, work)
		fmt.Print(results.table())
		return err
	}
	results.sizes(o)
	for round := range o.rounds {
		for _, s := range sidesOf(o, work, round) {
			if err := measure(ctx, o, s, results, round); err != nil {
				return fmt.Errorf("cannot measure %s in round %d: %w", s.label(), round+1, err)
			}
		}
	}
	fmt.Print(results.table())
	return nil
}

// sidesOf makes the round's sides; the one that goes first changes with every round, so that neither always meets the warmer machine.
func sidesOf(o options, work string, round int) []side {
	var sides []side
	dir := func(name string) string { return filepath.Join(work, fmt.Sprintf("%s%d", name, round)) }
	if !o.skipPeer {
		sides = append(sides, &peer{options: o, dir: dir("peer")})
	}
	if !o.skipOwn {
		sides = append(sides, &own{options: o, dir: dir("own")})
	}
	if round%2 == 1 && len(sides) == 2 {
		sides[0], sides[1] = sides[1], sides[0]
	}
	return sides
}

// measure runs one side once, from its first start on an empty directory to its end.
func measure(ctx context.Context, o options, s side, r *results, round int) (err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	boot, err := s.start(ctx)
	if err != nil {
		return err
	}
	r.add(s.label(), "boot", boot)
	if err := settle(ctx); err != nil {
		return err
	}
	if round == 0 && o.idle > 0 {
		finish := s.profile("idle")
		line, err := watchIdle(ctx, s.processes(), o.idle)
		finish()
		if err != nil {
			return err
		}
		r.add(s.label(), "idle", line)
	}
	if err := load(ctx, o, s, r); err != nil {
		return err
	}
	if err := s.extra(ctx, r, round); err != nil || round > 0 {
		return err
	}
	return manyObjects(ctx, o, s, r)
}

// settle gives a side that has just started the time to finish what it does once.
func settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleTime):
		return nil
	}
}

// measuresOf splits the list of measures so that each can be profiled by itself.
func measuresOf(o options) []string {
	if o.pprof == "" {
		return []string{o.only}
	}
	return strings.Split(o.only, ",")
}
