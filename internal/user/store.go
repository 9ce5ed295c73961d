package user

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const userColumns = `u.id, u.kind, u.username, u.name, u.email, u.confirmed_at, u.state, u.admin, u.auditor, u.external,
	u.must_change_password, u.locked_until, u.otp_enabled_at IS NOT NULL,
	u.bio, u.location, u.public_email, u.commit_email, u.skype, u.linkedin, u.twitter, u.discord, u.website_url,
	u.organization, u.job_title, u.pronouns, u.timezone,
	u.theme_id, u.color_scheme_id, u.view_diffs_file_by_file, u.show_whitespace_in_diffs, u.preferences,
	u.status_emoji, u.status_message, u.status_availability, u.status_clear_at,
	u.avatar, u.note, u.private_profile, u.projects_limit, u.can_create_group, u.ci_minutes_limit, u.extra_ci_minutes_limit,
	u.sign_in_count, u.current_sign_in_at, u.current_sign_in_ip, u.last_sign_in_at, u.last_sign_in_ip,
	COALESCE(u.last_activity_on, ''), u.followers, u.following, u.created_by, u.created_at, u.updated_at, COALESCE(u.namespace_id, 0)`

const userTables = `users u`

// columns returns the destinations of userColumns for Scan.
func (u *User) columns() []any {
	return []any{&u.ID, &u.Kind, &u.Username, &u.Name, &u.Email, db.NullTime(&u.ConfirmedAt), &u.State, &u.Admin, &u.Auditor, &u.External,
		&u.MustChangePassword, db.NullTime(&u.LockedUntil), &u.TwoFactorEnabled,
		&u.Bio, &u.Location, &u.PublicEmail, &u.CommitEmail, &u.Skype, &u.LinkedIn, &u.Twitter, &u.Discord, &u.WebsiteURL,
		&u.Organization, &u.JobTitle, &u.Pronouns, &u.Timezone,
		&u.ThemeID, &u.ColorSchemeID, &u.ViewDiffsFileByFile, &u.ShowWhitespaceInDiffs, &u.Appearance,
		&u.Emoji, &u.Message, &u.Availability, db.NullTime(&u.ClearAt),
		&u.Avatar, &u.Note, &u.PrivateProfile, &u.ProjectsLimit, &u.CanCreateGroup, &u.CIMinutesLimit, &u.ExtraCIMinutesLimit,
		&u.SignInCount, db.NullTime(&u.CurrentSignInAt), &u.CurrentSignInIP, db.NullTime(&u.LastSignInAt), &u.LastSignInIP,
		&u.LastActivityOn, &u.Followers, &u.Following, &u.CreatedBy, db.Time(&u.CreatedAt), db.Time(&u.UpdatedAt), &u.NamespaceID}
}

// row is an account that is reused to scan many rows: preparing the destinations
// takes longer than copying an account.
type row struct {
	user     User
	identity Identity

	account []any // destinations of userColumns
	profile []any // destinations of profileColumns
	whole   []any // destinations of profileColumns and an identity

	zones map[string]zone // loading a time zone takes longer than reading a row
}

var rows = sync.Pool{New: func() any {
	r := &row{zones: map[string]zone{}}
	r.account = r.user.columns()
	r.profile = append(r.user.columns(), &r.user.IsFollowed)
	r.whole = append(slices.Clone(r.profile), &r.identity.Provider, &r.identity.ExternUID, &r.identity.SAMLProviderID)
	return r
}}

// copy returns the scanned account.
func (r *row) copy() *User {
	u := r.user
	var known bool
	if u.zone, known = r.zones[u.Timezone]; !known {
		u.zone = loadZone(u.Timezone)
		if len(r.zones) >= maxZones {
			clear(r.zones)
		}
		r.zones[u.Timezone] = u.zone
	}
	return &u
}

// maxZones is the maximum number of cached time zones, which may be unknown names.
const maxZones = 1000

