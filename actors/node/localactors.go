package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// lineLimit bounds one line of the fault list.
const lineLimit = 1 << 20

// Actors looks at the tree.
func (c *LocalClient) Actors(ctx context.Context, q ActorQuery) (list ActorList, err error) {
	v := url.Values{"path": {q.Path}, "all": {strconv.FormatBool(q.All)}}
	if q.Depth >= 0 {
		v.Set("depth", strconv.Itoa(q.Depth))
	}
	if q.CPU > 0 {
		v.Set("cpu", q.CPU.String())
	}
	return list, c.do(ctx, http.MethodGet, actorsPath+"?"+v.Encode(), nil, &list)
}

// RestartActor asks for a new generation and returns the one that has to go.
func (c *LocalClient) RestartActor(ctx context.Context, path string) (r Restarting, err error) {
	return r, c.do(ctx, http.MethodPost, actorsPath+"/restart?path="+url.QueryEscape(path), nil, &r)
}

// Policies lists what the running tree does on each fault.
func (c *LocalClient) Policies(ctx context.Context) (list []catalog.Effective, err error) {
	return list, c.do(ctx, http.MethodGet, policiesPath, nil, &list)
}

// FaultStack returns the stack of the faults with a hash.
func (c *LocalClient) FaultStack(ctx context.Context, hash string) (string, error) {
	body, err := c.open(ctx, ringPath+"/stack?hash="+url.QueryEscape(hash))
	if err != nil {
		return "", err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	return string(b), err
}

// Faults calls f for each kept fault at and below path that happened after a time, and with
// follow for each later one until ctx ends or the node stops.
func (c *LocalClient) Faults(ctx context.Context, path string, after time.Time, follow bool, f func(FaultLine) error) error {
	v := url.Values{"path": {path}, "follow": {strconv.FormatBool(follow)}, "after": {after.Format(time.RFC3339Nano)}}
	body, err := c.open(ctx, ringPath+"?"+v.Encode())
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		var line FaultLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return err
		}
		if err := f(line); err != nil {
			return err
		}
	}
	return lines.Err()
}

// open asks for something that is read piece by piece.
func (c *LocalClient) open(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return nil, errors.New(strings.TrimSpace(string(b)))
	}
	return resp.Body, nil
}
