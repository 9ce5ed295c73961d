package project

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// topic is the notice that something has changed by which projects are found
// and opened. It concerns all of them: a group opens what is below it.
const topic = "project"

const (
	// knownTTL bounds how long a known project is believed even if no notice
	// of a change arrives.
	knownTTL = time.Minute
	// knownMax bounds what is known: about 2 KiB each.
	knownMax = 4000
)

// knownKey is who asked for what, on a day: memberships end with one.
type knownKey struct {
	user  int64
	ref   Ref
	day   string
	whole bool // with what stands beside the row
}

// knownProjects are the projects that were found last, each with what the one
// who asked is in it. Whether they may read it is asked again each time.
type knownProjects struct {
	mu      sync.RWMutex
	found   map[knownKey]knownProject
	dropped int // how often all was dropped

	editions atomic.Int64
}

type knownProject struct {
	project Project
	loaded  time.Time
}

// watchProjects drops what is known when a row changes that it came from, no
// matter who changes it.
func (s *Service) watchProjects() {
	s.Notices.Subscribe(topic, func(string) { s.known.drop() })
	tables := []string{"projects", "namespaces", "namespace_tree", "members", "group_shares", "project_topics"}
	s.DB.OnWrite(tables, func(ctx context.Context, tx *db.Tx) error { return s.Notices.Send(ctx, tx, topic, "all") })
}

// OnChange has f called when something may have changed by which projects are
// found and opened, on this node or another; f must be quick. It is called at
// start-up.
func (s *Service) OnChange(f func()) { s.Notices.Subscribe(topic, func(string) { f() }) }

// Summary returns a project with its topics and number of forks, but without the
// other fields that Get reads. The result is shared and must not be changed.
// The errors are those of Get.
func (s *Service) Summary(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, moved, err := s.recall(ctx, by, ref, true)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	return admit(by, p, moved, ref, NoAccess)
}

// recall is findByRef and access for a project that is only to be read, with
// topics and forks if it is wanted whole.
func (s *Service) recall(ctx context.Context, by actor.Actor, ref Ref, whole bool) (p *Project, moved bool, err error) {
	now := s.Now()
	key := knownKey{by.ID, ref, s.today(), whole}
	p, drops, have := s.known.get(key, now)
	if have && s.Notices.Fresh() {
		return p, false, nil
	}
	p, moved, err = findByRef(ctx, s.DB, ref)
	if err != nil {
		return nil, false, err
	}
	if p.Access, err = s.access(ctx, s.DB, by, p); err != nil {
		return nil, false, err
	}
	p.Edition = s.known.editions.Add(1)
	if whole {
		if err := s.topicsAndForks(ctx, p); err != nil {
			return nil, false, err
		}
	}
	if !moved {
		s.known.put(key, knownProject{*p, now}, drops)
	}
	return p, moved, nil
}

// get returns a copy of what is known, and what put needs.
func (k *knownProjects) get(key knownKey, now time.Time) (p *Project, drops int, have bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	found, have := k.found[key]
	if !have || now.Sub(found.loaded) >= knownTTL {
		return nil, k.dropped, false
	}
	return &found.project, k.dropped, true
}

// put keeps a project unless something was dropped since it was read: then it
// may be old already.
func (k *knownProjects) put(key knownKey, p knownProject, drops int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dropped != drops {
		return
	}
	if k.found == nil || len(k.found) >= knownMax {
		k.found = map[knownKey]knownProject{}
	}
	k.found[key] = p
}

func (k *knownProjects) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found = nil
	k.dropped++
}
