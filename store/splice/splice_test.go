package splice_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/store/splice"
)

var (
	internal = runtime.NewScheme()
	codecs   = serializer.NewCodecFactory(internal)
)

func init() { install.Install(internal) }

func meta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: fmt.Sprintf("n-%d", i), Namespace: "ns", UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: fmt.Sprint(100 + i),
		Labels: map[string]string{"a": "<b>&\u2028"}, Annotations: map[string]string{"x": `","kind":"Y`}, CreationTimestamp: metav1.Unix(1700000000, 0)}
}

// definitions is a list of an internal type, which is converted on its way out.
func definitions(n int) *apiextensions.CustomResourceDefinitionList {
	l := &apiextensions.CustomResourceDefinitionList{ListMeta: metav1.ListMeta{ResourceVersion: "777"}}
	for i := range n {
		l.Items = append(l.Items, apiextensions.CustomResourceDefinition{ObjectMeta: meta(i), Spec: apiextensions.CustomResourceDefinitionSpec{Group: "g"}})
	}
	return l
}

func configMaps(n int) *corev1.ConfigMapList {
	l := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "777"}}
	for i := range n {
		l.Items = append(l.Items, corev1.ConfigMap{ObjectMeta: meta(i), Data: map[string]string{"k": strings.Repeat("configuration ", 90)}})
	}
	return l
}

func encoderOf(ns runtime.NegotiatedSerializer, mediaType string, gv schema.GroupVersion) runtime.Encoder {
	info, ok := runtime.SerializerInfoForMediaType(ns.SupportedMediaTypes(), mediaType)
	if !ok {
		panic(mediaType)
	}
	return ns.EncoderForVersion(info.Serializer, gv)
}

func encode(t testing.TB, e runtime.Encoder, obj runtime.Object) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := e.Encode(obj, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestWritesWhatTheSerializerWrites(t *testing.T) {
	for _, c := range []struct {
		ns    runtime.NegotiatedSerializer
		media string
		gv    schema.GroupVersion
		list  func(int) runtime.Object
	}{
		{codecs, runtime.ContentTypeJSON, extv1.SchemeGroupVersion, func(n int) runtime.Object { return definitions(n) }},
		{codecs, runtime.ContentTypeProtobuf, extv1.SchemeGroupVersion, func(n int) runtime.Object { return definitions(n) }},
		{codecs, runtime.ContentTypeYAML, extv1.SchemeGroupVersion, func(n int) runtime.Object { return definitions(n) }},
		{scheme.Codecs, runtime.ContentTypeJSON, corev1.SchemeGroupVersion, func(n int) runtime.Object { return configMaps(n) }},
		{scheme.Codecs, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion, func(n int) runtime.Object { return configMaps(n) }},
	} {
		plain := encoderOf(c.ns, c.media, c.gv)
		spliced := encoderOf(splice.Wrap(c.ns, splice.NewCache(1<<20)), c.media, c.gv)
		for _, n := range []int{0, 1, 16, 600} {
			want := encode(t, plain, c.list(n))
			for _, pass := range []string{"cold", "warm"} {
				if got := encode(t, spliced, c.list(n)); !bytes.Equal(got, want) {
					t.Fatalf("%s, %d items, %s: got\n%.600q\nwant\n%.600q", c.media, n, pass, got, want)
				}
			}
		}
		if got, want := encode(t, spliced, c.list(1)), encode(t, plain, c.list(1)); !bytes.Equal(got, want) {
			t.Fatalf("object: got %q, want %q", got, want)
		}
	}
}

// pieces notes what it is given.
type pieces struct {
	bytes.Buffer
	largest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	return p.Buffer.Write(b)
}

// streaming is how the API's codecs are made.
var streaming = serializer.NewCodecFactory(scheme.Scheme, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())

// TestLongListsAndPagesPass: neither pushes anything out of the cache, and a long list is never in memory as a whole.
func TestLongListsAndPagesPass(t *testing.T) {
	long, page := configMaps(4097), configMaps(100)
	page.Continue = "more"
	for i := range long.Items {
		long.Items[i].Data = nil
	}
	for _, list := range []*corev1.ConfigMapList{long, page} {
		for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			cache := splice.NewCache(1 << 20)
			var got pieces
			if err := encoderOf(splice.Wrap(streaming, cache), media, corev1.SchemeGroupVersion).Encode(list, &got); err != nil {
				t.Fatal(err)
			}
			if want := encode(t, encoderOf(streaming, media, corev1.SchemeGroupVersion), list); !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s, %d items: different bytes", media, len(list.Items))
			}
			if got.largest > got.Len()/4 {
				t.Errorf("%s, %d items: %d of %d bytes were written at once", media, len(list.Items), got.largest, got.Len())
			}
			if kept := cache.Len(); kept != 0 {
				t.Errorf("%s, %d items: %d encodings are kept", media, len(list.Items), kept)
			}
		}
	}
}

func TestAChangedObjectIsEncodedAnew(t *testing.T) {
	e := encoderOf(splice.Wrap(codecs, splice.NewCache(1<<20)), runtime.ContentTypeJSON, extv1.SchemeGroupVersion)
	list := definitions(20)
	encode(t, e, list)
	list.Items[3].Spec.Group, list.Items[3].ResourceVersion = "other", "900"
	want := encode(t, encoderOf(codecs, runtime.ContentTypeJSON, extv1.SchemeGroupVersion), list)
	if got := encode(t, e, list); !bytes.Equal(got, want) {
		t.Fatalf("got %s", got)
	}
	list.Items[4].UID = ""
	want = encode(t, encoderOf(codecs, runtime.ContentTypeJSON, extv1.SchemeGroupVersion), list)
	if got := encode(t, e, list); !bytes.Equal(got, want) {
		t.Fatalf("without identity: got %s", got)
	}
}

func TestBudgetHolds(t *testing.T) {
	e := encoderOf(splice.Wrap(scheme.Codecs, splice.NewCache(50_000)), runtime.ContentTypeJSON, corev1.SchemeGroupVersion)
	want := encode(t, encoderOf(scheme.Codecs, runtime.ContentTypeJSON, corev1.SchemeGroupVersion), configMaps(500))
	for range 3 {
		if got := encode(t, e, configMaps(500)); !bytes.Equal(got, want) {
			t.Fatal("different bytes")
		}
	}
}

func BenchmarkList(b *testing.B) {
	list := configMaps(1000)
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for name, ns := range map[string]runtime.NegotiatedSerializer{"plain": scheme.Codecs, "spliced": splice.Wrap(scheme.Codecs, splice.NewCache(32<<20))} {
			b.Run(media+"/"+name, func(b *testing.B) {
				e := encoderOf(ns, media, corev1.SchemeGroupVersion)
				for b.Loop() {
					if err := e.Encode(list, io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
