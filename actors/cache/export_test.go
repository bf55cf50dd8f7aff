package cache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

func reflectNew(t reflect.Type) runtime.Object {
	return reflect.New(t.Elem()).Interface().(runtime.Object)
}