// each returns a scan function for lists.
func (r *row) each(places []any) func(db.Scanner) (*User, error) {
	return func(s db.Scanner) (*User, error) {
		if err := s.Scan(places...); err != nil {
			return nil, err
		}
		return r.copy(), nil
	}
}

func scanUser(s db.Scanner) (*User, error) {
	r := rows.Get().(*row)
	defer rows.Put(r)
	if err := s.Scan(r.account...); err != nil {
		return nil, db.NotFound(err, "User")
	}
	return r.copy(), nil
}

func findUser(ctx context.Context, q db.Q, id int64) (*User, error) {
	return scanUser(q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM `+userTables+`
		WHERE u.id = ? AND u.deleted_at IS NULL`, id))
}

// findCommitAddress returns the fields of an account that determine its commit
// address.
func findCommitAddress(ctx context.Context, q db.Q, id int64) (*User, error) {
	u := &User{ID: id}
	return u, q.QueryRowContext(ctx, `SELECT username, email, commit_email FROM users WHERE id = ? AND deleted_at IS NULL`, id).Scan(&u.Username, &u.Email, &u.CommitEmail)
}

func findUsers(ctx context.Context, q db.Q, ids []int64) (map[int64]*User, error) {
	list, err := db.All(ctx, q, func(s db.Scanner) (*User, error) {
		u := &User{}
		return u, s.Scan(&u.ID, &u.Username, &u.Name, &u.State, db.NullTime(&u.LockedUntil), &u.Avatar)
	}, `SELECT id, username, name, state, locked_until, avatar FROM users
		WHERE deleted_at IS NULL AND id IN `+db.In(len(ids)), db.Any(ids)...)
	found := make(map[int64]*User, len(list))
	for _, u := range list {
		found[u.ID] = u
	}
	return found, err
}

func findByUsername(ctx context.Context, q db.Q, username string) (*User, error) {
	return scanUser(q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM `+userTables+`
		WHERE lower(u.username) = lower(?) AND u.deleted_at IS NULL`, username))
}

func findByEmail(ctx context.Context, q db.Q, email string) (*User, error) {
	return scanUser(q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM `+userTables+` JOIN emails e ON e.user_id = u.id
		WHERE lower(e.email) = lower(?) AND e.confirmed_at IS NOT NULL AND u.deleted_at IS NULL`, email))
}

func findByRef(ctx context.Context, q db.Q, ref Ref) (*User, error) {
	if id, err := strconv.ParseInt(string(ref), 10, 64); err == nil {
		return findUser(ctx, q, id)
	}
	return findByUsername(ctx, q, string(ref))
}

// profileColumns adds the columns that depend on the actor; the argument of
// profileTables is the actor's ID.
const (
	profileColumns = userColumns + `, f.follower_id IS NOT NULL`
	profileTables  = userTables + ` LEFT JOIN follows f ON f.follower_id = ? AND f.followed_id = u.id`
)

// findProfile returns an account with its identities in one query. It is used by
// GET /user, the most frequent request of clients.
func findProfile(ctx context.Context, q db.Q, viewer, id int64) (*User, error) {
	found, err := q.QueryContext(ctx, `
		SELECT `+profileColumns+`, COALESCE(i.provider, ''), COALESCE(i.extern_uid, ''), i.saml_provider_id
		FROM `+profileTables+` LEFT JOIN identities i ON i.user_id = u.id
		WHERE u.id = ? AND u.deleted_at IS NULL ORDER BY i.provider`, viewer, id)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	r := rows.Get().(*row)
	defer rows.Put(r)
	var u *User
	for found.Next() { // one row for each identity
		if err := found.Scan(r.whole...); err != nil {
			return nil, err
		}
		if u == nil {
			u = r.copy()
			u.Identities = []Identity{}
		}
		if r.identity.Provider != "" {
			u.Identities = append(u.Identities, r.identity)
		}
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if u == nil {
		return nil, errs.NotFound("User")
	}
	return u, nil
}

func insertUser(ctx context.Context, q db.Q, u *User, passwordHash string) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO users (kind, username, name, email, confirmed_at, state, admin, auditor, external, password_hash,
			must_change_password, created_by, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		string(u.Kind), u.Username, u.Name, u.Email, u.ConfirmedAt, string(u.State), u.Admin, u.Auditor, u.External, passwordHash,
		u.MustChangePassword, u.CreatedBy, u.CreatedAt, u.UpdatedAt).Scan(&u.ID)
	if err != nil {
		return taken(err)
	}
	err = q.QueryRowContext(ctx, `
		INSERT INTO namespaces (kind, user_id, path, name, full_path, full_name, created_at, updated_at)
		VALUES ('user', ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		u.ID, u.Username, u.Name, u.Username, u.Name, u.CreatedAt, u.CreatedAt).Scan(&u.NamespaceID)
	if err != nil {
		return taken(err)
	}
	if _, err := q.ExecContext(ctx, `UPDATE users SET namespace_id = ? WHERE id = ?`, u.NamespaceID, u.ID); err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `INSERT INTO namespace_tree (ancestor_id, descendant_id, depth) VALUES (?, ?, 0)`, u.NamespaceID, u.NamespaceID)
	return err
}

