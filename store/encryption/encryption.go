package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/nodeactor/nodeactor/supervision"
)

// ErrFile is returned when the file cannot be used as an EncryptionConfiguration.
var ErrFile = errors.New("not a usable encryption configuration")

const (
	// reloadEvery is how often the file is looked at for changes.
	reloadEvery = 10 * time.Second
	// retryEvery is how often a file that was refused is looked at again.
	retryEvery = time.Minute
	// openMode are the permissions that let others than the owner read the keys.
	openMode = 0o077
)

// sealedPrefix begins every encrypted value, whatever its provider; no encoding of an object begins like it.
var sealedPrefix = []byte("k8s:enc:")

// Sealed reports whether a stored value is encrypted.
func Sealed(stored []byte) bool { return bytes.HasPrefix(stored, sealedPrefix) }

// Config says where the configuration is.
type Config struct {
	File  string // an EncryptionConfiguration
	Name  string // of this API server, for the metrics of KMS plugins
	Clock supervision.Clock
	Log   *slog.Logger
}

// Encryption is a loaded configuration. All methods are safe for concurrent use, but Reload is called by one goroutine.
type Encryption struct {
	cfg       Config
	ctx       context.Context // of what the loaded providers run
	cancel    context.CancelFunc
	current   atomic.Pointer[set]
	resources sync.Map // schema.GroupResource to *transformer
	// refused is why the file as it is now is not in use; refusedHash says of which content that was, refusedAt when.
	refused     atomic.Pointer[error]
	refusedHash string
	refusedAt   time.Time
}

// set is one content of the file.
type set struct {
	encryptionconfig.StaticTransformers
	health []healthz.HealthChecker
	hash   string
	// cancel ends what the providers run; it waits for grace after the set was replaced.
	cancel context.CancelFunc
	grace  time.Duration
}

// Load reads the configuration. Errors wrap ErrFile and name the file, the line or field, and the remedy. The caller closes the result.
func Load(ctx context.Context, cfg Config) (*Encryption, error) {
	e := &Encryption{cfg: cfg}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s, err := e.read()
	if err != nil {
		e.cancel()
		return nil, fmt.Errorf("%w; %s", err, remedyFor(err))
	}
	e.current.Store(s)
	e.warnIfOpen()
	return e, nil
}

// Close ends what the providers run. Nothing may use the transformers of a KMS afterwards.
func (e *Encryption) Close() { e.cancel() }

func (e *Encryption) read() (*set, error) {
	ctx, cancel := context.WithCancel(e.ctx)
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, e.cfg.File, true, e.cfg.Name)
	if err != nil {
		cancel()
		return nil, &fileError{e.cfg.File, err}
	}
	return &set{loaded.Transformers, loaded.HealthChecks, loaded.EncryptionFileContentHash, cancel, loaded.KMSCloseGracePeriod}, nil
}

// fileError is why the file cannot be used. It wraps ErrFile and what the loader says.
type fileError struct {
	file  string
	cause error
}

// Error names the file once.
func (f *fileError) Error() string {
	return fmt.Sprintf("cannot use %s: %v: %s", f.file, ErrFile, plain(f.cause, f.file))
}

// Unwrap is ErrFile and the cause.
func (f *fileError) Unwrap() []error { return []error{ErrFile, f.cause} }

// remedyFor says what to do about a file that cannot be used at the start.
func remedyFor(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "put it back from a copy, as what was encrypted with its keys cannot be read without them, or correct the path (--encryption-provider-config), and start again"
	case errors.Is(err, fs.ErrPermission):
		return "let the user that runs the node read it, and start again"
	}
	return "correct it (a key is the base64 form of 32 random bytes: head -c 32 /dev/urandom | base64) and start again"
}

// plain is an error of the loader in one line, without its way through the loader and without naming the file again.
func plain(err error, file string) string {
	text := err.Error()
	named := fmt.Sprintf("encryption provider configuration file %q", file)
	for _, way := range []string{"error while parsing file: ", "error while loading file: ", "error while building transformers: ",
		"error decoding " + named + ": ", "error reading " + named + ": ", "strict decoding error: ", "error converting YAML to JSON: "} {
		text = strings.Replace(text, way, "", 1)
	}
	text, _, _ = strings.Cut(text, " in scheme ")
	return strings.Join(strings.Fields(strings.Replace(text, named, "it", 1)), " ")
}

// warnIfOpen says so when others may read the keys: then encryption protects from nobody on this host.
func (e *Encryption) warnIfOpen() {
	if info, err := os.Stat(e.cfg.File); err == nil && info.Mode().Perm()&openMode != 0 {
		e.cfg.Log.Warn("others than its owner may read the keys of the encryption configuration: chmod 600 it", "file", e.cfg.File, "mode", info.Mode().Perm())
	}
}

// Refused is why the file as it is now is not in use, or nil.
func (e *Encryption) Refused() error {
	if refused := e.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// Check asks the providers that are programs of their own.
func (e *Encryption) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	for _, h := range e.current.Load().health {
		if err := h.Check(req); err != nil {
			return fmt.Errorf("%s: %w", h.Name(), err)
		}
	}
	return nil
}

// TransformerForResource implements value.ResourceTransformers. There is one for each resource, which outlives reloads.
func (e *Encryption) TransformerForResource(resource schema.GroupResource) value.Transformer {
	if t, ok := e.resources.Load(resource); ok {
		return t.(*transformer)
	}
	t, _ := e.resources.LoadOrStore(resource, &transformer{encryption: e, resource: resource})
	return t.(*transformer)
}

var _ value.ResourceTransformers = (*Encryption)(nil)
