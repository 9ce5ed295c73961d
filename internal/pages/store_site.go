package pages

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/project"
)

const siteColumns = `s.id, s.project_id, s.prefix, s.job_id, s.root, s.blob, s.files, s.size, s.expires_at, s.created_at`

func scanSite(sc db.Scanner, s *Site, more ...any) error {
	return sc.Scan(append([]any{&s.ID, &s.ProjectID, &s.Prefix, &s.JobID, &s.Root, &s.blob, &s.Files, &s.Size, db.NullTime(&s.ExpiresAt),
		db.Time(&s.CreatedAt)}, more...)...)
}

func sitesOf(ctx context.Context, q db.Q, projectID int64) ([]*Site, error) {
	return db.All(ctx, q, func(sc db.Scanner) (*Site, error) {
		s := &Site{}
		return s, scanSite(sc, s)
	}, `SELECT `+siteColumns+` FROM pages_sites s WHERE s.project_id = ? ORDER BY s.prefix`, projectID)
}

func findSite(ctx context.Context, q db.Q, projectID int64, prefix string) (*Site, error) {
	s := &Site{}
	err := scanSite(q.QueryRowContext(ctx, `SELECT `+siteColumns+` FROM pages_sites s WHERE s.project_id = ? AND s.prefix = ?`, projectID, prefix), s)
	return s, err
}

// countPrefixes counts the other sites with a path prefix of the project of a site.
func countPrefixes(ctx context.Context, q db.Q, site *Site, now time.Time) (n int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM pages_sites WHERE project_id = ? AND prefix NOT IN ('', ?) AND (expires_at IS NULL OR expires_at > ?)`,
		site.ProjectID, site.Prefix, now).Scan(&n)
	return n, err
}

// countNamespacePrefixes is countPrefixes for all projects in the top-level namespace of
// the project.
func countNamespacePrefixes(ctx context.Context, q db.Q, site *Site, now time.Time) (n int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM projects o JOIN namespace_tree a ON a.descendant_id = o.namespace_id
		JOIN namespaces n ON n.id = a.ancestor_id AND n.parent_id IS NULL JOIN namespace_tree b ON b.ancestor_id = n.id
		JOIN projects p ON p.namespace_id = b.descendant_id JOIN pages_sites s ON s.project_id = p.id
		WHERE o.id = ? AND s.prefix <> '' AND NOT (s.project_id = o.id AND s.prefix = ?) AND (s.expires_at IS NULL OR s.expires_at > ?)`,
		site.ProjectID, site.Prefix, now).Scan(&n)
	return n, err
}

// saveSite switches a site to another archive. It returns ErrNoRows if the site has
// a version of a later job.
func saveSite(ctx context.Context, q db.Q, s *Site) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO pages_sites (project_id, prefix, job_id, root, blob, files, size, expires_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id, prefix) DO UPDATE SET job_id = excluded.job_id, root = excluded.root, blob = excluded.blob,
			files = excluded.files, size = excluded.size, expires_at = excluded.expires_at, created_at = excluded.created_at
		WHERE pages_sites.job_id <= excluded.job_id RETURNING id`,
		s.ProjectID, s.Prefix, s.JobID, s.Root, s.blob, s.Files, s.Size, s.ExpiresAt, s.CreatedAt).Scan(&s.ID)
}

func deleteSites(ctx context.Context, q db.Q, projectID int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM pages_sites WHERE project_id = ?`, projectID)
	return err
}

func deleteSite(ctx context.Context, q db.Q, id int64, blob string) error {
	return db.ExecOne(ctx, q, `DELETE FROM pages_sites WHERE id = ? AND blob = ?`, id, blob)
}

func expiredSites(ctx context.Context, q db.Q, now time.Time) ([]*Site, error) {
	return db.All(ctx, q, func(sc db.Scanner) (*Site, error) {
		s := &Site{}
		return s, scanSite(sc, s)
	}, `SELECT `+siteColumns+` FROM pages_sites s WHERE s.expires_at <= ? ORDER BY s.expires_at LIMIT 100`, now)
}

func findSettings(ctx context.Context, q db.Q, projectID int64) (Settings, error) {
	t := Settings{HTTPSOnly: true}
	err := q.QueryRowContext(ctx, `
		SELECT https_only, unique_label, unique_domain, primary_domain, failure, failed_job_id, failed_at FROM pages_projects WHERE project_id = ?`, projectID).
		Scan(&t.HTTPSOnly, &t.label, &t.UniqueDomain, &t.PrimaryDomain, &t.Failure, &t.FailedJobID, db.NullTime(&t.FailedAt))
	if errors.Is(err, db.ErrNoRows) {
		return t, nil
	}
	return t, err
}

