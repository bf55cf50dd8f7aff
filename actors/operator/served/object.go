package served

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
)

// object is a stored custom resource.
type object struct {
	metav1.ObjectMeta
	spec   json.RawMessage
	status status
	// whole is all of it, for writing it back.
	whole map[string]any
}

// read decodes what is stored, as the API shows it: with the defaults of the schema.
func read(record cache.Record, tree *structural.Structural) (*object, error) {
	o := &object{}
	if err := utiljson.Unmarshal(record.Value, &o.whole); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", record.Key, err)
	}
	defaulting.Default(o.whole, tree)
	text, err := json.Marshal(o.whole)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", record.Key, err)
	}
	var parts struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     json.RawMessage   `json:"spec"`
		Status   json.RawMessage   `json:"status"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", record.Key, err)
	}
	o.ObjectMeta, o.spec = parts.Metadata, parts.Spec
	o.ResourceVersion = strconv.FormatInt(record.ModRevision, 10)
	if json.Unmarshal(parts.Status, &o.status) != nil {
		o.status = status{} // somebody wrote what the schema does not allow any more: the next pass writes it anew
	}
	return o, nil
}

// recordOf is the manifest that a custom resource is. A specification that S cannot hold is left as it is: the pass says so.
func recordOf[S operator.Specification](o *object) operator.Record {
	r := operator.Record{
		Metadata: operator.Metadata{
			Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Labels: o.Labels, Annotations: o.Annotations,
			Generation: o.Generation, Created: o.CreationTimestamp.Time, Finalizers: slices.Clone(o.Finalizers),
		},
		Spec:   o.spec,
		Status: o.status.manifest(),
	}
	if o.DeletionTimestamp != nil {
		r.Deleted = o.DeletionTimestamp.Time
	}
	if len(r.Spec) == 0 {
		r.Spec = json.RawMessage("{}")
	}
	var spec S
	if json.Unmarshal(r.Spec, &spec) != nil {
		return r
	}
	if form, hash, err := operator.Canonical(spec); err == nil {
		r.Spec, r.Hash = form, hash
	}
	return r
}

// wanted is what users say of an object: a change of it is a reason for a pass.
type wanted struct {
	Metadata struct {
		UID         string            `json:"uid"`
		Generation  int64             `json:"generation"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Deleted     *time.Time        `json:"deletionTimestamp"`
		Finalizers  []string          `json:"finalizers"`
	} `json:"metadata"`
}

// wantedOf reads it from a stored object; false when that cannot be read.
func wantedOf(record cache.Record) (w wanted, ok bool) {
	if json.Unmarshal(record.Value, &w) != nil {
		return w, false
	}
	if w.Metadata.Deleted == nil {
		w.Metadata.Finalizers = nil // who holds an object matters once it is to go
	}
	return w, true
}
