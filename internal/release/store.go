package release

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const releaseColumns = `r.id, r.project_id, r.tag, r.name, r.sha, r.author_id, r.created_at, r.updated_at, r.released_at, r.description`

func scanRelease(s db.Scanner) (*Release, error) {
	var r Release
	err := s.Scan(&r.ID, &r.ProjectID, &r.Tag, &r.Name, &r.SHA, &r.AuthorID, db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt), db.Time(&r.ReleasedAt), &r.Description)
	return &r, err
}

func listReleases(ctx context.Context, d *db.DB, projectID int64, f Filter, pg db.Paging) (db.Page[*Release], error) {
	var w db.Where
	w.And(`r.project_id = ?`, projectID)
	w.Time(`r.updated_at >= ?`, f.UpdatedAt[0])
	w.Time(`r.updated_at <= ?`, f.UpdatedAt[1])
	column, at := "r.released_at", func(r *Release) time.Time { return r.ReleasedAt }
	if f.ByCreated {
		column, at = "r.created_at", func(r *Release) time.Time { return r.CreatedAt }
	}
	return db.List(ctx, d, db.Query[*Release]{
		Columns: releaseColumns, From: `releases r`, Where: w, Order: []db.Order{{Name: column}, {Name: "r.id"}}, Desc: !f.Asc, Scan: scanRelease,
		Keys: func(r *Release) []any { return []any{at(r), r.ID} },
	}, pg)
}

// listOfGroup lists the releases of the projects p below a group that match the
// condition seen.
func listOfGroup(ctx context.Context, d *db.DB, groupID int64, seen string, args []any, asc bool, pg db.Paging) (db.Page[*Release], error) {
	var of, w db.Where
	of.And(`p.namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`, groupID)
	of.And(seen, args...)
	w.And(`r.project_id IN (SELECT p.id FROM projects p`+of.SQL()+`)`, of.Args()...)
	order := []string{"r.released_at", "r.id"}
	first := func(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
		window := db.Window{Table: "releases r", Key: "r.id", Order: order, Desc: !asc, Size: listWindow}
		if found, err := window.Find(ctx, d, "releases r", w, rows); err != nil || found != nil || rows > maxFirst {
			return found, err
		}
		return db.Parents{
			From: "projects p", Where: of, ID: "p.id", Rows: "releases r", Key: "r.id", Parent: "r.project_id",
			Order: order, Inside: order, Desc: !asc,
		}.Find(ctx, d, rows)
	}
	return db.List(ctx, d, db.Query[*Release]{
		Columns: releaseColumns, From: `releases r`, Where: w, Order: []db.Order{{Name: "r.released_at"}, {Name: "r.id"}}, Desc: !asc, Scan: scanRelease,
		Keys: func(r *Release) []any { return []any{r.ReleasedAt, r.ID} }, First: first,
	}, pg)
}

const (
	// listWindow is the number of releases of the instance, at the start of a list of a
	// group, that are examined one by one before the projects of the group are.
	listWindow = 600
	// maxFirst is the highest row number up to which pages of a group are read project by
	// project. For later pages all releases of the group are sorted.
	maxFirst = 200
)

func findRelease(ctx context.Context, q db.Q, projectID int64, tag string) (*Release, error) {
	return scanRelease(q.QueryRowContext(ctx, `SELECT `+releaseColumns+` FROM releases r WHERE r.project_id = ? AND r.tag = ?`, projectID, tag))
}

func findByID(ctx context.Context, q db.Q, projectID, id int64) (*Release, error) {
	return scanRelease(q.QueryRowContext(ctx, `SELECT `+releaseColumns+` FROM releases r WHERE r.project_id = ? AND r.id = ?`, projectID, id))
}

// findLatest finds the release with the newest release date up to a time.
func findLatest(ctx context.Context, q db.Q, projectID int64, until time.Time) (*Release, error) {
	return scanRelease(q.QueryRowContext(ctx, `SELECT `+releaseColumns+` FROM releases r
		WHERE r.project_id = ? AND r.released_at <= ? ORDER BY r.released_at DESC, r.id DESC LIMIT 1`, projectID, until))
}

func lockRelease(ctx context.Context, tx *db.Tx, projectID int64, tag string) (*Release, error) {
	r, err := findRelease(ctx, tx, projectID, tag)
	if err != nil {
		return nil, err
	}
	if err := tx.Lock(ctx, "releases", r.ID); err != nil {
		return nil, err
	}
	return findRelease(ctx, tx, projectID, tag)
}

func findOfTags(ctx context.Context, q db.Q, projectID int64, tags []string) (map[string]Summary, error) {
	list, err := db.All(ctx, q, func(s db.Scanner) (r Summary, err error) {
		err = s.Scan(&r.Tag, &r.Name, &r.Description, db.Time(&r.ReleasedAt))
		return r, err
	}, `SELECT tag, name, description, released_at FROM releases WHERE project_id = ? AND tag IN `+db.In(len(tags)), append([]any{projectID}, db.Any(tags)...)...)
	found := make(map[string]Summary, len(list))
	for _, r := range list {
		found[r.Tag] = r
	}
	return found, err
}

