package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/ci"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/pages/pack"
	"svc/internal/project"
	"svc/internal/secret"
)

// maxFiles is the maximum number of files of a site.
const maxFiles = 200_000

// writeTime is the maximum time to write an archive. An archive that is not
// published after this time was left by a crash.
const writeTime = 24 * time.Hour

// The maximum number of sites with a path prefix. All sites of a host are in memory
// while it is visited.
const (
	maxPrefixes          = 100  // of a project
	maxNamespacePrefixes = 1000 // of a top-level namespace and all namespaces below it
)

// prefixTime is the default lifetime of a site with a path prefix. Such sites
// are usually temporary, for example for a review.
const prefixTime = 24 * time.Hour

// publishWork is the background job that publishes the artifacts of a job as a
// site.
type publishWork struct {
	ProjectID int64      `json:"project_id"`
	JobID     int64      `json:"job_id"`
	Root      string     `json:"root"`
	Prefix    string     `json:"prefix,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Kind implements queue.Work.
func (publishWork) Kind() string { return "pages_publish" }

// JobEnded adds a background job that publishes the site of a successful Pages
// job.
func (s *Service) JobEnded(ctx context.Context, tx *db.Tx, j *ci.Job) error {
	p := j.Options.Pages
	if p == nil || j.Status != flow.Success {
		return nil
	}
	w := publishWork{ProjectID: j.ProjectID, JobID: j.ID, Root: path.Clean(strings.Trim(p.Publish, "/")), Prefix: prefixLabel(p.PathPrefix)}
	life, err := config.ParseDuration(p.ExpireIn)
	if w.Prefix != "" && err != nil && p.ExpireIn != "never" {
		life, err = prefixTime, nil
	}
	if err == nil && life > 0 {
		at := s.Now().Add(life)
		w.ExpiresAt = &at
	}
	return s.Queue.Add(ctx, tx, w)
}

// Variables returns the variables with the URL of the site of a project, for
// its jobs.
func (s *Service) Variables(ctx context.Context, p *project.Project) ([]config.Variable, error) {
	if !s.Place.Served || p.Settings.Pages == project.Disabled {
		return nil, nil
	}
	t, err := findSettings(ctx, s.DB, p.ID)
	if err != nil {
		return nil, fmt.Errorf("pages of project %d: %w", p.ID, err)
	}
	address := s.address(p.FullPath, t)
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("pages of project %d: %w", p.ID, err)
	}
	return []config.Variable{
		{Key: "CI_PAGES_DOMAIN", Value: s.Place.Host()}, {Key: "CI_PAGES_HOSTNAME", Value: u.Hostname()}, {Key: "CI_PAGES_URL", Value: address},
	}, nil
}

// prefixLabel converts the path prefix of a job to a path segment.
func prefixLabel(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	return strings.Trim(text[:min(len(text), 63)], "-.")
}

// publish writes an archive of the artifacts of a job and then switches the
// site to it. On failure the previous version stays and the reason is recorded.
func (s *Service) publish(ctx context.Context, w publishWork) error {
	site := &Site{
		ProjectID: w.ProjectID, JobID: w.JobID, Prefix: w.Prefix, Root: w.Root, ExpiresAt: w.ExpiresAt, CreatedAt: s.Now(),
		blob: fmt.Sprintf("pages/%02x/%d/%d-%s", uint8(w.ProjectID), w.ProjectID, w.JobID, secret.Token("")[:12]),
	}
	err := s.mayPublish(ctx, s.DB, site)
	if err == nil {
		err = s.writePack(ctx, site)
	}
	if kind := errs.KindOf(err); kind == errs.KindUnprocessable || kind == errs.KindNotFound {
		return s.publishFailed(ctx, w, err)
	}
	if err != nil {
		return fmt.Errorf("publish job %d: %w", w.JobID, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.show(ctx, tx, site) })
	if db.IsForeignKey(err) {
		return nil // the project was deleted; Sweep removes the archive
	}
	if errs.Is(err, errs.KindUnprocessable) { // other jobs were faster; Sweep removes the archive
		return s.publishFailed(ctx, w, err)
	}
	if err != nil {
		return fmt.Errorf("publish job %d: %w", w.JobID, err)
	}
	return nil
}

// mayPublish returns Unprocessable if a site has a path prefix and the project or its
// top-level namespace has the maximum number of other such sites.
func (s *Service) mayPublish(ctx context.Context, q db.Q, site *Site) error {
	if site.Prefix == "" {
		return nil
	}
	now := s.Now()
	n, err := countPrefixes(ctx, q, site, now)
	if err != nil {
		return err
	}
	if n >= maxPrefixes {
		return errs.Unprocessable("The project has reached its limit of %d deployments with a path prefix", maxPrefixes)
	}
	if n, err = countNamespacePrefixes(ctx, q, site, now); err != nil {
		return err
	}
	if n >= maxNamespacePrefixes {
		return errs.Unprocessable("The namespace has reached its limit of %d deployments with a path prefix", maxNamespacePrefixes)
	}
	return nil
}

// writePack writes the archive of a site. Before that, it records the archive for
// removal, in case it is never published.
func (s *Service) writePack(ctx context.Context, site *Site) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	from, _, err := s.CI.Artifacts.ReadArchive(ctx, site.JobID)
	if errs.Is(err, errs.KindNotFound) {
		return errs.Unprocessable("The job has no artifacts").Because(err)
	}
	if err != nil {
		return err
	}
	if err := leave(ctx, s.DB, site.blob, s.Now().Add(writeTime)); err != nil {
		return err
	}
	out, in := io.Pipe()
	var stats pack.Stats
	written := make(chan error, 1)
	go func() {
		var err error
		stats, err = pack.Write(ctx, in, from, site.Root, pack.Limits{Files: maxFiles, Bytes: int64(settings.MaxPagesMegabytes) << 20})
		in.CloseWithError(err)
		written <- err
	}()
	_, err = s.Blobs.Put(ctx, site.blob, out, blob.Options{ContentType: "application/zip"})
	_ = out.Close() // ends the writer if the store has failed
	if cause := <-written; cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		return cause
	}
	site.Files, site.Size = int64(stats.Files), stats.Bytes
	return err
}

// show switches a site to a new archive. The job with the higher ID wins,
// regardless of which ends first.
func (s *Service) show(ctx context.Context, tx *db.Tx, site *Site) error {
	if err := tx.Lock(ctx, "projects", site.ProjectID); err != nil {
		return err
	}
	old, err := findSite(ctx, tx, site.ProjectID, site.Prefix)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return err
	}
	had := err == nil
	if had && old.JobID > site.JobID {
		return leave(ctx, tx, site.blob, s.Now())
	}
	if err := s.mayPublish(ctx, tx, site); err != nil {
		return err
	}
	if err := saveSite(ctx, tx, site); err != nil {
		return err
	}
	if had {
		if err := leave(ctx, tx, old.blob, s.Now().Add(keptAfter)); err != nil {
			return err
		}
	}
	if err := unleave(ctx, tx, site.blob); err != nil {
		return err
	}
	t, err := findSettings(ctx, tx, site.ProjectID)
	if err != nil || t.Failure == "" {
		return err
	}
	t.Failure, t.FailedJobID, t.FailedAt = "", nil, nil
	return saveSettings(ctx, tx, site.ProjectID, t)
}

// publishFailed records why a job did not publish its site. Members of the project
// can see it.
func (s *Service) publishFailed(ctx context.Context, w publishWork, cause error) error {
	text := "The site could not be published"
	if e, ok := errors.AsType[*errs.Error](cause); ok && e.Kind == errs.KindUnprocessable {
		text = e.Text
	}
	s.Log.WarnContext(ctx, "cannot publish a site", "project", w.ProjectID, "job", w.JobID, "error", cause)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", w.ProjectID); err != nil {
			return err
		}
		t, err := findSettings(ctx, tx, w.ProjectID)
		if err != nil {
			return err
		}
		now := s.Now()
		t.Failure, t.FailedJobID, t.FailedAt = text, &w.JobID, &now
		return saveSettings(ctx, tx, w.ProjectID, t)
	})
	if db.IsForeignKey(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish job %d: %w", w.JobID, err)
	}
	return nil
}

// Sweep removes expired sites, and archives that are no longer used.
func (s *Service) Sweep(ctx context.Context) error {
	over, err := expiredSites(ctx, s.DB, s.Now())
	if err != nil {
		return fmt.Errorf("sweep pages: %w", err)
	}
	for _, site := range over {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			err := deleteSite(ctx, tx, site.ID, site.blob)
			if errors.Is(err, db.ErrNoRows) { // the site has been published again
				return nil
			}
			if err != nil {
				return err
			}
			return leave(ctx, tx, site.blob, s.Now().Add(keptAfter))
		})
		if err != nil {
			return fmt.Errorf("sweep pages: %w", err)
		}
	}
	left, err := leftovers(ctx, s.DB, s.Now())
	if err != nil {
		return fmt.Errorf("sweep pages: %w", err)
	}
	var faults []error
	for _, key := range left { // an error does not stop the others
		err := s.Blobs.Delete(ctx, key)
		if err == nil {
			err = unleave(ctx, s.DB, key)
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("sweep pages: %w", err)
	}
	return nil
}
