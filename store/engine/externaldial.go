package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// keepaliveEvery is how often a quiet connection is asked, keepaliveFor how long it has to answer; etcd cuts off who asks oftener than
	// every five seconds.
	keepaliveEvery = 10 * time.Second
	keepaliveFor   = 5 * time.Second
	// redialMost is the longest wait between two tries to connect to an endpoint, dialFor bounds one.
	redialMost = 2 * time.Second
	dialFor    = 3 * time.Second
	// sendBytes bounds one request: a value, its key and conditions.
	sendBytes = 2 << 20
	// readRetries is how often the library tries a read at other endpoints.
	readRetries = 4
	// alertFor is how long an endpoint has to say that it does not believe our certificate.
	alertFor = 300 * time.Millisecond
)

// newClient makes the library's client. It does not wait for a connection.
func newClient(cfg ExternalConfig) (*clientv3.Client, error) {
	if err := CheckEndpoints(cfg.Endpoints); err != nil {
		return nil, err
	}
	conf, err := clientTLS(cfg)
	if err != nil {
		return nil, err
	}
	connect := grpc.ConnectParams{MinConnectTimeout: dialFor, Backoff: backoff.Config{BaseDelay: againAfter, Multiplier: 1.6, Jitter: 0.2, MaxDelay: redialMost}}
	return clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, TLS: conf, DialKeepAliveTime: keepaliveEvery, DialKeepAliveTimeout: keepaliveFor, PermitWithoutStream: true,
		MaxCallSendMsgSize: sendBytes, MaxUnaryRetries: readRetries, DialOptions: []grpc.DialOption{grpc.WithConnectParams(connect)},
		Logger: newLogger(cfg.Log, newFailure()),
	})
}

// CheckEndpoints refuses what is not a list of https URLs of members.
func CheckEndpoints(endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("no endpoint is given")
	}
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		switch {
		case err != nil:
			return fmt.Errorf("endpoint %q is not a URL such as https://10.0.0.5:2379", endpoint)
		case u.Scheme != "https":
			return fmt.Errorf("endpoint %q does not begin with https://: every Secret would cross the network in the open", endpoint)
		case u.Hostname() == "" || u.Port() == "" || u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "":
			return fmt.Errorf("endpoint %q is not of the form https://HOST:PORT", endpoint)
		}
	}
	return nil
}

// clientTLS reads the files. The client's certificate is read again for each connection, so that it can be renewed.
func clientTLS(cfg ExternalConfig) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s holds no certificate in PEM", cfg.CAFile)
		}
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, errors.New("a certificate file and a key file are given together, or neither")
	}
	if cfg.CertFile == "" {
		return conf, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", cfg.CertFile, cfg.KeyFile, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return conf, nil
}

// diagnose finds out why no endpoint answers: by itself, because the library keeps it to itself. The result wraps ErrEndpoints when all
// those that are there do not believe us, or we them.
func (e *External) diagnose(ctx context.Context) error {
	var refused, away error
	for _, endpoint := range e.cfg.Endpoints {
		err := e.greet(ctx, endpoint)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrEndpoints):
			refused = err
		default:
			away = err
		}
	}
	if refused != nil && away == nil {
		return refused
	}
	return errors.Join(away, refused)
}

// greet makes a connection to an endpoint and looks whether it stands.
func (e *External) greet(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	conf, err := clientTLS(e.cfg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEndpoints, err)
	}
	conf.NextProtos = []string{"h2"}
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return e.blame(endpoint, err)
	}
	defer conn.Close()
	// A server that does not believe the client's certificate says so after the handshake.
	if err := conn.SetReadDeadline(e.cfg.Clock.Now().Add(alertFor)); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
		return e.blame(endpoint, err)
	}
	return nil
}

// blame says what is wrong with a connection, and with which setting.
func (e *External) blame(endpoint string, err error) error {
	var unverified *tls.CertificateVerificationError
	var alert tls.AlertError
	var remote *net.OpError
	switch {
	case errors.As(err, &unverified):
		ca := e.cfg.CAFile
		if ca == "" {
			ca = "the host's own CAs, as no CA file is given"
		}
		return fmt.Errorf("%w: %s: its certificate is not of %s: %w", ErrEndpoints, endpoint, ca, unverified.Err)
	case errors.As(err, &alert), errors.As(err, &remote) && remote.Op == "remote error":
		if e.cfg.CertFile == "" {
			return fmt.Errorf("%w: %s wants a certificate of its clients and none is given: %w", ErrEndpoints, endpoint, err)
		}
		return fmt.Errorf("%w: %s does not believe the certificate of %s: %w", ErrEndpoints, endpoint, e.cfg.CertFile, err)
	}
	return fmt.Errorf("%s: %w", endpoint, err)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
