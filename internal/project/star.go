package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/user"
)

// Star marks a project for the actor, who has signed in and sees it; changed is
// false when they have marked it before.
func (s *Service) Star(ctx context.Context, by actor.Actor, ref Ref) (p *Project, changed bool, err error) {
	return s.star(ctx, by, ref, 1, `INSERT INTO stars (project_id, user_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, s.Now())
}

// Unstar takes the mark away; changed is false when there was none.
func (s *Service) Unstar(ctx context.Context, by actor.Actor, ref Ref) (p *Project, changed bool, err error) {
	return s.star(ctx, by, ref, -1, `DELETE FROM stars WHERE project_id = ? AND user_id = ?`)
}

func (s *Service) star(ctx context.Context, by actor.Actor, ref Ref, step int, query string, more ...any) (*Project, bool, error) {
	found, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, false, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	changed := false
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if changed, err = db.ExecAny(ctx, tx, query, append([]any{found.ID, by.ID}, more...)...); err != nil || !changed {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE projects SET star_count = star_count + ? WHERE id = ?`, step, found.ID)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("star project %d: %w", found.ID, err)
	}
	p, err := s.Get(ctx, by, RefTo(found.ID))
	return p, changed, err
}

// Starrer is a user who has starred a project.
type Starrer struct {
	Since time.Time
	User  *user.User
}

// Starrers lists who has starred a project, for those who see it. Who keeps
// their profile to themselves is left out.
func (s *Service) Starrers(ctx context.Context, by actor.Actor, ref Ref, search string, p db.Paging) (db.Page[Starrer], error) {
	found, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return db.Page[Starrer]{}, err
	}
	var w db.Where
	w.And("s.project_id = ?", found.ID)
	w.And("u.deleted_at IS NULL AND u.state = 'active'")
	if !by.Admin {
		w.And("NOT u.private_profile OR u.id = ?", by.ID)
	}
	if search != "" {
		w.And(`fold(u.name) LIKE ? ESCAPE '\' OR fold(u.username) LIKE ? ESCAPE '\'`, db.Like(search), db.Like(search))
	}
	page, err := db.List(ctx, s.DB, db.Query[Starrer]{
		Columns: "u.id, s.created_at", From: "stars s JOIN users u ON u.id = s.user_id", Where: w,
		Order: []db.Order{{Name: "s.user_id"}},
		Scan: func(sc db.Scanner) (Starrer, error) {
			r := Starrer{User: &user.User{}}
			err := sc.Scan(&r.User.ID, db.Time(&r.Since))
			return r, err
		},
		Keys: func(r Starrer) []any { return []any{r.User.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list starrers: %w", err)
	}
	var ids []int64
	for _, r := range page.Items {
		ids = append(ids, r.User.ID)
	}
	users, err := s.Users.FindAll(ctx, ids)
	for i, r := range page.Items {
		if u := users[r.User.ID]; u != nil {
			page.Items[i].User = u
		}
	}
	return page, err
}
