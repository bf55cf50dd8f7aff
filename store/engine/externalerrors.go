package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// translateRemote maps the errors of an etcd elsewhere to this package's. ctx is the caller's: what is its own stays its own.
func translateRemote(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	for _, own := range []error{ErrCompacted, ErrEndpoints, ErrDamaged, ErrClosed, ErrAway} {
		if errors.Is(err, own) {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, ErrCompacted) {
		return err // it has been translated
	}
	err = rpctypes.Error(err)
	for _, t := range remoteErrors {
		if errors.Is(err, t.from) {
			return fmt.Errorf("%w: %s", t.to, rpctypes.ErrorDesc(err))
		}
	}
	return byCode(err)
}

// remoteErrors are those that mean something of their own.
var remoteErrors = []struct{ from, to error }{
	{rpctypes.ErrCompacted, ErrCompacted},
	{rpctypes.ErrFutureRev, ErrFuture},
	{rpctypes.ErrRequestTooLarge, ErrTooLarge},
	{rpctypes.ErrNoSpace, ErrNoSpace},
	{rpctypes.ErrTooManyRequests, ErrStalled},
	{rpctypes.ErrPermissionDenied, ErrEndpoints},
	{rpctypes.ErrUserEmpty, ErrEndpoints},
}

func byCode(err error) error {
	desc := rpctypes.ErrorDesc(err)
	switch code(err) {
	case codes.ResourceExhausted:
		if strings.Contains(desc, "larger than max") {
			return fmt.Errorf("%w: %s", ErrTooLarge, desc)
		}
		return fmt.Errorf("%w: %s", ErrStalled, desc)
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Unknown, codes.Internal:
		return fmt.Errorf("%w: %s", ErrAway, desc)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: no answer in time", ErrAway)
	}
	return err
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
