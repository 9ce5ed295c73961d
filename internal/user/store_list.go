package user

import (
	"context"
	"maps"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

func listUsers(ctx context.Context, d *db.DB, by actor.Actor, f Filter, order Sort, p db.Paging) (db.Page[*User], error) {
	r := rows.Get().(*row)
	defer rows.Put(r)
	q := db.Query[*User]{
		Columns: userColumns, From: userTables, CountFrom: userTables, Where: f.where(by, alive), Desc: order.Desc, Scan: r.each(r.account),
	}
	if by.Admin {
		q.Columns, q.From, q.ColumnArgs, q.Scan = profileColumns, profileTables, []any{by.ID}, r.each(r.profile)
	}
	id := db.Order{Name: "u.id"}
	switch order.By {
	case "", "id":
		q.Order = []db.Order{id}
		q.Keys = func(u *User) []any { return []any{u.ID} }
		q.Where, q.CountWhere = f.where(by, aliveRow), q.Where
	case "name":
		q.Order = []db.Order{{Name: "u.name", Text: true}, id}
		q.Keys = func(u *User) []any { return []any{u.Name, u.ID} }
	case "username":
		q.Order = []db.Order{{Name: "u.username", Text: true}, id}
		q.Keys = func(u *User) []any { return []any{u.Username, u.ID} }
	case "created_at":
		q.Order = []db.Order{{Name: "u.created_at"}, id}
		q.Keys = func(u *User) []any { return []any{u.CreatedAt.UnixMicro(), u.ID} }
	case "updated_at":
		q.Order = []db.Order{{Name: "u.updated_at"}, id}
		q.Keys = func(u *User) []any { return []any{u.UpdatedAt.UnixMicro(), u.ID} }
	default:
		return db.Page[*User]{}, errs.Invalid("order_by does not have a valid value")
	}
	return db.List(ctx, d, q, p)
}

// Both conditions exclude deleted accounts. The first matches the indexes for
// lists. The second, with a unary plus, prevents SQLite from using an index, which
// would be slower than reading rows in their own order.
const (
	alive    = "u.deleted_at IS NULL"
	aliveRow = "+u.deleted_at IS NULL"
)

func (f *Filter) where(by actor.Actor, alive string) db.Where {
	var w db.Where
	w.And(alive)
	if !by.Admin {
		w.And("u.state NOT IN ('banned', 'blocked_pending_approval') OR u.id = ?", by.ID)
	}
	if f.Username != "" {
		w.And("lower(u.username) = lower(?)", f.Username)
	}
	if f.Search != "" {
		f.search(&w, by)
	}
	if f.PublicEmail != "" {
		w.And("lower(u.public_email) = lower(?)", f.PublicEmail)
	}
	if f.Active {
		w.And("u.state = 'active'")
	}
	if f.ExcludeActive {
		w.And("u.state <> 'active'")
	}
	if f.Blocked {
		w.And("u.state = 'blocked'")
	}
	if f.External {
		w.And("u.external")
	}
	if f.ExcludeExternal {
		w.And("NOT u.external")
	}
	w.Time("u.created_at >= ?", f.CreatedAfter)
	w.Time("u.created_at <= ?", f.CreatedBefore)
	if f.ExcludeInternal {
		w.And("u.kind NOT IN ('ghost', 'alert_bot', 'support_bot')")
	}
	if f.ExcludeBots {
		w.And("u.kind NOT IN ('project_bot', 'group_bot')")
	}
	if f.Humans {
		w.And("u.kind = 'human'")
	}
	if f.ExcludeHumans {
		w.And("u.kind <> 'human'")
	}
	f.Admin.where(&w)
	return w
}

// search adds the condition for name and username. An email address must match
// completely: the public one, or any for administrators.
func (f *Filter) search(w *db.Where, by actor.Actor) {
	if !strings.Contains(f.Search, "@") { // not an email address
		w.Text("users", f.Search, "u.name", "u.username")
		return
	}
	cond, args := db.Contains(f.Search, "u.name", "u.username")
	cond, args = `(`+cond+`) OR lower(u.public_email) = lower(?)`, append(args, f.Search)
	if by.Admin {
		cond += ` OR u.id IN (SELECT e.user_id FROM emails e WHERE lower(e.email) = lower(?))`
		args = append(args, f.Search)
	}
	w.And(cond, args...)
}

func (f *AdminFilter) where(w *db.Where) {
	if f.ExternUID != "" {
		w.And(`u.id IN (SELECT i.user_id FROM identities i WHERE i.provider = ? AND lower(i.extern_uid) = lower(?))`, f.Provider, f.ExternUID)
	}
	if f.SAMLProviderID != 0 {
		w.And(`u.id IN (SELECT i.user_id FROM identities i WHERE i.saml_provider_id = ?)`, f.SAMLProviderID)
	}
	switch f.TwoFactor {
	case "enabled":
		w.And("u.otp_enabled_at IS NOT NULL")
	case "disabled":
		w.And("u.otp_enabled_at IS NULL")
	}
	if f.WithoutProjects {
		w.And(`NOT EXISTS (SELECT 1 FROM members m WHERE m.user_id = u.id AND m.project_id IS NOT NULL AND m.requested_at IS NULL)`)
	}
	if f.State != "" {
		w.And("u.state = ?", string(f.State))
	}
	if f.Admins {
		w.And("u.admin")
	}
	if f.Auditors {
		w.And("u.auditor")
	}
	if f.SkipLDAP {
		w.And(`NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id AND i.provider LIKE 'ldap%')`)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
		w.And(`u.id IN (SELECT a.user_id FROM user_custom_attributes a WHERE a.key = ? AND a.value = ?)`, key, f.Attributes[key])
	}
}

func listActivities(ctx context.Context, d *db.DB, from string, p db.Paging) (db.Page[Activity], error) {
	var where db.Where
	where.And("u.last_activity_on >= ?", from)
	where.And("u.deleted_at IS NULL")
	return db.List(ctx, d, db.Query[Activity]{
		Columns: "u.id, u.username, u.last_activity_on", From: "users u", Where: where,
		Order: []db.Order{{Name: "u.last_activity_on", Text: true}, {Name: "u.id"}},
		Scan: func(sc db.Scanner) (Activity, error) {
			var a Activity
			err := sc.Scan(&a.UserID, &a.Username, &a.On)
			return a, err
		},
		Keys: func(a Activity) []any { return []any{a.On, a.UserID} },
	}, p)
}

// findUsersFrom returns users by username, starting with a text. Depending on the
// collation, other usernames may be in between.
func findUsersFrom(ctx context.Context, q db.Q, text string, limit int) ([]*User, error) {
	return db.All(ctx, q, scanUser, `SELECT `+userColumns+` FROM `+userTables+` WHERE lower(u.username) >= ? AND `+alive+` ORDER BY lower(u.username) LIMIT ?`, text, limit)
}
