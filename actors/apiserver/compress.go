package apiserver

import (
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// compressFrom is the length in bytes from which on a list is compressed, as upstream.
const compressFrom = 128 << 10

// compressing compresses long lists for clients that take gzip. Upstream would too, at twice the cost and into more bytes: it is the larger
// part of the work of a list.
func compressing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "list" || !takesGzip(r.Header) {
			h.ServeHTTP(w, r)
			return
		}
		// Whoever writes the answer must not compress it a second time.
		r = r.Clone(r.Context())
		r.Header.Del("Accept-Encoding")
		z := &zipWriter{ResponseWriter: w}
		h.ServeHTTP(responsewriter.WrapForHTTP1Or2(z), r)
		z.close()
	})
}

func takesGzip(header http.Header) bool {
	for _, value := range header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			if strings.TrimSpace(coding) == "gzip" {
				return true
			}
		}
	}
	return false
}

// zippers are writers to be used again: each has tables of a megabyte.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one of those there are
	return z
}}

// zipWriter holds an answer back until it is long enough to be compressed.
type zipWriter struct {
	http.ResponseWriter
	code int
	held []byte
	zip  *gzip.Writer
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (z *zipWriter) Unwrap() http.ResponseWriter { return z.ResponseWriter }

// WriteHeader keeps the first status until it is known how the answer is encoded.
func (z *zipWriter) WriteHeader(code int) {
	if z.code == 0 {
		z.code = code
	}
}

// Write compresses, or holds back what is too short for that.
func (z *zipWriter) Write(data []byte) (int, error) {
	z.WriteHeader(http.StatusOK)
	switch {
	case z.zip != nil:
		return z.zip.Write(data)
	case len(z.held)+len(data) < compressFrom || z.code != http.StatusOK || z.Header().Get("Content-Encoding") != "":
		z.held = append(z.held, data...)
		return len(data), nil
	}
	z.Header().Set("Content-Encoding", "gzip")
	z.Header().Add("Vary", "Accept-Encoding")
	z.Header().Del("Content-Length")
	z.ResponseWriter.WriteHeader(z.code)
	z.zip = zippers.Get().(*gzip.Writer)
	z.zip.Reset(z.ResponseWriter)
	if _, err := z.zip.Write(z.held); err != nil {
		return 0, err
	}
	z.held = nil
	return z.zip.Write(data)
}

// close ends the answer.
func (z *zipWriter) close() {
	switch {
	case z.zip != nil:
		_ = z.zip.Close() // a client that is gone notices nothing any more
		z.zip.Reset(nil)
		zippers.Put(z.zip)
	case z.code != 0:
		z.ResponseWriter.WriteHeader(z.code)
		_, _ = z.ResponseWriter.Write(z.held)
	}
}
