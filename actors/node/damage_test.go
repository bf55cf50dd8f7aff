package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/snapshot"
	"github.com/nodeactor/nodeactor/supervision"
)

var errTorn = fmt.Errorf("cannot open store /d/store: /d/store/member/snap/db is %w: page 7 is torn", store.ErrDamaged)

func damagedParts(good *snapshot.Info) *parts {
	d := store.Damage{Err: errTorn, Good: good, Known: 900, Last: time.Unix(2000, 0)}
	if good == nil {
		d.None = fmt.Errorf("%w in /d/snapshots\nand one is bad", snapshot.ErrNone)
	}
	return &parts{damage: &damage{Damage: d, verdict: store.Choose(good != nil, false)}}
}

var goodSnapshot = &snapshot.Info{Path: "/d/snapshots/x.db", Revision: 700, Time: time.Unix(1000, 0)}

// rows are the rows of a tree and of all below it.
func rows(s supervision.Spec) (all []string) {
	all = append(all, s.Row)
	for _, c := range s.Children {
		all = append(all, rows(c)...)
	}
	return all
}

// TestP21_ReadOnlyNodeDoesNothing: whatever would act on the state of the past is not in the tree of a node with a damaged store.
func TestP21_ReadOnlyNodeDoesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		good *snapshot.Info
		want string
	}{
		"from a snapshot": {goodSnapshot, "node store engine cluster identity api server listeners listener socket core health"},
		"without any":     {nil, "node cluster identity api listeners listener socket core health"},
	} {
		spec, err := damagedParts(c.good).readOnlyTree(health.New(health.Config{Log: slog.New(slog.DiscardHandler)}))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rows(spec), " "); got != c.want {
			t.Errorf("%s: the tree has %s", name, got)
		}
	}
}

// TestP21_ReasonNamesFileAndWaysOut: one line has the file, what is wrong with it, of when the answers are, and what can be done.
func TestP21_ReasonNamesFileAndWaysOut(t *testing.T) {
	for name, c := range map[string]struct {
		good  *snapshot.Info
		parts []string
	}{
		"from a snapshot": {goodSnapshot, []string{"read-only", "/d/store/member/snap/db", "page 7", "1970-01-01T00:16:40Z", "700", "900", "put the file back", "--accept-data-loss"}},
		"without any":     {nil, []string{"cannot be read", "/d/store/member/snap/db", "no good snapshot", "put the file back", "nodeactor snapshot restore", "nodeactor reset"}},
	} {
		p := damagedParts(c.good)
		for _, part := range c.parts {
			if said := p.damage.reason(); !strings.Contains(said, part) || strings.Contains(said, "\n") {
				t.Errorf("%s: %q lacks %q", name, said, part)
			}
		}
		var told health.Told
		if err := p.ailing(); !errors.As(err, &told) || p.note() != told.Error() {
			t.Errorf("%s: the check says %v, the tree %q", name, p.ailing(), p.note())
		}
	}
}

// TestP21_TheDamageIsAKeptFault: the faults of a read-only node begin with the one that made it read-only.
func TestP21_TheDamageIsAKeptFault(t *testing.T) {
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	sys.Report(damagedParts(goodSnapshot).damage.fault())
	s := &steering{sys: sys, gone: t.Context()}
	for _, path := range []string{"", "node/store", "node/store/engine"} {
		w := httptest.NewRecorder()
		s.faults(w, httptest.NewRequest(http.MethodGet, ringPath+"?path="+path, http.NoBody))
		for _, part := range []string{`"kind":"ErrorReturn"`, `"path":"node/store/engine"`, "/d/store/member/snap/db", "page 7"} {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%q: %s lacks %s", path, w.Body, part)
			}
		}
	}
}

// TestP21_NoEmptySuccess: without anything to read from every answer is a refusal with the reason, but for the checks and the version.
func TestP21_NoEmptySuccess(t *testing.T) {
	p := damagedParts(nil)
	p.unhealthy = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for path, want := range map[string]int{
		"/api": 503, "/apis": 503, "/api/v1/pods": 503, "/api/v1/pods?watch=1": 503, "/openapi/v3": 503, "/": 503,
		"/livez": http.StatusTeapot, "/readyz": http.StatusTeapot, "/version": 200,
	} {
		w := httptest.NewRecorder()
		p.answer(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != want || want == 503 && !strings.Contains(w.Body.String(), "/d/store/member/snap/db") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
