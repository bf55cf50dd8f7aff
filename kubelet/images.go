package kubelet

import (
	"context"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/pod"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// pullBeat is the longest silence of a pull; the image store itself gives up earlier.
	pullBeat = images.NoProgressLimit + 30*time.Second
	// maxPulls bounds the pulls at work; more wait their turn.
	maxPulls = 16
	// gcEvery is how often the disk is looked at, gcAbove the share of it in use that starts a collection.
	gcEvery    = 5 * time.Minute
	gcAbove    = 85
	gcDeadline = 10 * time.Minute
)

// imagesChild pulls images for the pods: one transfer per image at a time, whoever asks for it.
type imagesChild struct {
	*shared
	pulls    map[string]*pullState // by key
	queue    []string
	active   int
	cleaning bool
}

// pullState is one image being pulled, and who waits for it.
type pullState struct {
	req     pod.PullRequest
	waiters []pod.PullRequest
}

// pullEnd is the end of one pull.
type pullEnd struct {
	key   string
	image images.Image
	took  time.Duration
	err   error
}

type gcTime struct{}

type gcDone struct{ err error }

// Receive handles one message.
func (i *imagesChild) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		i.pulls = map[string]*pullState{}
		self := ctx.Self()
		i.puller.Store(&self)
		ctx.After(gcEvery, gcTime{})
	case pod.PullRequest:
		i.request(ctx, msg)
	case gcTime:
		i.collect(ctx)
		ctx.After(gcEvery, gcTime{})
	case supervision.JobDone:
		switch v := msg.Value.(type) {
		case pullEnd:
			i.finish(ctx, v)
		case gcDone:
			i.cleaning = false
			if v.err != nil {
				ctx.Log().Warn("cannot remove unused image layers", "error", v.err)
			}
		}
	}
	return nil
}

// pullKey joins anonymous pulls of one image; pulls with credentials are each their own.
func pullKey(r pod.PullRequest) string {
	if r.Auth == nil {
		return r.Ref
	}
	return r.Ref + "\x00" + r.ReplyTo.Path()
}

func (i *imagesChild) request(ctx supervision.Context, r pod.PullRequest) {
	key := pullKey(r)
	p := i.pulls[key]
	if p == nil {
		p = &pullState{req: r}
		i.pulls[key] = p
		i.queue = append(i.queue, key)
	}
	for _, w := range p.waiters {
		if w.ReplyTo == r.ReplyTo && w.Container == r.Container {
			return
		}
	}
	p.waiters = append(p.waiters, r)
	i.next(ctx)
}

// next begins waiting pulls as long as there is room.
func (i *imagesChild) next(ctx supervision.Context) {
	for i.active < maxPulls && len(i.queue) > 0 {
		key := i.queue[0]
		i.queue = i.queue[1:]
		i.active++
		i.pull(ctx, key, i.pulls[key].req)
	}
}

func (i *imagesChild) pull(ctx supervision.Context, key string, r pod.PullRequest) {
	clock := ctx.Clock()
	ctx.Go(supervision.Job{Name: "pull " + r.Ref, BeatWithin: pullBeat, Run: func(c context.Context, beat func()) (any, error) {
		began := clock.Now()
		img, err := i.Images.Pull(c, r.Ref, images.PullOptions{Auth: r.Auth, Progress: func(images.Progress) { beat() }})
		return pullEnd{key: key, image: img, took: clock.Now().Sub(began), err: err}, nil
	}})
}

func (i *imagesChild) finish(ctx supervision.Context, e pullEnd) {
	i.active--
	p := i.pulls[e.key]
	delete(i.pulls, e.key)
	if p != nil {
		for _, w := range p.waiters {
			ctx.Send(w.ReplyTo, pod.PullDone{Ref: w.Ref, Container: w.Container, Image: e.image, Took: e.took, Err: e.err})
		}
	}
	i.next(ctx)
}

// collect removes layers nobody uses when the disk runs full.
func (i *imagesChild) collect(ctx supervision.Context) {
	if i.cleaning || len(i.pulls) > 0 || diskUsedPercent(i.Config.DataDir) < gcAbove {
		return
	}
	i.cleaning = true
	ctx.Go(supervision.Job{Name: "gc", Deadline: gcDeadline, Run: func(c context.Context, _ func()) (any, error) {
		return gcDone{collectImages(c, i.shared, true)}, nil
	}})
}
