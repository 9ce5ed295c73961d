package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/notice"
)

// changeTopic is the topic of notices about changes that affect how projects are
// found or who can access them. A notice applies to all projects, because a change
// to a group affects everything in it.
const changeTopic = "project"

const (
	// knownTTL is how long a cached project is used if no notice arrives.
	knownTTL = time.Minute
	// knownMax is the maximum number of cached projects, of about 2 KiB each.
	knownMax = 4000
)

// knownKey is the key of a cached project: the actor, the project and the day,
// because memberships expire at the end of a day.
type knownKey struct {
	user  int64
	ref   Ref
	day   string
	whole bool // with topics and forks
}

// watchProjects creates the cache of projects, and clears it when a table that
// they are read from changes.
func (s *Service) watchProjects() {
	s.known = notice.NewCache[knownKey](notice.CacheOptions[*Project]{Bus: s.Notices, TTL: knownTTL, Now: s.Now, Max: knownMax})
	s.Notices.Subscribe(changeTopic, func(string) { s.known.Drop() })
	s.Notices.SendOnWrite(changeTopic, "projects", "namespaces", "namespace_tree", "members", "group_shares", "project_topics")
}

// OnChange registers a function that is called when a change may affect how
// projects are found or who can access them, on any node. It must be fast.
// OnChange is called at startup.
func (s *Service) OnChange(f func()) { s.Notices.Subscribe(changeTopic, func(string) { f() }) }

// Summary returns a project with its topics and number of forks, but without the
// other fields that Get reads. The result is shared and must not be modified. The
// errors are those of Get.
func (s *Service) Summary(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, moved, err := s.recall(ctx, by, ref, true)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	return admit(by, p, moved, ref, NoAccess)
}

// recall returns a cached project with the access of the actor, with topics and
// forks if whole is set. The caller checks access. The result is a shallow copy.
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
