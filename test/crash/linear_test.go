package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/test/linear"
)

const (
	// linearRounds is how many times the node is killed while clients work on the same few objects.
	linearRounds  = 3
	linearClients = 6
	linearObjects = 3
)

// apiClient is one client of single objects: it reads, creates, and changes what it has read.
type apiClient struct {
	id     int
	rnd    *rand.Rand
	known  map[string]*v1.ConfigMap
	record *linear.Record
	values *atomic.Int64
}

// TestP22_LinearizableAPI: what clients of the API are told about single objects has an order in which it is all true, over kills of the process.
func TestP22_LinearizableAPI(t *testing.T) {
	seed := setting("CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CRASH_SEED=%d", seed)
	rnd, record, values := rand.New(rand.NewPCG(seed, 2)), linear.NewRecord(), new(atomic.Int64)
	n := newNode(t)
	var clients []*apiClient
	for i := range linearClients {
		clients = append(clients, &apiClient{id: i, rnd: rand.New(rand.NewPCG(seed, uint64(10+i))), known: map[string]*v1.ConfigMap{}, record: record, values: values})
	}
	for round := range linearRounds {
		n.launch()
		api, err := n.ready()
		if err != nil {
			t.Fatalf("round %d: the node did not start after a crash: %v", round, err)
		}
		workAndDie(n, api, clients, time.Duration(300+rnd.IntN(1200))*time.Millisecond)
	}
	n.launch()
	api, err := n.ready()
	if err != nil {
		t.Fatal(err)
	}
	for i := range linearObjects {
		clients[0].read(context.Background(), api, objectName(i))
	}
	record.Judge(t, "objects of the API", linear.Objects)
	if told := record.Told(); told[linear.OK] == 0 || told[linear.Conflict] == 0 {
		t.Errorf("clients did not get into each other's way: %v", told)
	}
}

// workAndDie lets the clients work for a while and kills the node under them.
func workAndDie(n *node, api kubernetes.Interface, clients []*apiClient, after time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.work(ctx, api) })
	}
	time.Sleep(after)
	n.kill()
	cancel()
	wg.Wait()
}

func objectName(i int) string { return fmt.Sprintf("linear-%d", i) }

func (c *apiClient) work(ctx context.Context, api kubernetes.Interface) {
	for ctx.Err() == nil {
		name := objectName(c.rnd.IntN(linearObjects))
		switch have := c.known[name]; {
		case c.rnd.IntN(2) == 0:
			c.read(ctx, api, name)
		case have == nil:
			c.create(ctx, api, name)
		case c.rnd.IntN(4) == 0:
			c.remove(ctx, api, have)
		default:
			c.update(ctx, api, have)
		}
	}
}

func (c *apiClient) read(ctx context.Context, api kubernetes.Interface, name string) {
	c.do(linear.Call{Do: "get", Key: name}, func() (*v1.ConfigMap, error) {
		return api.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

func (c *apiClient) create(ctx context.Context, api kubernetes.Interface, name string) {
	call := linear.Call{Do: "create", Key: name, Value: fmt.Sprint(c.values.Add(1))}
	c.do(call, func() (*v1.ConfigMap, error) {
		m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": call.Value}}
		return api.CoreV1().ConfigMaps(namespace).Create(ctx, m, metav1.CreateOptions{})
	})
}

func (c *apiClient) update(ctx context.Context, api kubernetes.Interface, have *v1.ConfigMap) {
	call := linear.Call{Do: "update", Key: have.Name, Value: fmt.Sprint(c.values.Add(1)), Expect: have.Data["value"]}
	c.do(call, func() (*v1.ConfigMap, error) {
		m := have.DeepCopy()
		m.Data["value"] = call.Value
		return api.CoreV1().ConfigMaps(namespace).Update(ctx, m, metav1.UpdateOptions{})
	})
}

func (c *apiClient) remove(ctx context.Context, api kubernetes.Interface, have *v1.ConfigMap) {
	call := linear.Call{Do: "delete", Key: have.Name, Expect: have.Data["value"]}
	c.do(call, func() (*v1.ConfigMap, error) {
		return nil, api.CoreV1().ConfigMaps(namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &have.ResourceVersion}})
	})
}

// do makes a call and remembers what it has shown.
func (c *apiClient) do(call linear.Call, f func() (*v1.ConfigMap, error)) {
	delete(c.known, call.Key)
	c.record.Do(c.id, call, func() linear.Answer {
		m, err := f()
		if err != nil || m == nil {
			return linear.Answer{Outcome: told(err)}
		}
		c.known[call.Key] = m
		version, _ := strconv.ParseUint(m.ResourceVersion, 10, 64)
		return linear.Answer{Outcome: linear.OK, Value: m.Data["value"], Version: version}
	})
}

// told is what an error of the API says to a client.
func told(err error) linear.Outcome {
	switch {
	case err == nil:
		return linear.OK
	case apierrors.IsNotFound(err):
		return linear.NotFound
	case apierrors.IsAlreadyExists(err):
		return linear.Exists
	case apierrors.IsConflict(err):
		return linear.Conflict
	case apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), errors.Is(err, syscall.ECONNREFUSED):
		return linear.Refused
	}
	return linear.Unknown
}
