package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// resync is how often every Mirror is looked at though nothing has changed.
const resync = 5 * time.Minute

// controller reconciles Mirrors.
type controller struct {
	typed   kubernetes.Interface
	untyped dynamic.Interface
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]

	mirrors, configMaps cache.SharedIndexInformer
}

func newController(typed kubernetes.Interface, untyped dynamic.Interface) *controller {
	return &controller{
		typed: typed, untyped: untyped,
		queue:      workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		mirrors:    dynamicinformer.NewDynamicSharedInformerFactory(untyped, resync).ForResource(mirrors).Informer(),
		configMaps: informers.NewSharedInformerFactory(typed, resync).Core().V1().ConfigMaps().Informer(),
	}
}

// run reconciles until ctx ends; no reconcile runs any more when it returns.
func (c *controller) run(ctx context.Context) error {
	if err := c.listen(); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.mirrors.Run(ctx.Done()) })
	running.Go(func() { c.configMaps.Run(ctx.Done()) })
	if !cache.WaitForCacheSync(ctx.Done(), c.mirrors.HasSynced, c.configMaps.HasSynced) {
		return context.Cause(ctx)
	}
	for range workers {
		running.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	return context.Cause(ctx)
}

// listen puts into the queue whom a change concerns.
func (c *controller) listen() error {
	err := c.mirrors.AddIndexers(cache.Indexers{"original": originalOf})
	if err != nil {
		return err
	}
	if _, err := c.mirrors.AddEventHandler(onEvery(c.mirrorChanged)); err != nil {
		return err
	}
	_, err = c.configMaps.AddEventHandler(onEvery(c.configMapChanged))
	return err
}

// onEvery calls f with every object that was added, changed or deleted.
func onEvery(f func(object any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    f,
		UpdateFunc: func(_, now any) { f(now) },
		DeleteFunc: func(last any) {
			if missed, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = missed.Obj
			}
			f(last)
		},
	}
}

// originalOf finds Mirrors by their original.
func originalOf(object any) ([]string, error) {
	m, err := fromObject(object.(*unstructured.Unstructured))
	if err != nil {
		return nil, err
	}
	return []string{m.Namespace + "/" + m.Spec.ConfigMap}, nil
}

func (c *controller) mirrorChanged(object any) {
	if m, ok := object.(*unstructured.Unstructured); ok {
		c.queue.Add(cache.ObjectName{Namespace: m.GetNamespace(), Name: m.GetName()})
	}
}

// configMapChanged wakes the Mirrors of an original, and the one of a copy.
func (c *controller) configMapChanged(object any) {
	m, ok := object.(*v1.ConfigMap)
	if !ok {
		return
	}
	if namespace, name, ok := strings.Cut(m.Labels[copyOf], "."); ok {
		c.queue.Add(cache.ObjectName{Namespace: namespace, Name: name})
	}
	of, err := c.mirrors.GetIndexer().ByIndex("original", m.Namespace+"/"+m.Name)
	if err != nil {
		slog.Error("cannot find the mirrors of a ConfigMap", "configmap", m.Namespace+"/"+m.Name, "why", err)
	}
	for _, object := range of {
		c.mirrorChanged(object)
	}
}

// work reconciles one Mirror after the other; one that fails is tried again later and later.
func (c *controller) work(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.reconcile(ctx, key); err != nil {
			slog.Error("cannot reconcile", "mirror", key.String(), "why", err)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// mirror reads a Mirror from the cache; nil when it is gone.
func (c *controller) mirror(key cache.ObjectName) (*Mirror, error) {
	object, there, err := c.mirrors.GetIndexer().GetByKey(key.String())
	if err != nil || !there {
		return nil, err
	}
	m, err := fromObject(object.(*unstructured.Unstructured))
	if err != nil {
		return nil, fmt.Errorf("cannot read mirror %s: %w", key, err)
	}
	return m, nil
}
