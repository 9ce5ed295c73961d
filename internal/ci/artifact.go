package ci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/report"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Artifact is a file that a job has uploaded.
type Artifact struct {
	ID        int64
	JobID     int64
	ProjectID int64
	Kind      ArtifactKind
	Format    ArtifactFormat
	Filename  string
	Size      int64
	SHA256    string
	ExpiresAt *time.Time
	CreatedAt time.Time

	blob string // its key in the store
}

// artifactKey is a new key for a file of a job. Keys are spread, because a
// store on disk reads a directory whole.
func artifactKey(jobID, projectID int64, kind ArtifactKind) string {
	return fmt.Sprintf("ci/%02x/%d/%d/%s-%s", uint8(jobID), projectID, jobID, kind, secret.Token("")[:12])
}

// Upload is an artifact as a runner sends it.
type Upload struct {
	Kind     ArtifactKind
	Format   ArtifactFormat
	Filename string
	ExpireIn string
	Content  io.Reader
}

// AddArtifact stores a file of a job that runs, sent by its runner. Forbidden
// when the token is another one or the job does not run, TooLarge over the
// limit, Invalid when the file cannot be what it says or there is another one
// of its kind.
func (s *Service) AddArtifact(ctx context.Context, jobID int64, token string, u Upload) (*Artifact, *Job, error) {
	j, err := s.runnersJob(ctx, jobID, token)
	if err != nil {
		return nil, nil, err
	}
	if j.Status != flow.Running && !j.Canceling {
		return nil, j, errs.Forbidden("Job is not running")
	}
	if u.Content == nil {
		return nil, j, errs.Invalid("the file is missing")
	}
	a, err := s.newArtifact(ctx, j, &u)
	if err != nil {
		return nil, j, err
	}
	files := []*Artifact{a}
	if err = s.storeArtifact(ctx, a, u.Content); err != nil {
		err = fmt.Errorf("store artifact: %w", err)
	}
	if err == nil {
		err = s.checkReport(ctx, a)
	}
	if err == nil {
		var index *Artifact
		if index, err = s.indexArtifact(ctx, a); index != nil {
			files = append(files, index)
		}
	}
	if err == nil {
		err = s.saveArtifact(ctx, j, files...)
	}
	if errors.Is(err, errSameArtifact) {
		return a, j, s.dropBlobs(ctx, files)
	}
	if err != nil {
		return nil, j, errors.Join(err, s.dropBlobs(context.WithoutCancel(ctx), files))
	}
	return a, j, nil
}

// indexArtifact makes what requests read in place of a file that is expensive to
// read; nil for other files.
func (s *Service) indexArtifact(ctx context.Context, a *Artifact) (*Artifact, error) {
	switch a.Kind {
	case ArchiveFile:
		return s.indexArchive(ctx, a)
	case JUnitFile:
		return s.indexReport(ctx, a)
	}
	return nil, nil
}

// dropBlobs removes files that no row names.
func (s *Service) dropBlobs(ctx context.Context, files []*Artifact) error {
	var faults []error
	for _, a := range files {
		faults = append(faults, s.dropUpload(ctx, a.blob))
	}
	return errors.Join(faults...)
}

func (s *Service) dropUpload(ctx context.Context, blob string) error {
	if err := s.Blobs.Delete(ctx, blob); err != nil {
		return fmt.Errorf("remove %s: %w", blob, err)
	}
	return forgetUpload(ctx, s.DB, blob)
}

// uploadTime is how long a file may take to come.
const uploadTime = 24 * time.Hour