func saveSettings(ctx context.Context, q db.Q, projectID int64, t Settings) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO pages_projects (project_id, https_only, unique_label, unique_domain, primary_domain, failure, failed_job_id, failed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET https_only = excluded.https_only, unique_label = excluded.unique_label,
			unique_domain = excluded.unique_domain, primary_domain = excluded.primary_domain, failure = excluded.failure,
			failed_job_id = excluded.failed_job_id, failed_at = excluded.failed_at`,
		projectID, t.HTTPSOnly, t.label, t.UniqueDomain, t.PrimaryDomain, t.Failure, t.FailedJobID, t.FailedAt)
	return err
}

func projectPath(ctx context.Context, q db.Q, id int64) (string, error) {
	var path string
	err := q.QueryRowContext(ctx, `SELECT full_path FROM projects WHERE id = ?`, id).Scan(&path)
	return path, err
}

// leave records an archive for removal at a time.
func leave(ctx context.Context, q db.Q, blob string, at time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO pages_leftovers (blob, remove_at) VALUES (?, ?) ON CONFLICT (blob) DO UPDATE SET remove_at = excluded.remove_at`, blob, at)
	return err
}

func unleave(ctx context.Context, q db.Q, blob string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM pages_leftovers WHERE blob = ?`, blob)
	return err
}

func leftovers(ctx context.Context, q db.Q, now time.Time) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT blob FROM pages_leftovers WHERE remove_at <= ? ORDER BY remove_at LIMIT 100`, now)
}

// routeColumns are the columns of a routeRow.
const routeColumns = siteColumns + `, p.full_path, p.visibility, p.settings, COALESCE(t.https_only, TRUE), COALESCE(t.unique_label, ''),
	COALESCE(t.unique_domain, FALSE), COALESCE(m.domain, ''), COALESCE(m.certificate <> '', FALSE), m.verified_at, m.enabled_until`

// primaryTable joins the primary domain of a project.
const primaryTable = ` LEFT JOIN pages_domains m ON m.project_id = p.id AND m.domain = t.primary_domain`

func scanRoute(sc db.Scanner) (routeRow, error) {
	var r routeRow
	var visibility string
	err := scanSite(sc, &r.site, &r.path, &visibility, &r.features, &r.settings.HTTPSOnly, &r.settings.label, &r.settings.UniqueDomain,
		&r.primary.Name, &r.primarySecure, db.NullTime(&r.primary.VerifiedAt), db.NullTime(&r.primary.EnabledUntil))
	r.visibility = project.Visibility(visibility)
	return r, err
}

// access returns the access level of Pages in the project of a row.
func (r routeRow) access() (project.Feature, error) {
	parts := struct{ Pages project.Feature }{project.MembersOnly}
	err := json.Unmarshal([]byte(r.features), &parts)
	return parts.Pages, err
}

// routesBelow returns the sites of a top-level namespace and all namespaces
// below it.
func routesBelow(ctx context.Context, q db.Q, path string, now time.Time) ([]routeRow, error) {
	return db.All(ctx, q, scanRoute, `
		SELECT `+routeColumns+` FROM namespaces n JOIN namespace_tree b ON b.ancestor_id = n.id JOIN projects p ON p.namespace_id = b.descendant_id
		JOIN pages_sites s ON s.project_id = p.id LEFT JOIN pages_projects t ON t.project_id = p.id`+primaryTable+`
		WHERE lower(n.full_path) = lower(?) AND n.parent_id IS NULL AND n.deleted_at IS NULL AND p.deleted_at IS NULL
			AND (s.expires_at IS NULL OR s.expires_at > ?)`, path, now)
}

func routesOf(ctx context.Context, q db.Q, projectID int64, now time.Time) ([]routeRow, error) {
	return db.All(ctx, q, scanRoute, `
		SELECT `+routeColumns+` FROM pages_sites s JOIN projects p ON p.id = s.project_id LEFT JOIN pages_projects t ON t.project_id = p.id`+primaryTable+`
		WHERE s.project_id = ? AND p.deleted_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)`,
		projectID, now)
}

func routesLabeled(ctx context.Context, q db.Q, label string, now time.Time) ([]routeRow, error) {
	return db.All(ctx, q, scanRoute, `
		SELECT `+routeColumns+` FROM pages_projects t JOIN projects p ON p.id = t.project_id JOIN pages_sites s ON s.project_id = p.id`+primaryTable+`
		WHERE t.unique_label = ? AND t.unique_label <> '' AND t.unique_domain AND p.deleted_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > ?)`,
		label, now)
}
