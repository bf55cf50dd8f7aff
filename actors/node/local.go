package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/nodeactor/nodeactor/kubelet"
	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// imagesPath is where the local socket offers the images of this host.
const imagesPath = "/images"

// ImageLine is one image as the local socket lists it. Size is in bytes.
type ImageLine struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// socketChild serves the local socket; the data directory's mode keeps others out.
func (p *parts) socketChild(service kubelet.ImageService, health http.Handler) supervision.Handler {
	return p.serveSocket(func(ctx context.Context) http.Handler {
		return p.withEtcd(localHandler(service, health, p.steering(ctx), p.saver))
	})
}

// serveSocket serves what handler makes on the local socket, and in every case what is known of the store.
func (p *parts) serveSocket(handler func(context.Context) http.Handler) supervision.Handler {
	path := p.cfg.Socket()
	return serve.New(serve.Config{Network: "unix", Addr: path, Prepare: func() error { return removeSocket(path) }, Probe: serve.HTTPProbe(nil, "/"),
		Serve: func(ctx context.Context, l net.Listener) error {
			if err := os.Chmod(path, 0o600); err != nil {
				l.Close()
				return err
			}
			return p.serveHTTP(ctx, l, nil, p.withStore(handler(ctx)))
		}})
}

// removeSocket clears what a killed process left; the data directory's lock proves that
// nobody serves it any more.
func removeSocket(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// steering is what the socket shows of the tree until ctx ends.
func (p *parts) steering(ctx context.Context) *steering {
	return &steering{sys: p.sys, note: p.note(), overrides: p.cfg.FaultPolicies, lease: noLease, gone: ctx, log: p.log}
}

func localHandler(service kubelet.ImageService, health http.Handler, tree *steering, saver *saver) http.Handler {
	mux := http.NewServeMux()
	tree.routes(mux)
	saver.routes(mux)
	mux.Handle("GET /livez", health)
	mux.Handle("GET /readyz", health)
	mux.HandleFunc("GET "+imagesPath, func(w http.ResponseWriter, _ *http.Request) {
		lines := []ImageLine{}
		for _, i := range service.List() {
			lines = append(lines, ImageLine{i.Ref, i.Digest, i.Size})
		}
		reply(w, lines, nil)
	})
	mux.HandleFunc("POST "+imagesPath+"/import", func(w http.ResponseWriter, r *http.Request) {
		refs, err := service.Import(r.Context(), r.Body)
		reply(w, refs, err)
	})
	mux.HandleFunc("POST "+imagesPath+"/pull", func(w http.ResponseWriter, r *http.Request) {
		_, err := service.Pull(r.Context(), r.URL.Query().Get("ref"))
		reply(w, struct{}{}, err)
	})
	mux.HandleFunc("DELETE "+imagesPath, func(w http.ResponseWriter, r *http.Request) {
		ref := r.URL.Query().Get("ref")
		if !present(service, ref) {
			http.Error(w, "there is no such image; nodeactor image list shows those that are there", http.StatusNotFound)
			return
		}
		reply(w, struct{}{}, service.Remove(r.Context(), ref))
	})
	return mux
}

// present tells whether ref names one of the images.
func present(store kubelet.ImageService, ref string) bool {
	full, err := images.Normalize(ref)
	return err == nil && slices.ContainsFunc(store.List(), func(i images.Image) bool { return i.Ref == full })
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// LocalClient talks to the node of this host through its socket.
type LocalClient struct {
	socket string
	http   http.Client
}

// NewLocalClient makes a client; nothing is dialled yet.
func NewLocalClient(socket string) *LocalClient {
	c := &LocalClient{socket: socket}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	return c
}

// ImportImage sends an archive and returns the references it brought.
func (c *LocalClient) ImportImage(ctx context.Context, archive io.Reader) (refs []string, err error) {
	return refs, c.do(ctx, http.MethodPost, imagesPath+"/import", archive, &refs)
}

// PullImage pulls a reference.
func (c *LocalClient) PullImage(ctx context.Context, ref string) error {
	return c.do(ctx, http.MethodPost, imagesPath+"/pull?ref="+url.QueryEscape(ref), nil, nil)
}

// ListImages returns what is present.
func (c *LocalClient) ListImages(ctx context.Context) (lines []ImageLine, err error) {
	return lines, c.do(ctx, http.MethodGet, imagesPath, nil, &lines)
}

// RemoveImage removes a reference.
func (c *LocalClient) RemoveImage(ctx context.Context, ref string) error {
	return c.do(ctx, http.MethodDelete, imagesPath+"?ref="+url.QueryEscape(ref), nil, nil)
}

// Health asks for /livez or /readyz with every check; ok tells whether all passed.
func (c *LocalClient) Health(ctx context.Context, path string) (ok bool, body string, err error) {
	resp, err := c.send(ctx, http.MethodGet, path+"?verbose", nil)
	if err != nil {
		return false, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode == http.StatusOK, string(b), err
}

func (c *LocalClient) do(ctx context.Context, method, path string, body io.Reader, into any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return errors.New(strings.TrimSpace(string(b)))
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func (c *LocalClient) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no node answers on %s (is it running, and are you root?): %w", c.socket, cause(errors.Unwrap(err)))
	}
	return resp, nil
}
