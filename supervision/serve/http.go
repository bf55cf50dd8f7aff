package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// HTTP answers on l with srv until ctx ends, and closes l: over TLS when srv has a
// TLSConfig. Open requests get grace to finish. What net/http has to say about clients
// goes to log at debug level. It returns ctx's error after an orderly end.
func HTTP(ctx context.Context, srv *http.Server, l net.Listener, grace time.Duration, log *slog.Logger) error {
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if srv.Shutdown(limited) != nil {
			srv.Close()
		}
	})
	defer func() {
		if stop() {
			srv.Close() // it ended by itself: nobody else ends what is open
		}
	}()
	var err error
	if srv.TLSConfig != nil {
		err = srv.ServeTLS(corked{l}, "", "")
	} else {
		err = srv.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return ctx.Err()
	}
	return err
}