// saveUser saves the fields that operations of this package change. Sign-ins,
// activity, passwords and two-factor secrets have their own statements.
func saveUser(ctx context.Context, q db.Q, u *User) error {
	err := db.ExecOne(ctx, q, `
		UPDATE users SET username = ?, name = ?, email = ?, confirmed_at = ?, state = ?, admin = ?, auditor = ?, external = ?,
			must_change_password = ?,
			bio = ?, location = ?, public_email = ?, commit_email = ?, skype = ?, linkedin = ?, twitter = ?, discord = ?, website_url = ?,
			organization = ?, job_title = ?, pronouns = ?, timezone = ?,
			theme_id = ?, color_scheme_id = ?, view_diffs_file_by_file = ?, show_whitespace_in_diffs = ?, preferences = ?,
			status_emoji = ?, status_message = ?, status_availability = ?, status_clear_at = ?,
			avatar = ?, note = ?, private_profile = ?, projects_limit = ?, can_create_group = ?, ci_minutes_limit = ?, extra_ci_minutes_limit = ?,
			updated_at = ?
		WHERE id = ?`,
		u.Username, u.Name, u.Email, u.ConfirmedAt, string(u.State), u.Admin, u.Auditor, u.External,
		u.MustChangePassword,
		u.Bio, u.Location, u.PublicEmail, u.CommitEmail, u.Skype, u.LinkedIn, u.Twitter, u.Discord, u.WebsiteURL,
		u.Organization, u.JobTitle, u.Pronouns, u.Timezone,
		u.ThemeID, u.ColorSchemeID, u.ViewDiffsFileByFile, u.ShowWhitespaceInDiffs, u.Appearance.text(),
		u.Emoji, u.Message, string(u.Availability), u.ClearAt,
		u.Avatar, u.Note, u.PrivateProfile, u.ProjectsLimit, u.CanCreateGroup, u.CIMinutesLimit, u.ExtraCIMinutesLimit,
		u.UpdatedAt, u.ID)
	if err != nil {
		return taken(db.NotFound(err, "User"))
	}
	_, err = q.ExecContext(ctx, `
		UPDATE namespaces SET path = ?, name = ?, full_path = ?, full_name = ?, updated_at = ? WHERE user_id = ? AND (path <> ? OR name <> ?)`,
		u.Username, u.Name, u.Username, u.Name, u.UpdatedAt, u.ID, u.Username, u.Name)
	return taken(err)
}

func savePassword(ctx context.Context, q db.Q, id int64, hash string) error {
	_, err := q.ExecContext(ctx, `UPDATE users SET password_hash = ?, failed_attempts = 0, locked_until = NULL WHERE id = ?`, hash, id)
	return err
}

