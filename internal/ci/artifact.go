package ci

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"svc/internal/actor"
	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/report"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

// AddArtifact stores a file of a running job, sent by its runner. Forbidden if
// the token is invalid or the job is not running, TooLarge over the limit,
// Invalid if the file is not what it claims to be or the job has another file
// of its kind.
func (s *Service) AddArtifact(ctx context.Context, jobID int64, token string, u artifact.Upload) (*artifact.File, *Job, error) {
	j, err := s.runnersJob(ctx, jobID, token)
	if err != nil {
		return nil, nil, err
	}
	if j.Status != flow.Running && !j.Canceling {
		return nil, j, errs.Forbidden("Job is not running")
	}
	a, err := s.Artifacts.Add(ctx, j.ID, j.ProjectID, u)
	return a, j, err
}

// JobArchive opens the archive of a job, for the runner of this job or of one
// that needs it. Forbidden if the token is invalid, NotFound if there is no
// archive.
func (s *Service) JobArchive(ctx context.Context, jobID int64, token, ip string) (*artifact.Content, error) {
	by, err := s.JobActor(ctx, token, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		return nil, errs.Forbidden("")
	}
	if err != nil {
		return nil, err
	}
	j, err := findAnyJob(ctx, s.DB, jobID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, errs.Forbidden("")
	}
	if err != nil {
		return nil, err
	}
	as, p, err := s.JobOpens(ctx, by, project.RefTo(j.ProjectID))
	if err == nil {
		err = s.jobReads(as, p, j)
	}
	if errs.IsRefusal(err) {
		return nil, errs.Forbidden("").Because(err)
	}
	if err != nil {
		return nil, err
	}
	return s.Artifacts.OpenArchive(ctx, j.ID)
}

// jobReads checks that a job token may read the artifacts of another job, with
// the actor and the project of JobOpens. The jobs of one project share their
// artifacts.
func (s *Service) jobReads(by actor.Actor, p *project.Project, j *Job) error {
	if by.Job != nil && p.ID == by.Job.ProjectID {
		return nil
	}
	if err := p.View(by, project.BuildsPart); err != nil {
		return err
	}
	if !repo.RefVisible(by, p, j.Ref) {
		return errs.NotFound("")
	}
	return s.readArtifacts(by, p, j)
}

// Archive opens the archive of a job, for users who may read its artifacts.
// NotFound if there is none.
func (s *Service) Archive(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*artifact.Content, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	return s.Artifacts.OpenArchive(ctx, j.ID)
}

// ArchiveAt opens the archive of the job with a name in the newest successful
// pipeline of a ref. NotFound if that pipeline has no such job with an archive;
// older ones are not searched.
func (s *Service) ArchiveAt(ctx context.Context, by actor.Actor, ref project.Ref, at, name string) (*artifact.Content, error) {
	j, err := s.artifactJobAt(ctx, by, ref, at, name)
	if err != nil {
		return nil, err
	}
	return s.Artifacts.OpenArchive(ctx, j.ID)
}

// ArchiveJob returns the job whose archive ArchiveAt opens.
func (s *Service) ArchiveJob(ctx context.Context, by actor.Actor, ref project.Ref, at, name string) (*Job, error) {
	return s.artifactJobAt(ctx, by, ref, at, name)
}

func (s *Service) artifactJob(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*Job, error) {
	as, _, err := s.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	p, j, err := s.seenJob(ctx, as, ref, jobID)
	if err != nil {
		return nil, jobRefusal(by, err)
	}
	return j, jobRefusal(by, s.readArtifacts(as, p, j))
}

func (s *Service) artifactJobAt(ctx context.Context, by actor.Actor, ref project.Ref, at, name string) (*Job, error) {
	as, p, err := s.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := p.View(as, project.BuildsPart); err != nil {
		return nil, jobRefusal(by, err)
	}
	at, tag, err := s.refName(ctx, p.ID, at)
	if err != nil {
		return nil, err
	}
	if !repo.RefVisible(as, p, at) {
		return nil, errs.NotFound("")
	}
	j, err := latestArchived(ctx, s.DB, p.ID, at, tag, name)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return j, jobRefusal(by, s.readArtifacts(as, p, j))
}

// readArtifacts checks artifacts:access of the job.
func (s *Service) readArtifacts(by actor.Actor, p *project.Project, j *Job) error {
	if j.Options.Artifacts == nil || by.Admin || by.Auditor {
		return nil
	}
	need := project.NoAccess
	switch j.Options.Artifacts.Access {
	case "developer":
		need = project.Developer
	case "maintainer":
		need = project.Maintainer
	case "none":
		return errs.Forbidden("")
	}
	switch {
	case p.Access.Level() >= need:
		return nil
	case by.Anonymous():
		return errs.Unauthorized("")
	}
	return errs.Forbidden("")
}

