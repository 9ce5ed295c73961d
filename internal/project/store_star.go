package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/user"
)

// insertStar stars a project and updates its count. It returns false if it was
// starred already.
func insertStar(ctx context.Context, q db.Q, projectID, userID int64, now time.Time) (bool, error) {
	added, err := db.ExecAny(ctx, q, `INSERT INTO stars (project_id, user_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, projectID, userID, now)
	if err != nil || !added {
		return false, err
	}
	return true, countStar(ctx, q, projectID, 1)
}

// deleteStar removes a star and updates the count. It returns false if there was
// none.
func deleteStar(ctx context.Context, q db.Q, projectID, userID int64) (bool, error) {
	removed, err := db.ExecAny(ctx, q, `DELETE FROM stars WHERE project_id = ? AND user_id = ?`, projectID, userID)
	if err != nil || !removed {
		return false, err
	}
	return true, countStar(ctx, q, projectID, -1)
}

func countStar(ctx context.Context, q db.Q, projectID int64, step int) error {
	_, err := q.ExecContext(ctx, `UPDATE projects SET star_count = star_count + ? WHERE id = ?`, step, projectID)
	return err
}

func hasStar(ctx context.Context, q db.Q, projectID, userID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM stars WHERE project_id = ? AND user_id = ?`, projectID, userID)
}

// listStarrers lists the users who have starred a project, by ID only.
func listStarrers(ctx context.Context, d *db.DB, by actor.Actor, projectID int64, search string, p db.Paging) (db.Page[Starrer], error) {
	var w db.Where
	w.And("s.project_id = ?", projectID)
	w.And("u.deleted_at IS NULL AND u.state = 'active'")
	if !by.Admin {
		w.And("NOT u.private_profile OR u.id = ?", by.ID)
	}
	if search != "" {
		w.And(`fold(u.name) LIKE ? ESCAPE '\' OR fold(u.username) LIKE ? ESCAPE '\'`, db.Like(search), db.Like(search))
	}
	return db.List(ctx, d, db.Query[Starrer]{
		Columns: "u.id, s.created_at", From: "stars s JOIN users u ON u.id = s.user_id", Where: w,
		Order: []db.Order{{Name: "s.user_id"}},
		Scan: func(sc db.Scanner) (Starrer, error) {
			r := Starrer{User: &user.User{}}
			err := sc.Scan(&r.User.ID, db.Time(&r.Since))
			return r, err
		},
		Keys: func(r Starrer) []any { return []any{r.User.ID} },
	}, p)
}
