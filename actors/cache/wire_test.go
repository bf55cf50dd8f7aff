package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// FuzzMetaNeverPanics feeds arbitrary bytes; whatever cannot be read is Opaque.
func FuzzMetaNeverPanics(f *testing.F) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
	value, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), pod)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte(`{"metadata":{}}`))
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		m := metaOf(Record{Key: "/registry/pods/ns/p", Value: value})
		if !m.Opaque && m.UID == "" {
			t.Errorf("readable without identity: %+v", m)
		}
	})
}

func TestFolders(t *testing.T) {
	for key, want := range map[string]string{
		"/registry/pods/ns/p":                "pods",
		"/registry/services/specs/ns/s":      "services/specs",
		"/registry/services/endpoints/ns/s":  "services/endpoints",
		"/registry/example.com/widgets/ns/w": "example.com/widgets",
		"/registry/minions/n":                "minions",
		"/other/key":                         "",
	} {
		if got, _ := folderOf(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestKindTableIsConsistent(t *testing.T) {
	if len(byType) != len(rows) || len(byFolder) != len(rows) {
		t.Fatalf("%d rows, %d types, %d folders", len(rows), len(byType), len(byFolder))
	}
	for _, r := range rows {
		gvks, _, err := scheme.Scheme.ObjectKinds(reflectNew(r.goType))
		if err != nil || gvks[0] != r.kind.GroupVersionKind() {
			t.Errorf("%v: scheme says %v, %v", r.kind, gvks, err)
		}
		if folder, ok := folderOf(r.kind.Key("ns", "n")); !ok || folder != r.kind.Folder {
			t.Errorf("%v: folder of its key is %q", r.kind, folder)
		}
	}
}
