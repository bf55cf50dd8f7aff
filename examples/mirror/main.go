package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of the leader election: a leader that died is followed after leaseFor at the latest.
const (
	leaseFor   = 6 * time.Second
	renewFor   = 4 * time.Second
	retryEvery = time.Second
)

// workers is how many Mirrors are reconciled at once.
const workers = 4

// errLeaseLost is returned when another one has become the leader: whoever started this program starts it again.
var errLeaseLost = errors.New("another one leads now")

// options are the command line's.
type options struct {
	kubeconfig, identity, namespace string
}

func main() {
	var o options
	host, _ := os.Hostname()
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`file` that says where the API is; in a pod it is not needed")
	flag.StringVar(&o.identity, "id", fmt.Sprintf("%s-%d", host, os.Getpid()), "`name` of this one among several")
	flag.StringVar(&o.namespace, "lease-namespace", "default", "`namespace` of the Lease by which a leader is elected")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		slog.Error("the operator ends", "why", err)
		os.Exit(1)
	}
}

// run works whenever it leads, until ctx ends.
func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot find the API, name it with --kubeconfig: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return lead(ctx, o, typed, func(ctx context.Context) error { return newController(typed, untyped).run(ctx) })
}

// lead calls work when this one has become the leader, and gives the Lease back when ctx ends.
func lead(ctx context.Context, o options, client kubernetes.Interface, work func(context.Context) error) error {
	leading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.namespace, Name: "mirror-operator"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseFor, RenewDeadline: renewFor, RetryPeriod: retryEvery, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				slog.Info("leading", "id", o.identity)
				cancel(work(ctx))
			},
			OnStoppedLeading: func() { slog.Info("not leading", "id", o.identity) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(leading)
	switch cause := context.Cause(leading); {
	case ctx.Err() == nil && (cause == nil || errors.Is(cause, context.Canceled)):
		return errLeaseLost
	case errors.Is(cause, context.Canceled):
		return nil
	default:
		return cause
	}
}
