package ci

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/project"
)

// topicChanged is the topic of notices about changes in a pipeline. The key has
// the IDs of the project and the pipeline.
const topicChanged = "ci_changed"

const (
	// changePause is the minimum time between two messages to a follower.
	changePause = time.Second
	// changeBeat is the interval of messages without changes. The access of the
	// follower is checked before each.
	changeBeat = 25 * time.Second
)

// changes is the set of followers of pipelines on this node.
type changes struct {
	mu       sync.Mutex
	projects map[int64]map[*follower]struct{}
}

// follower is a subscription to the pipelines of a project, or to one of them.
type follower struct {
	pipeline int64 // 0 stands for all
	wake     chan struct{}
}

func newChanges() *changes { return &changes{projects: map[int64]map[*follower]struct{}{}} }

func (c *changes) follow(projectID, pipelineID int64) (f *follower, stop func()) {
	f = &follower{pipelineID, make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.projects[projectID] == nil {
		c.projects[projectID] = map[*follower]struct{}{}
	}
	c.projects[projectID][f] = struct{}{}
	return f, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.projects[projectID], f)
		if len(c.projects[projectID]) == 0 {
			delete(c.projects, projectID)
		}
	}
}

// wake wakes the followers of a pipeline; without a project, all followers.
func (c *changes) wake(projectID, pipelineID int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, followers := range c.projects {
		if projectID != 0 && id != projectID {
			continue
		}
		for f := range followers {
			if projectID != 0 && f.pipeline != 0 && f.pipeline != pipelineID {
				continue
			}
			select {
			case f.wake <- struct{}{}:
			default: // a wake-up is already pending
			}
		}
	}
}

func (s *Service) listenChanged() {
	s.Notices.Subscribe(topicChanged, func(key string) {
		in, id, _ := strings.Cut(key, " ")
		projectID, err := strconv.ParseInt(in, 10, 64)
		if err != nil {
			projectID = 0 // everything may have changed
		}
		pipelineID, _ := strconv.ParseInt(id, 10, 64)
		s.changes.wake(projectID, pipelineID)
	})
}

// changed publishes, once the transaction is committed, that a pipeline has
// changed. The followers of its parent pipelines get it as well.
func (s *Service) changed(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	if up := p.facts.Upstream; up != nil {
		if err := s.changedAt(ctx, tx, up.ProjectID, up.PipelineID); err != nil {
			return err
		}
	}
	return s.changedAt(ctx, tx, p.ProjectID, p.ID)
}

func (s *Service) changedAt(ctx context.Context, tx *db.Tx, projectID, pipelineID int64) error {
	return s.Notices.Send(ctx, tx, topicChanged, fmt.Sprintf("%d %d", projectID, pipelineID))
}

// FollowPipelines calls send when one pipeline, or any of a project, has changed,
// until the context ends or send fails. There is a minimum time between two
// calls. It regularly calls send with false: nothing has changed, but the
// connection may be closed. Access is checked before each call, and when the
// account of the reader or one of their credentials changes. NotFound,
// Forbidden or Unauthorized, also when the reader loses access later.
func (s *Service) FollowPipelines(ctx context.Context, who Reader, in project.Ref, pipelineID int64, send func(changed bool) error) error {
	reader, end, err := s.readers.begin(ctx, who)
	if err != nil {
		return err
	}
	defer end()
	see := func() (*project.Project, error) {
		by, err := reader.actor(ctx)
		if err != nil {
			return nil, err
		}
		proj, err := s.seePipelines(ctx, by, in)
		if err == nil && pipelineID != 0 {
			_, err = s.visiblePipeline(ctx, by, proj, pipelineID)
		}
		return proj, err
	}
	proj, err := see()
	if err != nil {
		return err
	}
	f, stop := s.changes.follow(proj.ID, pipelineID)
	defer stop()
	// Changes before the subscription must not be missed: the first message
	// lets the client load the current state.
	if err := send(false); err != nil {
		return err
	}
	for {
		changed, err := s.awaitChange(ctx, f.wake, reader.wake)
		if err != nil {
			return nil // the connection or the server was closed
		}
		if _, err := see(); err != nil {
			return err
		}
		if err := send(changed); err != nil {
			return err
		}
		if changed && !s.pause(ctx, changePause) {
			return nil
		}
	}
}

// awaitChange waits for a change. It returns false if access must be checked or
// after changeBeat without a change, and an error if the request or the server
// ends.
func (s *Service) awaitChange(ctx context.Context, wake, check <-chan struct{}) (bool, error) {
	beat := time.NewTimer(changeBeat)
	defer beat.Stop()
	select {
	case <-wake:
		return true, nil
	case <-check:
		return false, nil
	case <-beat.C:
		return false, nil
	case <-s.JobQueue.Closed():
		return false, context.Canceled
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// pause waits for a duration. It returns false if the request or the server
// ends first.
func (s *Service) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.JobQueue.Closed():
	case <-ctx.Done():
	}
	return false
}
