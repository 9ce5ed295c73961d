package app

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// States of a dependency in the response of the readiness check.
const (
	stateOK      = "ok"
	stateFailed  = "failed"
	stateUnknown = "unknown" // not checked yet
)

// dependencies checks the services that a node uses besides the database. They do
// not affect readiness, and a slow one must not delay the answer, so they are
// checked in the background.
type dependencies struct {
	log  *slog.Logger
	list []*dependency
}

// dependency is a service that a node uses besides the database.
type dependency struct {
	name  string
	every time.Duration
	ping  func(context.Context) error

	mu    sync.Mutex
	state string
}

// newDependencies returns the dependencies of a server: the object store, and the
// mail server if configured.
func newDependencies(s *Server) *dependencies {
	d := &dependencies{log: s.Log, list: []*dependency{{name: "blobs", every: 15 * time.Second, ping: s.Blobs.Ping, state: stateUnknown}}}
	if s.Mail.Enabled() {
		d.list = append(d.list, &dependency{name: "mail", every: time.Minute, ping: s.Mail.Ping, state: stateUnknown})
	}
	return d
}

// start runs the checks until stop is called. ended is closed when the checks have
// stopped.
func (d *dependencies) start() (stop context.CancelFunc, ended <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, one := range d.list {
		running.Go(func() {
			tick := time.NewTicker(one.every)
			defer tick.Stop()
			for {
				d.check(ctx, one)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return stop, done
}

func (d *dependencies) check(ctx context.Context, one *dependency) {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := one.ping(within)
	if ctx.Err() != nil {
		return
	}
	state := stateOK
	if err != nil {
		state = stateFailed
	}
	one.mu.Lock()
	was := one.state
	one.state = state
	one.mu.Unlock()
	switch {
	case state == was:
	case err != nil:
		d.log.Error("a service does not respond", "part", one.name, "error", err)
	case was == stateFailed:
		d.log.Info("a service responds again", "part", one.name)
	}
}

// states returns the state of each service by its name.
func (d *dependencies) states() map[string]string {
	all := make(map[string]string, len(d.list)+2)
	for _, one := range d.list {
		one.mu.Lock()
		all[one.name] = one.state
		one.mu.Unlock()
	}
	return all
}