func insertRelease(ctx context.Context, q db.Q, r *Release) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO releases (project_id, tag, name, sha, author_id, created_at, updated_at, released_at, description)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		r.ProjectID, r.Tag, r.Name, r.SHA, r.AuthorID, r.CreatedAt, r.UpdatedAt, r.ReleasedAt, r.Description).Scan(&r.ID)
}

func saveRelease(ctx context.Context, q db.Q, r *Release) error {
	return db.ExecOne(ctx, q, `UPDATE releases SET name = ?, description = ?, released_at = ?, updated_at = ? WHERE id = ?`,
		r.Name, r.Description, r.ReleasedAt, r.UpdatedAt, r.ID)
}

func deleteRelease(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM releases WHERE id = ?`, id)
}

func replaceAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE releases SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}

// milestoneOf says that a release has a milestone.
type milestoneOf struct{ release, milestone int64 }

func findMilestones(ctx context.Context, q db.Q, releases []int64) ([]milestoneOf, error) {
	return db.All(ctx, q, func(s db.Scanner) (m milestoneOf, err error) {
		err = s.Scan(&m.release, &m.milestone)
		return m, err
	}, `SELECT release_id, milestone_id FROM release_milestones WHERE release_id IN `+db.In(len(releases))+` ORDER BY release_id, milestone_id`, db.Any(releases)...)
}

// saveMilestones replaces the milestones of a release, unless they are nil.
func saveMilestones(ctx context.Context, q db.Q, releaseID int64, ids []int64) error {
	if ids == nil {
		return nil
	}
	if _, err := q.ExecContext(ctx, `DELETE FROM release_milestones WHERE release_id = ?`, releaseID); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := q.ExecContext(ctx, `INSERT INTO release_milestones (release_id, milestone_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, releaseID, id); err != nil {
			return err
		}
	}
	return nil
}

const linkColumns = `id, release_id, name, url, COALESCE(filepath, ''), link_type, created_at`

func scanLink(s db.Scanner) (Link, error) {
	var l Link
	err := s.Scan(&l.ID, &l.ReleaseID, &l.Name, &l.URL, &l.Path, &l.Type, db.Time(&l.CreatedAt))
	return l, err
}

func findLinks(ctx context.Context, q db.Q, releases []int64) ([]Link, error) {
	return db.All(ctx, q, scanLink, `SELECT `+linkColumns+` FROM release_links WHERE release_id IN `+db.In(len(releases))+` ORDER BY release_id, id DESC`, db.Any(releases)...)
}

func findLink(ctx context.Context, q db.Q, releaseID, id int64) (*Link, error) {
	l, err := scanLink(q.QueryRowContext(ctx, `SELECT `+linkColumns+` FROM release_links WHERE release_id = ? AND id = ?`, releaseID, id))
	return &l, err
}

func countLinks(ctx context.Context, q db.Q, releaseID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM release_links WHERE release_id = ?`, releaseID).Scan(&n)
	return n, err
}

func insertLink(ctx context.Context, q db.Q, l *Link) error {
	return linkTaken(q.QueryRowContext(ctx, `
		INSERT INTO release_links (release_id, name, url, filepath, link_type, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		l.ReleaseID, l.Name, l.URL, db.NullText(l.Path), l.Type, l.CreatedAt).Scan(&l.ID))
}

func saveLink(ctx context.Context, q db.Q, l *Link) error {
	return linkTaken(db.ExecOne(ctx, q, `UPDATE release_links SET name = ?, url = ?, filepath = ?, link_type = ? WHERE id = ?`,
		l.Name, l.URL, db.NullText(l.Path), l.Type, l.ID))
}

func linkTaken(err error) error {
	for _, column := range []string{"name", "url", "filepath"} {
		if db.IsUnique(err, "release_links_release_id_"+column) {
			return errs.InvalidField(column, "has already been taken")
		}
	}
	return err
}

func deleteLink(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM release_links WHERE id = ?`, id)
}

// putLink inserts a link, with its ID if it has one.
func putLink(ctx context.Context, q db.Q, l *Link) error {
	if l.ID == 0 {
		return insertLink(ctx, q, l)
	}
	_, err := q.ExecContext(ctx, `INSERT INTO release_links (id, release_id, name, url, filepath, link_type, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		l.ID, l.ReleaseID, l.Name, l.URL, db.NullText(l.Path), l.Type, l.CreatedAt)
	return linkTaken(err)
}

func findVersions(ctx context.Context, q db.Q, projectID int64, until time.Time, most int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT tag FROM releases WHERE project_id = ? AND released_at <= ? ORDER BY released_at DESC, id DESC LIMIT ?`, projectID, until, most)
}

// countReleases counts the releases of a project, up to db.CountLimit.
func countReleases(ctx context.Context, d *db.DB, projectID int64) (int, error) {
	n, _, err := d.Total(ctx, `releases WHERE project_id = ?`, projectID)
	return n, err
}
