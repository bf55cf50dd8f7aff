package operator

import "context"

// Parallel runs do for 0..n-1 and returns the first error.
func Parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	for i := range n {
		if err := do(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
