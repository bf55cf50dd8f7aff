package supervisionrest

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// The fields that objects can be selected by.
const (
	fieldName  = "metadata.name"
	fieldPath  = "spec.path"
	fieldRow   = "spec.row"
	fieldKind  = "spec.kind"
	fieldState = "status.state"
)

// maxCompared bounds how many names are compared with one that does not exist.
const maxCompared = 5000

// storage serves one kind, read-only.
type storage struct {
	source
	tree Tree
	feed *feed
}

var (
	_ rest.Storage              = &storage{}
	_ rest.Scoper               = &storage{}
	_ rest.Lister               = &storage{}
	_ rest.Getter               = &storage{}
	_ rest.Watcher              = &storage{}
	_ rest.ShortNamesProvider   = &storage{}
	_ rest.SingularNameProvider = &storage{}
)

// New implements rest.Storage.
func (s *storage) New() runtime.Object { return s.empty() }

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object { return plain(s.emptyList()) }

// NamespaceScoped implements rest.Scoper: the tree belongs to the node.
func (s *storage) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (s *storage) GetSingularName() string { return s.names().singular }

// ShortNames implements rest.ShortNamesProvider.
func (s *storage) ShortNames() []string { return []string{s.names().short} }

// Destroy implements rest.Storage.
func (s *storage) Destroy() { s.feed.close() }

// Get implements rest.Getter.
func (s *storage) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if o := s.at(Path(s.tree.Spec(), name), s.feed.revision()); o != nil {
		return o, nil
	}
	err := apierrors.NewNotFound(api.Resource(s.names().plural), name)
	err.ErrStatus.Message += s.suggestion(name)
	return nil, err
}

// suggestion names what a misspelt name may have meant, or nothing.
func (s *storage) suggestion(name string) string {
	var paths []string
	s.each("", "", func(path string, _ object) bool {
		paths = append(paths, path)
		return len(paths) < maxCompared
	})
	return Name(catalog.DidYouMean(strings.ReplaceAll(name, separator, "/"), paths))
}

// List implements rest.Lister. What it returns is made for this answer; a limit bounds how much that is.
func (s *storage) List(_ context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	page, err := s.page(options)
	if err != nil {
		return nil, err
	}
	list, match, count, last := s.emptyList(), s.matcher(options), int64(0), ""
	list.SetResourceVersion(page.revision)
	s.each(page.after, page.revision, func(path string, o object) bool {
		switch {
		case !match(o):
		case page.limit > 0 && count == page.limit:
			list.SetContinue(position{page.revision, last}.token())
			return false
		default:
			list.add(o)
			count++
			last = path
		}
		return true
	})
	return plain(list), nil
}

// plain takes the list out of its wrapping.
func plain(l listing) runtime.Object {
	switch l := l.(type) {
	case actorList:
		return l.ActorList
	case policyList:
		return l.FaultPolicyList
	}
	return l
}

// page is the part of a list that is asked for.
type page struct {
	position
	limit int64
}

func (s *storage) page(options *internalversion.ListOptions) (page, error) {
	p := page{position: position{revision: s.feed.revision()}}
	if options == nil {
		return p, nil
	}
	p.limit = options.Limit
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && options.ResourceVersion != p.revision {
		return p, apierrors.NewResourceExpired("only the present state of the tree can be listed")
	}
	if options.Continue == "" {
		return p, nil
	}
	var ok bool
	if p.position, ok = parsePosition(options.Continue); !ok {
		return p, apierrors.NewBadRequest("the continue token is not one of this resource")
	}
	return p, nil
}

// position is where a list was cut: behind the object of a path. Every page names the revision of the first, so that a watch from there
// misses nothing.
type position struct{ revision, after string }

func (p position) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.revision + " " + p.after))
}

func parsePosition(token string) (p position, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return p, false
	}
	p.revision, p.after, ok = strings.Cut(string(raw), " ")
	return p, ok && p.after != ""
}

// matcher tells which objects are selected.
func (s *storage) matcher(options *internalversion.ListOptions) func(o object) bool {
	label, field := labels.Everything(), fields.Everything()
	if options != nil && options.LabelSelector != nil {
		label = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		field = options.FieldSelector
	}
	return func(o object) bool {
		return label.Matches(labels.Set(o.GetLabels())) && (field.Empty() || field.Matches(s.fields(o)))
	}
}

// selectable refuses selectors for fields that the kind does not have.
func selectable(set fields.Set) runtime.FieldLabelConversionFunc {
	return func(field, value string) (string, string, error) {
		if !set.Has(field) {
			return "", "", fmt.Errorf("field %q cannot be selected by; these can: %s", field, strings.Join(sortedKeys(set), ", "))
		}
		return field, value, nil
	}
}
