package jobqueue

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"svc/internal/ci/runners"
)

// topic is the notice that a job was queued; its key is a wakeup.
const topic = "ci_queued"

// maxPoll is how long a job request is held when there is no job.
const maxPoll = 50 * time.Second

// longPolls are the job requests that this node holds until there is a job for
// the runner.
type longPolls struct {
	mu     sync.Mutex
	list   []*longPoll // longest waiting first
	closed chan struct{}
	over   bool
}

// longPoll is one held request.
type longPoll struct {
	runner   *runners.Runner
	projects []int64 // of a project's runner
	wake     chan wakeup
}

// wakeup announces a pending job to held requests.
type wakeup struct {
	project, tags int64
	protected     bool
	all           bool // end all requests: something other than the queue has changed
}

func newLongPolls() *longPolls {
	return &longPolls{closed: make(chan struct{})}
}

func (w *longPolls) add(at *longPoll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, at)
}

// Held is the number of job requests that this node holds.
func (q *Queue) Held() int {
	q.polls.mu.Lock()
	defer q.polls.mu.Unlock()
	return len(q.polls.list)
}

// Cursor is the value that a runner sends with its next request to show that the
// request may be held.
func (q *Queue) Cursor() string { return "svc-1" }

var cursorForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}-[0-9]{1,20}$`)

// Holds reports whether a request with a cursor may be held. Any node holds the
// cursors of all nodes: a request is registered before the queue is read, so that
// it misses no job.
func (q *Queue) Holds(cursor string) bool { return cursorForm.MatchString(cursor) }

func (w *longPolls) remove(at *longPoll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = slices.DeleteFunc(w.list, func(other *longPoll) bool { return other == at })
}

// close ends all held requests.
func (w *longPolls) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		close(w.closed)
	}
}

// wake wakes requests for a job. One instance runner and one project runner are
// enough, since the first takes the job. All group runners are woken, because
// this node does not know whether the group has the project. If the tags are not
// known, every runner that could serve the job is woken.
func (w *longPolls) wake(c wakeup, tagsOf func(int64) ([]string, bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) == 0 {
		return
	}
	tags, known := tagsOf(c.tags)
	var instance, project bool
	for _, at := range w.list {
		r := at.runner
		if !c.all {
			if r.ProtectedOnly && !c.protected || known && !r.Serves(tags) {
				continue
			}
			switch r.Type {
			case runners.InstanceType:
				if instance {
					continue
				}
			case runners.ProjectType:
				if project || !slices.Contains(at.projects, c.project) {
					continue
				}
			}
		}
		select {
		case at.wake <- c:
			instance = instance || known && r.Type == runners.InstanceType
			project = project || known && r.Type == runners.ProjectType
		default: // it is awake and looks for another job
		}
	}
}

// tagSetTimeout limits how long the wakeup of a job waits for its tags.
const tagSetTimeout = 5 * time.Second

// wake wakes requests for a job on this node. The tags of a set that the node has
// not seen yet are read first: otherwise the wakeup could go to a runner that does
// not serve the job.
func (q *Queue) wake(c wakeup) {
	if _, known := q.knownTags(c.tags); known || c.all || q.Held() == 0 {
		q.polls.wake(c, q.knownTags)
		return
	}
	go func() { // notices must not wait for the database
		ctx, cancel := context.WithTimeout(context.Background(), tagSetTimeout)
		defer cancel()
		_, _ = q.tagsOf(ctx, c.tags) // after an error all runners are woken
		q.polls.wake(c, q.knownTags)
	}()
}

// Close ends held requests and holds no more. It is called when the server stops.
func (q *Queue) Close() { q.polls.close() }

// Closed is closed by Close.
func (q *Queue) Closed() <-chan struct{} { return q.polls.closed }

// listen subscribes to notices about pending jobs and runners.
func (q *Queue) listen() {
	q.Notices.Subscribe(topic, func(key string) {
		c, ok := parseWakeup(key)
		if !ok {
			c.all = true
		}
		q.lists.clear()
		q.wake(c)
	})
	// Held requests of a changed runner end, so that the next request uses its new
	// settings.
	q.Notices.Subscribe(runners.TopicChanged, func(key string) {
		id, _ := strconv.ParseInt(key, 10, 64)
		q.lists.clear()
		for _, c := range q.polls.end(id) {
			q.wake(c)
		}
	})
}

// end ends all requests of a runner; 0 is all runners. It returns the wakeups
// that they had not handled, for other runners.
func (w *longPolls) end(runnerID int64) (calls []wakeup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.list {
		if runnerID != 0 && at.runner.ID != runnerID {
			continue
		}
		select {
		case c := <-at.wake:
			calls = append(calls, c)
		default:
		}
		at.wake <- wakeup{all: true} // does not block: senders hold the lock
	}
	return calls
}

// key is the wakeup as the key of a notice.
func (c wakeup) key() string { return fmt.Sprintf("%d %d %t", c.project, c.tags, c.protected) }

func parseWakeup(key string) (c wakeup, ok bool) {
	n, err := fmt.Sscanf(key, "%d %d %t", &c.project, &c.tags, &c.protected)
	return c, err == nil && n == 3
}

// pollTime returns how long a request is held if the runner asks for a duration.
func pollTime(asked time.Duration) time.Duration {
	if asked <= 0 {
		return maxPoll
	}
	return min(asked, maxPoll)
}

// Await holds a request until look finds a job, the time is over or the server stops.
// most limits the time unless it is 0. The request is registered before the first call
// of look, so that no job is missed in between.
func (q *Queue) Await(ctx context.Context, r *runners.Runner, most time.Duration, look func(context.Context) (found bool, err error)) error {
	at := &longPoll{runner: r, wake: make(chan wakeup, 1)}
	if r.Type == runners.ProjectType {
		var err error
		if at.projects, err = runners.ProjectIDs(ctx, q.DB, r.ID); err != nil {
			return err
		}
	}
	q.polls.add(at)
	var called []wakeup // not handled yet
	defer func() {
		q.polls.remove(at)
		select {
		case c := <-at.wake:
			called = append(called, c)
		default:
		}
		for _, c := range called { // another runner must handle it
			q.wake(c)
		}
	}()
	timer := time.NewTimer(pollTime(most))
	defer timer.Stop()
	for {
		found, err := look(ctx)
		if err != nil {
			return err
		}
		called = nil
		if found {
			return nil
		}
		select {
		case c := <-at.wake:
			if c.all {
				return nil
			}
			called = append(called, c)
			if !q.Notices.Fresh() {
				return nil // the runner may have changed: it must authenticate again
			}
		case <-timer.C:
			return nil
		case <-q.polls.closed:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
