package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
)

// TestToldReasonIsInTheAnswer: what whoever asks has to know is told to them; any other reason is kept for the log.
func TestToldReasonIsInTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := system(t)
		err := error(Told{errors.New("the file f is damaged")})
		h := New(Config{System: s, Root: "node", Store: func(context.Context) error { return err }, Log: slog.New(slog.DiscardHandler)})
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]store failed: the file f is damaged\n")
		err = fmt.Errorf("a secret: %w", errors.New("of the disk"))
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]store failed: reason withheld\n")
		s.Stop(context.Background())
	})
}
