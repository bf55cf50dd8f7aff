package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/nodeactor/nodeactor/store/snapshot"
)

const (
	// snapshotsPath is where the local socket saves the store.
	snapshotsPath = "/snapshots"
	// sizeHeader says about how many bytes follow; errorTrailer, behind them, why they are not all.
	sizeHeader   = "Nodeactor-About-Bytes"
	errorTrailer = "Nodeactor-Error"
	// progressEvery is the least time between two lines about how far a save is.
	progressEvery = 100 * time.Millisecond
)

// SnapshotLine is one line of the answer to a save: how far it is, then how it ended.
type SnapshotLine struct {
	Written int64          `json:"written,omitempty"`
	Total   int64          `json:"total,omitempty"` // about
	Saved   *snapshot.Info `json:"saved,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// routes adds what the socket offers of snapshots.
func (s *saver) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST "+snapshotsPath, s.serveSave)
	mux.HandleFunc("GET "+snapshotsPath+"/stream", s.serveStream)
}

// serveSave saves into the data directory and tells how far it is, line by line.
func (s *saver) serveSave(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	var said time.Time
	info, err := s.save(r.Context(), snapshot.Manual, func(written, total int64) {
		if now := s.clock.Now(); now.Sub(said) >= progressEvery {
			said = now
			_ = lines.Encode(SnapshotLine{Written: written, Total: total})
			_ = flush.Flush()
		}
	})
	if err != nil {
		_ = lines.Encode(SnapshotLine{Error: err.Error()})
		return
	}
	_ = lines.Encode(SnapshotLine{Saved: &info})
}

// serveStream answers with a snapshot of this moment.
func (s *saver) serveStream(w http.ResponseWriter, r *http.Request) {
	from := s.source()
	if from == nil {
		http.Error(w, "cannot read the store: "+ErrNotUp.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(sizeHeader, strconv.FormatInt(from.Status().DBSize, 10))
	w.Header().Set("Trailer", errorTrailer)
	if err := snapshot.Stream(r.Context(), from.Snapshot, w); err != nil {
		s.log.Warn("a snapshot could not be sent", "reason", err)
		w.Header().Set(errorTrailer, oneLine(err.Error()))
	}
}

// SaveSnapshot makes the node save its store into its data directory. Progress, which may be nil, is told now and then how many bytes of about
// how many are written.
func (c *LocalClient) SaveSnapshot(ctx context.Context, progress func(written, total int64)) (snapshot.Info, error) {
	resp, err := c.send(ctx, http.MethodPost, snapshotsPath, nil)
	if err != nil {
		return snapshot.Info{}, err
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return snapshot.Info{}, err
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var line SnapshotLine
		switch err := lines.Decode(&line); {
		case err != nil:
			return snapshot.Info{}, fmt.Errorf("the node did not say how the save ended: %w", err)
		case line.Error != "":
			return snapshot.Info{}, errors.New(line.Error)
		case line.Saved != nil:
			return *line.Saved, nil
		case progress != nil:
			progress(line.Written, line.Total)
		}
	}
}

// StreamSnapshot writes a snapshot of this moment to w. About how many bytes it has is told to about before the first, when that is known.
func (c *LocalClient) StreamSnapshot(ctx context.Context, w io.Writer, about func(bytes int64)) error {
	resp, err := c.send(ctx, http.MethodGet, snapshotsPath+"/stream", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return err
	}
	if n, err := strconv.ParseInt(resp.Header.Get(sizeHeader), 10, 64); err == nil {
		about(n)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return err
	}
	if why := resp.Trailer.Get(errorTrailer); why != "" {
		return errors.New(why)
	}
	return nil
}

// refusal is what a node says that does not do what it is asked.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return errors.New(oneLine(string(b)))
}
