package ci

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/ci/runners"
	"svc/internal/errs"
	"svc/internal/project"
)

// RunnerLimit narrows the jobs that a runner gets, beyond its own settings. It is
// for a runner that does not isolate jobs from the server.
type RunnerLimit struct {
	Within []string      // full paths of projects and groups; empty: all
	Role   project.Level // minimum role of the user of a job in its project; administrators are exempt
	// Closed returns the reason why the runner takes no jobs at the moment, or
	// an empty string if it takes jobs.
	Closed func(ctx context.Context) (reason string, err error)
}

// maxRefused is the maximum number of jobs that one request for a job refuses.
const maxRefused = 200

// LimitRunner sets the limit of a runner. It is called at start-up.
func (s *Service) LimitRunner(runnerID int64, l RunnerLimit) {
	s.limits[runnerID] = l
	s.JobQueue.Separate(runnerID)
}

// refusal returns the reason why the limit of a runner excludes a job, or an
// empty string if it does not.
func (s *Service) refusal(ctx context.Context, r *runners.Runner, p *project.Project, jobID int64) (string, error) {
	l, limited := s.limits[r.ID]
	if !limited {
		return "", nil
	}
	if reason, err := l.Closed(ctx); reason != "" || err != nil {
		return reason, err
	}
	within := func(path string) bool {
		return strings.EqualFold(p.FullPath, path) || len(p.FullPath) > len(path) && strings.EqualFold(p.FullPath[:len(path)+1], path+"/")
	}
	if len(l.Within) > 0 && !slices.ContainsFunc(l.Within, within) {
		return fmt.Sprintf("The runner %q does not serve this project.", r.Description), nil
	}
	j, err := findAnyJob(ctx, s.DB, jobID)
	if err != nil {
		return "", errs.IgnoreNotFound(err) // another runner took it
	}
	return s.refusedUser(ctx, r, l, j)
}

// refusedUser checks the role of the user for whom a job runs.
func (s *Service) refusedUser(ctx context.Context, r *runners.Runner, l RunnerLimit, j *Job) (string, error) {
	refused := fmt.Sprintf("The runner %q runs only jobs of users who have at least the role %s in the project.", r.Description, l.Role)
	if j.UserID == nil {
		return refused, nil
	}
	by, err := s.Users.As(ctx, *j.UserID)
	if err == nil && by.Admin {
		return "", nil
	}
	if err == nil {
		_, err = s.Projects.Require(ctx, by, project.RefTo(j.ProjectID), l.Role)
	}
	if kind := errs.KindOf(err); kind != 0 && kind != errs.KindUnavailable {
		return refused, nil
	}
	return "", err
}
