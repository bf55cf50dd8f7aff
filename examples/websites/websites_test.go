package websites_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/examples/websites"
	"github.com/nodeactor/nodeactor/test/operatortest"
)

type kit = operatortest.Kit[websites.Website]

// run plays a test on three nodes that publish into one folder.
func run(t *testing.T, f func(k *kit, folder string)) {
	t.Helper()
	operatortest.SimOf(t, func(k *kit) operator.Operator[websites.Website] {
		return websites.Publisher{Folder: k.Dir()}
	}, func(k *kit) { f(k, k.Dir()) }, operatortest.Seeds(5))
}

func site(text string) websites.Website {
	return websites.Website{Title: "Shop", Pages: map[string]string{"index": text, "prices": "all are <low>"}}
}

// says holds that a page is published with a text.
func says(k *kit, path, text string) {
	k.T().Helper()
	if html, err := os.ReadFile(path); err != nil || !strings.Contains(string(html), text) {
		k.Errorf("%s says %q, %v", path, html, err)
	}
}

// TestWebsites publishes two websites; everything goes wrong with the one, and the other one does not notice.
func TestWebsites(t *testing.T) {
	run(t, func(k *kit, folder string) {
		k.Panic("shop", 1)
		k.Add("shop", site("welcome"))
		k.Add("blog", site("hello"))
		k.Ready("blog")
		says(k, filepath.Join(folder, "blog", "index.html"), "<p>hello</p>")
		k.AllReady()
		says(k, filepath.Join(folder, "shop", "prices.html"), "all are &lt;low&gt;")

		k.Kill(k.Holder("shop"))
		k.Add("shop", site("sale"))
		k.AllReady()
		says(k, filepath.Join(folder, "shop", "index.html"), "<p>sale</p>")

		k.Delete("shop")
		k.Gone("shop")
		if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 1 {
			k.Errorf("left are %v", left)
		}
	})
}

// TestMends damages what is published.
func TestMends(t *testing.T) {
	run(t, func(k *kit, folder string) {
		k.Add("shop", site("welcome"))
		k.AllReady()
		if os.WriteFile(filepath.Join(folder, "shop", "extra.html"), nil, 0o600) != nil || os.Remove(filepath.Join(folder, "shop", "index.html")) != nil {
			k.Fatalf("cannot damage the files")
		}
		k.Advance(6 * time.Minute) // a resync
		says(k, filepath.Join(folder, "shop", "index.html"), "welcome")
		if _, err := os.Stat(filepath.Join(folder, "shop", "extra.html")); !os.IsNotExist(err) {
			k.Errorf("the extra page: %v", err)
		}
	})
}

// TestBadPage says what is wrong with a page in the status of its website, and goes on when it is mended.
func TestBadPage(t *testing.T) {
	run(t, func(k *kit, _ string) {
		k.Add("shop", websites.Website{Pages: map[string]string{"../etc": "oops"}})
		k.Advance(5 * time.Second)
		if v, _ := k.Get("shop"); v.Status.Phase != operator.PhaseRetrying || !strings.Contains(v.Status.LastError, "lower case letters") {
			k.Errorf("the status is %+v", v.Status)
		}
		k.Add("shop", site("welcome"))
		k.AllReady()
	})
}
