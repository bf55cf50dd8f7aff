package supervision

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"time"
)

// actorLabel names the actor in a CPU profile.
const actorLabel = "actor"

// Field numbers of the pprof format.
const (
	profileSample, profileString = 2, 6
	sampleValue, sampleLabel     = 2, 3
	labelKey, labelString        = 1, 2
	wireVarint, wireBytes        = 0, 2
)

// ErrMeasuring is returned when a CPU measurement is running already.
var ErrMeasuring = errors.New("a CPU profile is being taken already")

// errProfile is returned when a profile cannot be read.
var errProfile = errors.New("the profile is malformed")

// MeasureCPU takes a CPU profile for d and returns the share of one core that each actor used,
// by path. What runs outside the tree is left out. Only one profile can be taken at a time in
// a process.
func (s *System) MeasureCPU(ctx context.Context, d time.Duration) (map[string]float64, error) {
	if !s.measuring.CompareAndSwap(false, true) {
		return nil, ErrMeasuring
	}
	defer s.measuring.Store(false)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return nil, fmt.Errorf("cannot measure CPU: %w: %w", ErrMeasuring, err)
	}
	began := s.clock.Now()
	err := s.clock.Sleep(ctx, d)
	took := s.clock.Now().Sub(began)
	pprof.StopCPUProfile()
	if err != nil {
		return nil, err
	}
	shares, err := sharesByActor(&profile, took)
	if err != nil {
		return nil, fmt.Errorf("cannot measure CPU: %w", err)
	}
	s.gauges.cpu.Store(&CPUShares{At: began.Add(took), ByPath: shares})
	return shares, nil
}

// labelled delivers a message with the actor's name on the goroutine.
func (c *cell) labelled(msg any) error {
	pprof.SetGoroutineLabels(c.labels(context.Background()))
	defer pprof.SetGoroutineLabels(context.Background())
	return c.deliver(msg)
}

// labels returns a context with the actor's name for profiles.
func (c *cell) labels(ctx context.Context) context.Context {
	return pprof.WithLabels(ctx, pprof.Labels(actorLabel, c.slot.path))
}

// sharesByActor adds up the samples of a profile by actor.
func sharesByActor(profile io.Reader, took time.Duration) (map[string]float64, error) {
	unzipped, err := gzip.NewReader(profile)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, err
	}
	var samples [][]byte
	var texts []string
	err = eachField(raw, func(field int, _ uint64, body []byte) error {
		switch field {
		case profileSample:
			samples = append(samples, body)
		case profileString:
			texts = append(texts, string(body))
		}
		return nil
	})
	shares := map[string]float64{}
	for _, body := range samples {
		err = errors.Join(err, addSample(shares, body, texts, took))
	}
	return shares, err
}

// addSample adds one sample to its actor; its last value is CPU nanoseconds.
func addSample(shares map[string]float64, body []byte, texts []string, took time.Duration) error {
	var ns uint64
	var path string
	err := eachField(body, func(field int, n uint64, body []byte) error {
		switch {
		case field == sampleValue && body == nil:
			ns = n
		case field == sampleValue:
			ns = lastVarint(body)
		case field == sampleLabel:
			return actorOf(body, texts, &path)
		}
		return nil
	})
	if path != "" && took > 0 {
		shares[path] += float64(ns) / float64(took)
	}
	return err
}

// actorOf sets path when the label is that of an actor.
func actorOf(body []byte, texts []string, path *string) error {
	var key, value uint64
	err := eachField(body, func(field int, n uint64, _ []byte) error {
		switch field {
		case labelKey:
			key = n
		case labelString:
			value = n
		}
		return nil
	})
	if err != nil || key >= uint64(len(texts)) || value >= uint64(len(texts)) {
		return errors.Join(err, errProfile)
	}
	if texts[key] == actorLabel {
		*path = texts[value]
	}
	return nil
}

// lastVarint is the last number of a packed list.
func lastVarint(list []byte) (last uint64) {
	for len(list) > 0 {
		v, n := binary.Uvarint(list)
		if n <= 0 {
			return last
		}
		last, list = v, list[n:]
	}
	return last
}

// eachField calls f for every field of a protobuf message: with its number, or its bytes.
func eachField(msg []byte, f func(field int, n uint64, body []byte) error) error {
	for len(msg) > 0 {
		tag, n := binary.Uvarint(msg)
		if n <= 0 {
			return errProfile
		}
		value, m := binary.Uvarint(msg[n:])
		if m <= 0 {
			return errProfile
		}
		msg = msg[n+m:]
		var body []byte
		switch tag & 7 {
		case wireVarint:
		case wireBytes:
			if value > uint64(len(msg)) {
				return errProfile
			}
			body, msg = msg[:value:value], msg[value:]
		default:
			return errProfile
		}
		if err := f(int(tag>>3), value, body); err != nil {
			return err
		}
	}
	return nil
}
