package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	defaultPort   = "8080"
	headerTimeout = 5 * time.Second // reading a request's headers
	drainTimeout  = 5 * time.Second // answering what is in flight after SIGTERM
)

// serve answers until SIGTERM, then finishes what is in flight and ends with code 0.
func serve([]string) int {
	listener, err := net.Listen("tcp", ":"+setting("PORT", defaultPort))
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: cannot listen:", err)
		return 1
	}
	server := &http.Server{Handler: logged(routes()), ReadHeaderTimeout: headerTimeout}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	fmt.Println("listening on", listener.Addr())
	select {
	case err := <-done:
		fmt.Fprintln(os.Stderr, "demo: cannot serve:", err)
		return 1
	case <-terminated():
	}
	return drain(server)
}

func drain(server *http.Server) int {
	fmt.Println("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "demo: cannot finish:", err)
		return 1
	}
	return 0
}

func routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", greet)
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, version()) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, hostname()) })
	mux.HandleFunc("/remote", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.RemoteAddr) })
	return mux
}

// greet says who answers: the pod, in which version, with the message of its environment.
func greet(w http.ResponseWriter, _ *http.Request) {
	parts := []string{"hello from " + setting("POD_NAME", hostname()), "version " + version()}
	if message := os.Getenv("MESSAGE"); message != "" {
		parts = append(parts, message)
	}
	fmt.Fprintln(w, strings.Join(parts, ", "))
}

func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		fmt.Println(r.Method, r.URL.Path, "from", r.RemoteAddr)
	})
}

func version() string { return setting("DEMO_VERSION", "unknown") }

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

func setting(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
