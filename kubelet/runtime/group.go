package runtime

import (
	"context"

	"github.com/nodeactor/nodeactor/supervision"
)

// newGroup runs the goroutines that copy one call's streams. A panic in them, say of the caller's writer, is logged and
// ends that call's copying, nothing else.
func (e *Engine) newGroup(ctx context.Context, name string) *supervision.Group {
	return supervision.NewGroup(ctx, "runtime/"+name, func(f supervision.Fault) {
		e.cfg.Log.Error("stream copy panicked", "where", f.Message, "error", f.Err)
	})
}
