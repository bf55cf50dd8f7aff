package apiserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/munnerz/goautoneg"
	"k8s.io/kube-openapi/pkg/handler3"
)

const (
	openAPIV3Path = "/openapi/v3"
	openAPIV2Path = "/openapi/v2"

	jsonType       = "application/json"
	openAPIV2Proto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	openAPIV3Proto = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	// The same under the names that are no valid media types and that older clients ask for.
	openAPIV2ProtoOld = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	openAPIV3ProtoOld = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"

	// documentMaxAgeSeconds is how long a document may be kept that was asked for by its hash.
	documentMaxAgeSeconds = 365 * 24 * 3600
)

// document is an OpenAPI document in one encoding. It is kept only until the garbage collector runs: clients keep what they got under its
// hash, so each is asked for rarely, and together they are as large as everything else an idle server holds.
type document struct{ data []byte }

// documents builds OpenAPI documents when they are asked for. What a document will be is known by its hash before it is built: for built-in
// groups from the release, for custom ones from the definitions.
type documents struct {
	release string                            // names the build; part of every hash
	index   func() map[string]string          // path of every document, "apis/apps/v1", and what else it depends on
	build   func(path string) (any, error)    // nil when there is none
	proto   func(json []byte) ([]byte, error) // the other encoding

	mu   sync.Mutex
	kept map[string]weak.Pointer[document]
}

// hash names the content of a document.
func (d *documents) hash(path, dependencies string) string {
	sum := sha256.Sum256([]byte(d.release + "\x00" + path + "\x00" + dependencies))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// get returns a document in the encoding, built if it is not kept. Two requests at once build it once.
func (d *documents) get(path, hash, encoding string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := path + "\x00" + hash + "\x00" + encoding
	if kept := d.kept[key].Value(); kept != nil {
		return kept.data, nil
	}
	data, err := d.encode(path, encoding)
	if err != nil || data == nil {
		return nil, err
	}
	for old := range d.kept {
		if d.kept[old].Value() == nil {
			delete(d.kept, old)
		}
	}
	if d.kept == nil {
		d.kept = map[string]weak.Pointer[document]{}
	}
	d.kept[key] = weak.Make(&document{data})
	return data, nil
}

// encode builds a document.
func (d *documents) encode(path, encoding string) ([]byte, error) {
	built, err := d.build(path)
	if err != nil || built == nil {
		return nil, err
	}
	data, err := json.Marshal(built)
	if err != nil || encoding == jsonType {
		return data, err
	}
	return d.proto(data)
}

// serveIndex answers /openapi/v3: where each document is.
func (d *documents) serveIndex(w http.ResponseWriter, r *http.Request) {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for path, dependencies := range d.index() {
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: documentURL(path, d.hash(path, dependencies))}
	}
	data, err := json.Marshal(index)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Etag", strconv.Quote(d.hash("", string(data))))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func documentURL(path, hash string) string {
	return openAPIV3Path + "/" + path + "?" + url.Values{"hash": {hash}}.Encode()
}

// serveDocument answers /openapi/v3/PATH. A request for an outdated hash is sent to the current one.
func (d *documents) serveDocument(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, openAPIV3Path+"/")
	dependencies, known := d.index()[path]
	hash := d.hash(path, dependencies)
	if !known {
		http.NotFound(w, r)
		return
	}
	encoding := acceptedEncoding(r, jsonType, openAPIV3Proto, openAPIV3ProtoOld)
	w.Header().Set("Vary", "Accept")
	if encoding == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	if asked := r.URL.Query().Get("hash"); asked != "" && asked != hash {
		http.Redirect(w, r, documentURL(path, hash), http.StatusMovedPermanently)
		return
	} else if asked != "" {
		w.Header().Set("Cache-Control", "public, immutable, max-age="+strconv.Itoa(documentMaxAgeSeconds))
	}
	d.serve(w, r, path, hash, encoding)
}

func (d *documents) serve(w http.ResponseWriter, r *http.Request, path, hash, encoding string) {
	data, err := d.get(path, hash, encoding)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case data == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", strings.Replace(encoding, "@", ".", 1))
		w.Header().Set("Etag", strconv.Quote(hash))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// serveOnly answers the path of the one document of a set.
func (d *documents) serveOnly(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	encoding := acceptedEncoding(r, jsonType, openAPIV2Proto, openAPIV2ProtoOld)
	w.Header().Set("Vary", "Accept")
	if encoding == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	d.serve(w, r, path, d.hash(path, d.index()[path]), encoding)
}

// acceptedEncoding returns the first of the offered encodings that the client likes best, or "".
func acceptedEncoding(r *http.Request, offered ...string) string {
	accept := r.Header.Get("Accept")
	if accept == "" {
		accept = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, encoding := range offered {
			main, sub, _ := strings.Cut(encoding, "/")
			if (clause.Type == main || clause.Type == "*") && (clause.SubType == sub || clause.SubType == "*") {
				return encoding
			}
		}
	}
	return ""
}
