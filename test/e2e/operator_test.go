package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func website(name string, spec string) string {
	return fmt.Sprintf("apiVersion: operators.nodeactor.io/v1\nkind: Website\nmetadata: {name: %s, namespace: default}\nspec: {%s}\n", name, spec)
}

// page waits until the page of a website says something.
func (h *host) page(name, says string) {
	h.t.Helper()
	h.eventually(podLimit, "the page of "+name, func() error {
		out, err := h.try("get", "configmap", name, "-o", `jsonpath={.data.index\.html}`)
		if err == nil && out != says {
			return notYet("it says %q", out)
		}
		return err
	})
}

func (h *host) sitePhase(name, phase string) {
	h.t.Helper()
	h.kubectl("wait", "website/"+name, "--for=jsonpath={.status.phase}="+phase, "--timeout=60s")
}

// TestOperatorInsideTheNode runs a program of a few lines, which is a node with an operator in it, through the life of its objects.
func TestOperatorInsideTheNode(t *testing.T) {
	h := newHost(t, 32)
	h.program("nodeactor", "./test/e2e/testdata/websites", "-ldflags", "-s -w")
	h.start()
	h.kubectl("wait", "--for=condition=Established", "crd/websites.operators.nodeactor.io", "--timeout=30s")

	h.refusedWebsites()
	h.apply(website("home", "title: hello"))
	h.sitePhase("home", "Ready")
	h.page("home", "hello")
	if out := h.kubectl("get", "ws"); !strings.HasPrefix(out, "NAME   PHASE   AGE") || !strings.Contains(out, "\nhome   Ready   ") {
		t.Errorf("kubectl get shows\n%s", out)
	}
	if out := h.kubectl("get", "ws", "home", "-o", "jsonpath={.spec.copies} {.status.value.page} {.status.observedGeneration}"); out != "1 home/index.html 1" {
		t.Errorf("the website says %q", out)
	}
	begin := time.Now()
	h.apply(website("home", "title: bye"))
	h.page("home", "bye")
	t.Logf("a change was on the page after %s, kubectl included", time.Since(begin).Round(time.Millisecond))
	h.kubectl("delete", "configmap", "home")
	h.page("home", "bye")

	h.poisonedWebsite()
	h.restartedWebsites()

	h.kubectl("delete", "website", "home", "--timeout=30s")
	if out := h.kubectl("get", "configmaps", "-l", "closed=home", "-o", "name"); strings.Count(out, "\n") != 1 {
		t.Errorf("the finalizer left these notes: %q", out)
	}
	h.eventually(podLimit, "the page to go with its website", func() error {
		if out, err := h.try("get", "configmap", "home", "--ignore-not-found", "-o", "name"); err != nil || out != "" {
			return notYet("%q is there, %v", out, err)
		}
		return nil
	})
}

// refusedWebsites holds that the schema of the Go type is asked for.
func (h *host) refusedWebsites() {
	h.t.Helper()
	wrong := []string{website("text", `title: a, copies: two`), website("none", `copies: 1`), website("mood", `title: a, mood: sad`), website("colour", `title: a, colour: red`)}
	out, err := h.run(podLimit, []byte(strings.Join(wrong, "---\n")), "kubectl", "apply", "-f", "-")
	for _, reason := range []string{"must be of type integer", "Required value", `supported values: "calm", "panics"`, `unknown field "spec.colour"`} {
		if err == nil || !strings.Contains(out, reason) {
			h.t.Errorf("nothing was refused for %q: %v, %s", reason, err, out)
		}
	}
}

// poisonedWebsite holds that an object whose passes panic stands alone, and says so.
func (h *host) poisonedWebsite() {
	h.t.Helper()
	h.apply(website("bad", "title: x, mood: panics"))
	h.waitCondition("website/bad", "ReconcilerHealthy", "False ")
	h.apply(website("home", "title: again"))
	h.page("home", "again")
	if out := h.kubectl("get", "website", "bad", "-o", "jsonpath={.status.lastError}"); !strings.Contains(out, "no page today") {
		h.t.Errorf("its last error is %q", out)
	}
	out, err := h.run(podLimit, nil, "tree", "--data-dir", h.dir, "--all", "node/controllers/website")
	if err != nil || !strings.Contains(out, "default:bad") || !strings.Contains(out, " Panic ") {
		h.t.Errorf("the tree shows %v\n%s", err, out)
	}
}

// restartedWebsites holds that a restart of the process keeps everything, and that a mended object does well.
func (h *host) restartedWebsites() {
	h.t.Helper()
	version := h.kubectl("get", "website", "home", "-o", "jsonpath={.metadata.resourceVersion}")
	h.stop()
	h.start()
	h.apply(website("bad", "title: mended"))
	h.sitePhase("bad", "Ready")
	h.waitCondition("website/bad", "ReconcilerHealthy", "True Recovered")
	if again := h.kubectl("get", "website", "home", "-o", "jsonpath={.metadata.resourceVersion}"); again != version {
		h.t.Errorf("the restart took the other website from version %s to %s", version, again)
	}
}
