package pages

import (
	"context"
	"time"

	"svc/internal/db"
)

const domainColumns = `d.id, d.project_id, d.domain, d.auto_ssl, d.auto_ssl_error, d.certificate, d.private_key, d.certificate_source, d.expires_at,
	d.renew_at, d.remove_at, d.verification_code, d.verified_at, d.enabled_until, d.created_at, d.updated_at, p.full_path`

const domainTables = `pages_domains d JOIN projects p ON p.id = d.project_id`

func scanDomain(sc db.Scanner) (*Domain, error) {
	var d Domain
	var source string
	err := sc.Scan(&d.ID, &d.ProjectID, &d.Name, &d.AutoSSL, &d.AutoSSLError, &d.Certificate, &d.sealedKey, &source, db.NullTime(&d.ExpiresAt),
		db.NullTime(&d.renewAt), db.NullTime(&d.RemoveAt), &d.Code, db.NullTime(&d.VerifiedAt), db.NullTime(&d.EnabledUntil), db.Time(&d.CreatedAt), db.Time(&d.UpdatedAt), &d.ProjectPath)
	d.Source = Source(source)
	return &d, err
}

// listDomains returns the domains of a project, or of all projects if projectID is
// 0, by name.
func listDomains(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*Domain], error) {
	var where db.Where
	where.And("p.deleted_at IS NULL")
	if projectID != 0 {
		where.And("d.project_id = ?", projectID)
	}
	return db.List(ctx, d, db.Query[*Domain]{
		Columns: domainColumns, From: domainTables, Where: where, Order: []db.Order{{Name: "d.domain", Text: true}}, Scan: scanDomain,
		Keys: func(d *Domain) []any { return []any{d.Name} },
	}, p)
}

func findDomain(ctx context.Context, q db.Q, projectID int64, name string) (*Domain, error) {
	return scanDomain(q.QueryRowContext(ctx, `SELECT `+domainColumns+` FROM `+domainTables+` WHERE d.domain = ? AND d.project_id = ?`, name, projectID))
}

func findDomainByID(ctx context.Context, q db.Q, id int64) (*Domain, error) {
	return scanDomain(q.QueryRowContext(ctx, `SELECT `+domainColumns+` FROM `+domainTables+` WHERE d.id = ? AND p.deleted_at IS NULL`, id))
}

func findDomainByName(ctx context.Context, q db.Q, name string) (*Domain, error) {
	return scanDomain(q.QueryRowContext(ctx, `SELECT `+domainColumns+` FROM `+domainTables+` WHERE d.domain = ? AND p.deleted_at IS NULL`, name))
}

// someDomains is the maximum number of domains in a batch of background jobs.
const someDomains = 500

func domainIDs(ctx context.Context, q db.Q, after int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM pages_domains WHERE id > ? ORDER BY id LIMIT ?`, after, someDomains)
}

// dueDomains returns the domains whose automatic certificate must be obtained
// or renewed now.
func dueDomains(ctx context.Context, q db.Q, after int64, now time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM pages_domains WHERE auto_ssl AND id > ? AND (renew_at IS NULL OR renew_at <= ?) ORDER BY id LIMIT ?`, after, now, someDomains)
}

func countDomains(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM pages_domains WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insertDomain(ctx context.Context, q db.Q, d *Domain) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO pages_domains (project_id, domain, auto_ssl, certificate, private_key, certificate_source, expires_at, verification_code,
			remove_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.ProjectID, d.Name, d.AutoSSL, d.Certificate, d.sealedKey, string(d.Source), d.ExpiresAt, d.Code, d.RemoveAt, d.CreatedAt, d.UpdatedAt).Scan(&d.ID)
}

func saveDomain(ctx context.Context, q db.Q, d *Domain) error {
	return db.ExecOne(ctx, q, `
		UPDATE pages_domains SET auto_ssl = ?, auto_ssl_error = ?, certificate = ?, private_key = ?, certificate_source = ?, expires_at = ?,
			renew_at = ?, updated_at = ? WHERE id = ?`,
		d.AutoSSL, d.AutoSSLError, d.Certificate, d.sealedKey, string(d.Source), d.ExpiresAt, d.renewAt, d.UpdatedAt, d.ID)
}

func saveFailure(ctx context.Context, q db.Q, id int64, text string, again time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE pages_domains SET auto_ssl_error = ?, renew_at = ? WHERE id = ? AND auto_ssl`, text, again, id)
	return err
}

func saveVerified(ctx context.Context, q db.Q, d *Domain) error {
	return db.ExecOne(ctx, q, `UPDATE pages_domains SET verified_at = ?, enabled_until = ?, remove_at = ? WHERE id = ?`, d.VerifiedAt, d.EnabledUntil, d.RemoveAt, d.ID)
}

// keepDomains cancels the removal of all domains that are not verified.
func keepDomains(ctx context.Context, q db.Q) error {
	_, err := q.ExecContext(ctx, `UPDATE pages_domains SET remove_at = NULL WHERE remove_at IS NOT NULL`)
	return err
}

// delayCertificate sets when a certificate is requested next.
func delayCertificate(ctx context.Context, q db.Q, id int64, until time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE pages_domains SET renew_at = ? WHERE id = ? AND auto_ssl`, until, id)
	return err
}

// deleteDomain deletes a domain. If it is the primary domain of its project, the
// project has no primary domain afterwards.
func deleteDomain(ctx context.Context, q db.Q, d *Domain) error {
	if _, err := q.ExecContext(ctx, `UPDATE pages_projects SET primary_domain = '' WHERE project_id = ? AND primary_domain = ?`, d.ProjectID, d.Name); err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `DELETE FROM pages_domains WHERE id = ?`, d.ID)
}
