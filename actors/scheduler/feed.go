package scheduler

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// listed is the whole state of the cluster at one moment.
type listed struct {
	nodes []*v1.Node
	pods  []*v1.Pod
}

// follow lists, then passes changes on until the context ends; after a loss it lists again.
func follow(ctx context.Context, source Source, put func(any)) error {
	feed := source.Follow()
	defer feed.Close()
	put(listed{source.Nodes(), source.Pods()})
	for {
		changes, err := feed.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrLost):
			put(listed{source.Nodes(), source.Pods()})
		case err != nil:
			return err
		default:
			put(changes)
		}
	}
}
