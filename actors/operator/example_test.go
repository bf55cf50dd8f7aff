package operator_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// Page is what users declare.
type Page struct {
	Title string `json:"title"`
}

func (Page) Kind() string { return "Page" }

// publish brings it about.
func publish(_ context.Context, s *operator.ManifestState[Page]) (operator.Action, error) {
	fmt.Println("publishing", s.Manifest.Name, "as", s.Manifest.Spec.Title)
	return operator.None(), s.SetStatus(map[string]string{"published": s.Manifest.Spec.Title})
}

// Example is the whole program of an operator: with storage.OpenBolt in place of Memory its manifests last, with OpenShared several
// processes share the work.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	published := func(ctx context.Context, s *operator.ManifestState[Page]) (operator.Action, error) {
		defer stop() // a real one goes on until it is told to stop, by signal.NotifyContext for instance
		return publish(ctx, s)
	}
	store := storage.Memory()
	pages, err := operator.NewControlPlane(operator.Func[Page](published), operator.OperatorConfig{}, store, operator.WithLogger(quiet))
	if err == nil {
		err = pages.AddManifest(ctx, "front", Page{Title: "Welcome"})
	}
	if err == nil {
		err = pages.Execute(ctx)
	}
	front, _ := pages.Get(context.Background(), "front")
	fmt.Println(front.Status.Phase, string(front.Status.Value), err)
	// Output:
	// publishing front as Welcome
	// Ready {"published":"Welcome"} <nil>
}

// quiet is a logger that says nothing.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// TestTheProgramOfTheDocumentation holds that the program in doc.go is short, and that its operator is the one above.
func TestTheProgramOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(doc), "//\tpackage main\n")
	program, _, _ = strings.Cut(program, "\n//\n// #")
	lines := 0
	for line := range strings.SplitSeq(program, "\n") {
		if text := strings.TrimSpace(strings.TrimPrefix(line, "//")); text != "" {
			lines++
		}
	}
	if lines < 15 || lines > 30 {
		t.Errorf("the program has %d lines", lines)
	}
}
