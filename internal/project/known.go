package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/notice"
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

// watchProjects makes the cache of projects, and drops it when a row changes that
// they came from, no matter who changes it.
func (s *Service) watchProjects() {
	s.known = notice.NewCache[knownKey](notice.CacheOptions[*Project]{Bus: s.Notices, TTL: knownTTL, Now: s.Now, Max: knownMax})
	s.Notices.Subscribe(topic, func(string) { s.known.Drop() })
	s.Notices.SendOnWrite(topic, "projects", "namespaces", "namespace_tree", "members", "group_shares", "project_topics")
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
// topics and forks if it is wanted whole. Whether the actor may read it is
// checked each time. The result is a copy.
func (s *Service) recall(ctx context.Context, by actor.Actor, ref Ref, whole bool) (p *Project, moved bool, err error) {
	key := knownKey{by.ID, ref, s.today(), whole}
	known, err := s.known.Get(key, func() (*Project, bool, error) {
		var p *Project
		p, moved, err = s.readProject(ctx, by, ref, whole)
		return p, !moved, err
	})
	if err != nil {
		return nil, false, err
	}
	p = new(Project)
	*p = *known
	return p, moved, nil
}

func (s *Service) readProject(ctx context.Context, by actor.Actor, ref Ref, whole bool) (p *Project, moved bool, err error) {
	p, moved, err = findByRef(ctx, s.DB, ref)
	if err != nil {
		return nil, false, err
	}
	if p.Access, err = s.access(ctx, s.DB, by, p); err != nil {
		return nil, false, err
	}
	p.Edition = s.editions.Add(1)
	if whole {
		if err := s.topicsAndForks(ctx, p); err != nil {
			return nil, false, err
		}
	}
	return p, moved, nil
}