// ArtifactEntry opens one file of the archive of a job, for users who may read
// its artifacts. NotFound.
func (s *Service) ArtifactEntry(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64, name string) (*artifact.Entry, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	return s.Artifacts.OpenEntry(ctx, j.ID, name)
}

// ArtifactEntryAt is ArtifactEntry for the job that ArchiveAt finds.
func (s *Service) ArtifactEntryAt(ctx context.Context, by actor.Actor, ref project.Ref, at, job, name string) (*artifact.Entry, error) {
	j, err := s.artifactJobAt(ctx, by, ref, at, job)
	if err != nil {
		return nil, err
	}
	return s.Artifacts.OpenEntry(ctx, j.ID, name)
}

// ArtifactDir is a directory of the archive of a job.
type ArtifactDir struct {
	Job *Job
	*artifact.Dir
}

// ArtifactTree lists a directory of the archive of a job, the root if it is
// empty, for users who may read its artifacts. NotFound; Unprocessable if the
// archive cannot be read.
func (s *Service) ArtifactTree(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64, dir string) (*ArtifactDir, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	d, err := s.Artifacts.Tree(ctx, j.ID, dir)
	if err != nil {
		return nil, err
	}
	return &ArtifactDir{j, d}, s.fillJobs(ctx, by, []*Job{j})
}

// KeepArtifacts removes the expiration time of the artifacts of a job, for
// Developers and above who may run jobs on its ref. NotFound if there are none;
// Forbidden.
func (s *Service) KeepArtifacts(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*Job, error) {
	p, err := s.control(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if _, err := s.controlledJob(ctx, by, p, jobID); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		j, err := findJob(ctx, tx, p.ID, jobID)
		if err != nil {
			return err
		}
		return s.Artifacts.Keep(ctx, tx, j.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("keep artifacts of job %d: %w", jobID, err)
	}
	return s.Job(ctx, by, ref, jobID)
}

// DeleteArtifacts deletes the artifacts of a job, but not its log. Maintainers
// only; NotFound if there are none.
func (s *Service) DeleteArtifacts(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.BuildsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		j, err := findJob(ctx, tx, p.ID, jobID)
		if err != nil {
			return err
		}
		return s.Artifacts.Delete(ctx, tx, j.ID)
	})
	if err != nil {
		return fmt.Errorf("delete artifacts of job %d: %w", jobID, err)
	}
	return nil
}

// DeleteAllArtifacts deletes the artifacts of the finished jobs of a project in
// the background. Maintainers only.
func (s *Service) DeleteAllArtifacts(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.BuildsPart, project.Maintainer)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Artifacts.DeleteAll(ctx, tx, p.ID) })
}

// TestReport returns the test report of a pipeline, for users who can see the
// pipelines of the project. Without cases it has only the numbers. NotFound.
func (s *Service) TestReport(ctx context.Context, by actor.Actor, ref project.Ref, pipelineID int64, cases bool) (*report.TestReport, error) {
	p, err := s.seePipelines(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	pipeline, err := s.visiblePipeline(ctx, by, p, pipelineID)
	if err != nil {
		return nil, err
	}
	return s.Artifacts.TestReport(ctx, pipeline.ID, cases)
}

// artifactUses returns what a runner uploads.
func artifactUses(a *config.Artifacts) []ArtifactUse {
	if a == nil {
		return nil
	}
	var uses []ArtifactUse
	if len(a.Paths) > 0 || a.Untracked {
		uses = append(uses, ArtifactUse{
			Name: a.Name, Untracked: a.Untracked, Paths: a.Paths, Exclude: a.Exclude, When: string(a.When),
			Kind: artifact.Archive, Format: artifact.Zip, ExpireIn: a.ExpireIn,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Reports)) {
		uses = append(uses, reportUse(artifact.Kind(name), a.Reports[name], a.ExpireIn))
	}
	if c := a.CoverageReport; c != nil {
		uses = append(uses, reportUse(artifact.Kind(c.Format), []string{c.Path}, a.ExpireIn))
	}
	return uses
}

// reportUse is a report, which is uploaded whatever the result of the job is.
func reportUse(kind artifact.Kind, paths []string, expireIn string) ArtifactUse {
	format, name := artifact.FormOf(kind)
	return ArtifactUse{Name: name, Paths: paths, When: string(config.Always), Kind: kind, Format: format, ExpireIn: expireIn}
}
