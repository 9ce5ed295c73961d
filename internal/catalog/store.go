package catalog

import (
	"context"
	"encoding/json"
	"time"

	"svc/internal/db"
	"svc/internal/release"
)

func hasResource(ctx context.Context, q db.Q, projectID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM catalog_resources WHERE project_id = ?`, projectID)
}

func insertResource(ctx context.Context, q db.Q, projectID int64, now time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `INSERT INTO catalog_resources (project_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING`, projectID, now)
}

func deleteResource(ctx context.Context, q db.Q, projectID int64, _ time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `DELETE FROM catalog_resources WHERE project_id = ?`, projectID)
}

// resourceRow is a project in the catalog with its newest release.
type resourceRow struct {
	projectID  int64
	releasedAt time.Time
}

// listResources lists the projects in the catalog that match a condition on projects
// p.
func listResources(ctx context.Context, d *db.DB, seen string, args []any, search string, pg db.Paging) (db.Page[resourceRow], error) {
	var w db.Where
	// All releases with a version may have been deleted.
	w.And(`c.released_at IS NOT NULL AND EXISTS (SELECT 1 FROM catalog_versions v WHERE v.project_id = c.project_id)`)
	w.And(seen, args...)
	if search != "" {
		w.And(`fold(p.name) LIKE ? ESCAPE '\' OR fold(p.full_path) LIKE ? ESCAPE '\'`, db.Like(search), db.Like(search))
	}
	return db.List(ctx, d, db.Query[resourceRow]{
		Columns: `c.project_id, c.released_at`, From: `catalog_resources c JOIN projects p ON p.id = c.project_id`, Where: w,
		Order: []db.Order{{Name: "c.released_at"}, {Name: "c.project_id"}}, Desc: true,
		Scan: func(s db.Scanner) (r resourceRow, err error) {
			err = s.Scan(&r.projectID, db.Time(&r.releasedAt))
			return r, err
		},
		Keys: func(r resourceRow) []any { return []any{r.releasedAt, r.projectID} },
	}, pg)
}

// The maximum number of versions of a project that are read, newest first: for its
// page, and for the list of projects.
const (
	maxVersions   = 1000
	shownVersions = 50
)

// findVersions finds the newest versions of projects, by project ID.
func findVersions(ctx context.Context, q db.Q, most int, projects ...int64) (map[int64][]*Version, error) {
	found := map[int64][]*Version{}
	_, err := db.All(ctx, q, func(s db.Scanner) (*Version, error) {
		var v Version
		var components string
		var in int64
		if err := s.Scan(&in, &v.ID, &v.Name, &components, db.Time(&v.CreatedAt)); err != nil {
			return nil, err
		}
		found[in] = append(found[in], &v)
		return &v, json.Unmarshal([]byte(components), &v.Components)
	}, `SELECT v.project_id, v.id, v.version, v.components, v.created_at FROM catalog_versions v WHERE v.project_id IN `+db.In(len(projects))+`
		AND v.id IN (SELECT y.id FROM catalog_versions y WHERE y.project_id = v.project_id ORDER BY y.id DESC LIMIT ?) ORDER BY v.id DESC`,
		append(db.Any(projects), most)...)
	return found, err
}

// saveVersion inserts a version, or updates it if it was published before.
func saveVersion(ctx context.Context, tx *db.Tx, projectID int64, r *release.Release, v *Version) error {
	components, err := json.Marshal(v.Components)
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, `
		INSERT INTO catalog_versions (project_id, release_id, version, components, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (release_id) DO UPDATE SET components = excluded.components RETURNING id`,
		projectID, r.ID, v.Name, string(components), v.CreatedAt).Scan(&v.ID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE catalog_resources SET released_at = ? WHERE project_id = ?`, v.CreatedAt, projectID)
	return err
}