// sweepUploads removes what a crash left of files that were being sent.
func (s *Service) sweepUploads(ctx context.Context) error {
	left, err := findUploads(ctx, s.DB, s.Now().Add(-uploadTime), removedAtOnce)
	if err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	for _, blob := range left {
		if err := s.dropUpload(ctx, blob); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) newArtifact(ctx context.Context, j *Job, u *Upload) (*Artifact, error) {
	form, known := artifactForms()[u.Kind]
	if !known || u.Kind == TraceFile || u.Kind == MetadataFile { // those are made here
		return nil, errs.Invalid("there is no such type of artifact")
	}
	if u.Format == "" {
		u.Format = form.format
	}
	if u.Format != form.format {
		return nil, errs.Invalid("Invalid file format with specified file type")
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	a := &Artifact{
		JobID: j.ID, ProjectID: j.ProjectID, Kind: u.Kind, Format: u.Format, Filename: u.Filename, CreatedAt: s.Now(), blob: artifactKey(j.ID, j.ProjectID, u.Kind),
	}
	if a.Filename == "" {
		a.Filename = form.name
	}
	if a.ExpiresAt, err = expiry(u.ExpireIn, settings.ArtifactDays, a.CreatedAt); err != nil {
		return nil, err
	}
	limit := int64(settings.MaxArtifactMegabytes) << 20
	u.Content = &limitedReader{r: u.Content, left: limit, over: errs.TooLarge("an artifact may have %d MB", settings.MaxArtifactMegabytes)}
	return a, nil
}

// expiry is when artifacts go that are to be kept as long as a job says.
func expiry(in string, days int, now time.Time) (*time.Time, error) {
	in = strings.TrimSpace(in)
	switch {
	case in == "never", in == "" && days == 0:
		return nil, nil
	case in == "":
		at := now.AddDate(0, 0, days)
		return &at, nil
	}
	d, err := config.ParseDuration(in)
	if err != nil {
		return nil, errs.Invalid("expire_in is not a duration").Because(err)
	}
	if d <= 0 {
		return nil, nil
	}
	at := now.Add(d)
	return &at, nil
}

// limitedReader ends in an error where there is more than is allowed.
type limitedReader struct {
	r    io.Reader
	left int64
	over error
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.over
	}
	return n, err
}

// storeArtifact writes a file that has no row yet.
func (s *Service) storeArtifact(ctx context.Context, a *Artifact, content io.Reader) error {
	if err := insertUpload(ctx, s.DB, a.blob, a.CreatedAt); err != nil {
		return err
	}
	sum := sha256.New()
	size, err := s.Blobs.Put(ctx, a.blob, io.TeeReader(content, sum), blob.Options{})
	if err != nil {
		return err
	}
	a.Size, a.SHA256 = size, hex.EncodeToString(sum.Sum(nil))
	return nil
}

// checkReport refuses a report that the server cannot use.
func (s *Service) checkReport(ctx context.Context, a *Artifact) error {
	if a.Kind != DotenvFile {
		return nil
	}
	if a.Size > report.MaxDotenv {
		return report.DotenvTooLarge()
	}
	r, err := s.openPlain(ctx, a, report.MaxDotenv+1)
	if err != nil {
		return err
	}
	defer r.Close()
	return report.CheckDotenv(r)
}

// errSameArtifact says that a job has this very file already: a runner that
// did not hear our answer sends it again.
var errSameArtifact = errors.New("the job has this file already")

// saveArtifact writes down a file of a job, and those that were made of it.
func (s *Service) saveArtifact(ctx context.Context, j *Job, files ...*Artifact) error {
	a := files[0]
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "jobs", j.ID); err != nil {
			return err
		}
		now, err := findAnyJob(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		if now.Status != flow.Running && !now.Canceling {
			return errs.Forbidden("Job is not running")
		}
		have, err := findArtifact(ctx, tx, j.ID, a.Kind)
		if err == nil {
			if have.SHA256 == a.SHA256 {
				return errSameArtifact
			}
			return errs.Invalid("another artifact of the same type already exists")
		}
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		for _, f := range files {
			if err := deleteUpload(ctx, tx, f.blob); err != nil {
				return err
			}
			if err := insertArtifact(ctx, tx, f); err != nil {
				return err
			}
		}
		if a.Kind != ArchiveFile {
			return nil
		}
		return db.ExecOne(ctx, tx, `UPDATE jobs SET artifacts_expire_at = ? WHERE id = ?`, a.ExpiresAt, j.ID)
	})
	if err != nil {
		return fmt.Errorf("save artifact of job %d: %w", j.ID, err)
	}
	return nil
}

// FileContent is the content of an artifact; the caller closes it.
type FileContent struct {
	Name    string
	Size    int64
	ModTime time.Time
	ETag    string
	io.ReadSeekCloser
}

// JobArchive opens the archive of a job, for its runner or one that needs it:
// Forbidden if the token is invalid, NotFound when there is none.
func (s *Service) JobArchive(ctx context.Context, jobID int64, token, ip string) (*FileContent, error) {
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
	return s.openArchive(ctx, j)
}

// jobReads checks that the token of a job reads the artifacts of another job,
// with the actor and the project of JobOpens. The jobs of one project share what
// they make.
func (s *Service) jobReads(by actor.Actor, p *project.Project, j *Job) error {
	if by.Job != nil && p.ID == by.Job.ProjectID {
		return nil
	}
	if err := p.View(by, project.BuildsPart); err != nil {
		return err
	}
	if !sees(by, p, j.Ref) {
		return errs.NotFound("")
	}
	return s.readArtifacts(by, p, j)
}

// Archive opens the archive of a job, for those who may read the artifacts of
// the job. NotFound when there is none.
func (s *Service) Archive(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*FileContent, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	return s.openArchive(ctx, j)
}

// ArchiveAt opens the archive of the newest successful pipeline of a ref that
// has a job of the name.
func (s *Service) ArchiveAt(ctx context.Context, by actor.Actor, ref project.Ref, at, name string) (*FileContent, error) {
	j, err := s.artifactJobAt(ctx, by, ref, at, name)
	if err != nil {
		return nil, err
	}
	return s.openArchive(ctx, j)
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
	if !sees(as, p, at) {
		return nil, errs.NotFound("")
	}
	j, err := latestArchived(ctx, s.DB, p.ID, at, tag, name)
	if err != nil {
		return nil, notFound(err, "")
	}
	return j, jobRefusal(by, s.readArtifacts(as, p, j))
}

// readArtifacts asks what the CI file says of who may have the artifacts.
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

func (s *Service) openArchive(ctx context.Context, j *Job) (*FileContent, error) {
	a, err := findArtifact(ctx, s.DB, j.ID, ArchiveFile)
	if err != nil {
		return nil, err
	}
	o, err := s.Blobs.Get(ctx, a.blob)
	if err != nil {
		return nil, fmt.Errorf("open artifacts of job %d: %w", j.ID, err)
	}
	return &FileContent{Name: a.Filename, Size: a.Size, ModTime: a.CreatedAt, ETag: `"` + a.SHA256 + `"`, ReadSeekCloser: o}, nil
}
