package adapter

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// maxListErrors bounds the unreadable objects that one list reports.
const maxListErrors = 100

// corruptError says that a stored object cannot be read.
type corruptError struct {
	what string
	err  error
}

func (e *corruptError) Error() string { return e.what + ": " + e.err.Error() }
func (e *corruptError) Unwrap() error { return e.err }

// What can be wrong with a stored object.
const (
	undecodable     = "object not decodable"
	untransformable = "data from the storage is not transformable"
)

func (s *Store) corrupt(what string, err error) error {
	if !s.cfg.MarkCorrupt {
		return err
	}
	return &corruptError{what, err}
}

func unsafeDeletion() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}

// reportCorrupt marks a corrupt object's error so that the registry can offer its unsafe deletion.
func reportCorrupt(key string, err error) error {
	var c *corruptError
	if !errors.As(err, &c) {
		return err
	}
	return storage.NewCorruptObjError(key, c)
}

// listErrors collects what went wrong with single items of a list.
type listErrors struct {
	resource schema.GroupResource
	collect  bool // go on over unreadable objects
	corrupt  []error
	abort    error
}

var errTooMany = errors.New("too many errors, the list is truncated")

func newListErrors(gr schema.GroupResource) listErrors {
	return listErrors{resource: gr, collect: unsafeDeletion()}
}

// add notes err and reports whether the list goes on.
func (l *listErrors) add(key string, err error) bool {
	var c *corruptError
	if !l.collect || !errors.As(err, &c) {
		l.abort = keyed(key, err)
		return false
	}
	l.corrupt = append(l.corrupt, storage.NewCorruptObjError(key, c))
	if len(l.corrupt) >= maxListErrors {
		l.abort = errTooMany
		return false
	}
	return true
}

// keyed names the object in an internal error, which says nothing of it by itself.
func keyed(key string, err error) error {
	var internal storage.InternalError
	if !errors.As(err, &internal) {
		return err
	}
	return storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", key, internal.Unwrap()))
}

// aggregate is the error of the whole list, or nil.
func (l *listErrors) aggregate() error {
	if len(l.corrupt) == 0 {
		return l.abort
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", l.resource, l.corrupt[0])
	if n := len(l.corrupt); n > 1 {
		message += fmt.Sprintf(" (and %d more)", n-1)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: l.resource.Group, Kind: l.resource.Resource, Name: "list", Causes: l.causes()},
		Message: message,
	}}
}

func (l *listErrors) causes() []metav1.StatusCause {
	var causes []metav1.StatusCause
	for _, err := range l.corrupt {
		var serr *storage.StorageError
		if errors.As(err, &serr) {
			causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: serr.Key, Message: err.Error()})
		}
	}
	switch {
	case errors.Is(l.abort, errTooMany):
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: errTooMany.Error()})
	case l.abort != nil:
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: l.abort.Error()})
	}
	return causes
}

// deletedUnreadable reports the deletion of an object that could not be decoded: watchers cannot be told what went.
func deletedUnreadable(err error) error {
	var c *corruptError
	if !errors.As(err, &c) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: "saw a DELETED event, but object data is corrupt - " + c.Error(),
	}}
}
