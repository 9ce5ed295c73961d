package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// jobTokenKind follows the prefix of a job token.
const jobTokenKind = "cbt-"

// newJobToken returns a new job token.
func (s *Service) newJobToken() string {
	return secret.Token(cmp.Or(s.Site.Tokens, s.Site.Name) + jobTokenKind)
}

// IsJobToken reports whether a token has the form of a job token, also of one that
// was created before the prefix was set.
func (s *Service) IsJobToken(token string) bool {
	return strings.HasPrefix(token, cmp.Or(s.Site.Tokens, s.Site.Name)+jobTokenKind) || strings.HasPrefix(token, s.Site.Name+jobTokenKind)
}

// JobActor returns the actor of a job token: the user of the job, with the
// permissions of job tokens. Unauthorized if there is no such token or its job
// is not running.
func (s *Service) JobActor(ctx context.Context, token, ip string) (actor.Actor, error) {
	by, err := s.jobActor(ctx, token, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		return actor.Actor{}, s.Users.FailedToken(ctx, ip, err)
	}
	return by, err
}

func (s *Service) jobActor(ctx context.Context, token, ip string) (actor.Actor, error) {
	j, err := findJobByToken(ctx, s.DB, token)
	if errors.Is(err, db.ErrNoRows) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("find job token: %w", err)
	}
	if !j.holdsToken() || j.UserID == nil {
		return actor.Actor{}, errs.Unauthorized("")
	}
	by, err := s.Users.As(ctx, *j.UserID)
	if errs.IsRefusal(err) {
		return actor.Actor{}, errs.Unauthorized("").Because(err)
	}
	if err != nil {
		return actor.Actor{}, err
	}
	by.IP, by.Scopes = ip, []string{"read_repository"}
	by.Job = &actor.Job{ID: j.ID, ProjectID: j.ProjectID}
	return by, nil
}

// holdsToken reports whether the token of a job is valid: from the assignment of the
// job to a runner until its end. It stays valid while a canceled job runs its
// after_script.
func (j *JobState) holdsToken() bool {
	return j.Status == flow.Running || j.Canceling || j.Status == flow.Pending && j.ClaimedAt != nil
}

// held returns the state of a job for the runner that has it. Forbidden for
// every other token, also if there is no such job, because a proxy can answer
// with 404 itself.
func (s *Service) held(ctx context.Context, jobID int64, token string) (*heldJob, error) {
	h, err := findHeld(ctx, s.DB, jobID)
	if errors.Is(err, db.ErrNoRows) || err == nil && (len(h.token) == 0 || !secret.Equal(string(h.token), string(digest(token)))) {
		return nil, errs.Forbidden("")
	}
	if err != nil {
		return nil, fmt.Errorf("find job %d: %w", jobID, err)
	}
	return h, nil
}

// runnersJob returns the whole job to its runner, as held does.
func (s *Service) runnersJob(ctx context.Context, jobID int64, token string) (*Job, error) {
	if _, err := s.held(ctx, jobID, token); err != nil {
		return nil, err
	}
	return findAnyJob(ctx, s.DB, jobID)
}

// JobOpens returns a project and the actor whose permissions apply there. For a
// job token this is the user of the job in the job's own project and in
// projects that accept the token. In any other project the token has the
// permissions of an anonymous user, which cannot change anything; NotFound
// unless the project is public. Callers must continue with the returned actor,
// not with the one they passed. Other credentials keep their own permissions.
func (s *Service) JobOpens(ctx context.Context, by actor.Actor, ref project.Ref) (actor.Actor, *project.Project, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil || by.Job == nil || p.ID == by.Job.ProjectID {
		return by, p, err
	}
	open, err := s.JobTokens.Accepts(ctx, by.Job.ProjectID, p.ID)
	if err != nil {
		return actor.Actor{}, nil, fmt.Errorf("scope of job token: %w", err)
	}
	if open {
		return by, p, nil
	}
	visitor := actor.Actor{IP: by.IP}
	p, err = s.Projects.Require(ctx, visitor, ref, project.NoAccess)
	return visitor, p, err
}

// jobRefusal adds the reason to an error about permissions that only the user of a job
// has. Without it, the job would be asked to sign in, like an anonymous user.
func jobRefusal(by actor.Actor, err error) error {
	if by.Job != nil && errs.Is(err, errs.KindUnauthorized) {
		return errs.Forbidden("The project of this job is not in the job token allowlist of the project").Because(err)
	}
	return err
}

// CurrentJob returns the job of a job token. NotFound for other credentials.
func (s *Service) CurrentJob(ctx context.Context, by actor.Actor) (*Job, error) {
	if by.Job == nil {
		return nil, errs.NotFound("")
	}
	j, err := findAnyJob(ctx, s.DB, by.Job.ID)
	if err != nil {
		return nil, err
	}
	return j, s.fillJobs(ctx, by, []*Job{j})
}