// hasOtherAdmin reports whether there is another active administrator.
func hasOtherAdmin(ctx context.Context, q db.Q, id int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM users WHERE admin AND state = 'active' AND kind = 'human' AND deleted_at IS NULL AND id <> ? LIMIT 1`, id)
}

// hideUser hides an account that is being deleted. ErrNoRows.
func hideUser(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE users SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL`, now, id)
}

// findHiddenAvatar returns the avatar of an account that is being deleted.
// ErrNoRows.
func findHiddenAvatar(ctx context.Context, q db.Q, id int64) (avatar string, err error) {
	err = q.QueryRowContext(ctx, `SELECT avatar FROM users WHERE id = ? AND deleted_at IS NOT NULL`, id).Scan(&avatar)
	return avatar, err
}

func deleteUser(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM users WHERE id = ?`, id)
	return err
}

func ghostID(ctx context.Context, q db.Q) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT id FROM users WHERE kind = 'ghost' ORDER BY id LIMIT 1`).Scan(&id)
	return id, err
}

func alertBotID(ctx context.Context, q db.Q) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM users WHERE kind = 'alert_bot' AND deleted_at IS NULL ORDER BY id LIMIT 1`).Scan(&id)
	return id, err
}

// taken converts a violation of a unique index to a Conflict about the attribute.
func taken(err error) error {
	switch {
	case db.IsUnique(err, "users_username"), db.IsUnique(err, "namespaces_path"), db.IsUnique(err, "namespaces_full_path"):
		return errs.Conflict("Username has already been taken")
	case db.IsUnique(err, "emails_email"):
		return emailTaken()
	case db.IsUnique(err, "identities_provider_extern_uid"):
		return errs.Conflict("Extern UID has already been taken")
	}
	return err
}

// ofAll returns rows that belong to users, by user ID; users without rows have an
// empty list. ids must not be empty. The query must select the user ID first and
// be sorted by it; places returns the destinations of its other columns.
func ofAll[T any](ctx context.Context, q db.Q, ids []int64, places func(*T) []any, query string) (map[int64][]T, error) {
	of := make(map[int64][]T, len(ids))
	for _, id := range ids {
		of[id] = []T{}
	}
	found, err := q.QueryContext(ctx, query, db.Any(ids)...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var owner int64
	var item T
	dest := append([]any{&owner}, places(&item)...)
	items, owners := make([]T, 0, len(ids)), make([]int64, 0, len(ids))
	for found.Next() {
		if err := found.Scan(dest...); err != nil {
			return nil, err
		}
		items, owners = append(items, item), append(owners, owner)
	}
	for start := 0; start < len(items); { // all rows of a user
		end := start + 1
		for end < len(items) && owners[end] == owners[start] {
			end++
		}
		of[owners[start]] = items[start:end:end]
		start = end
	}
	return of, found.Err()
}

func emailTaken() *errs.Error { return errs.Conflict("Email has already been taken") }

func noUsers(ctx context.Context, q db.Q) (bool, error) {
	any, err := db.Exists(ctx, q, `SELECT 1 FROM users LIMIT 1`)
	return !any, err
}

func findPersons(ctx context.Context, q db.Q, ids []int64) ([]*User, error) {
	return db.All(ctx, q, func(s db.Scanner) (*User, error) {
		u := &User{}
		return u, s.Scan(&u.ID, &u.Username, &u.Name, &u.Email, db.NullTime(&u.ConfirmedAt))
	}, `SELECT id, username, name, email, confirmed_at FROM users WHERE deleted_at IS NULL AND kind = 'human' AND id IN `+db.In(len(ids)), db.Any(ids)...)
}

func endedStatuses(ctx context.Context, q db.Q, now time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM users WHERE status_clear_at <= ? LIMIT ?`, now, limit)
}

func clearStatus(ctx context.Context, q db.Q, ids []int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		UPDATE users SET status_emoji = '', status_message = '', status_availability = 'not_set', status_clear_at = NULL
		WHERE status_clear_at <= ? AND id IN `+db.In(len(ids)), append([]any{now}, db.Any(ids)...)...)
	return err
}
