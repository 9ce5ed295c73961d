package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
)

const tokenColumns = `t.id, t.user_id, t.kind, t.name, t.description, t.scopes, t.created_at, COALESCE(t.expires_at, ''), t.revoked_at, t.last_used_at`

// scanTokenInto scans the token columns and further ones.
func scanTokenInto(s db.Scanner, t *Token, more ...any) error {
	var scopes string
	dest := append([]any{&t.ID, &t.UserID, &t.Kind, &t.Name, &t.Description, &scopes, db.Time(&t.CreatedAt), &t.ExpiresAt,
		db.NullTime(&t.RevokedAt), db.NullTime(&t.LastUsedAt)}, more...)
	if err := s.Scan(dest...); err != nil {
		return err
	}
	t.Scopes = splitScopes(scopes)
	return nil
}

func scanToken(s db.Scanner) (Token, error) {
	var t Token
	err := scanTokenInto(s, &t)
	return t, err
}

func findToken(ctx context.Context, q db.Q, id int64) (*Token, error) {
	t, err := scanToken(q.QueryRowContext(ctx, `SELECT `+tokenColumns+` FROM access_tokens t WHERE t.id = ?`, id))
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return &t, nil
}

func insertToken(ctx context.Context, q db.Q, t *Token, digest string, rotatedFrom int64) error {
	var from *int64
	if rotatedFrom != 0 {
		from = &rotatedFrom
	}
	return q.QueryRowContext(ctx, `
		INSERT INTO access_tokens (user_id, kind, name, description, scopes, digest, created_at, expires_at, rotated_from)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		t.UserID, string(t.Kind), t.Name, t.Description, strings.Join(t.Scopes, " "), digest, t.CreatedAt, t.ExpiresAt, from).Scan(&t.ID)
}

func revokeToken(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE access_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, now, id)
}

// revokeDescendants revokes all tokens that were created by rotating this one.
func revokeDescendants(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		WITH RECURSIVE family (id) AS (
			SELECT id FROM access_tokens WHERE rotated_from = ?
			UNION
			SELECT t.id FROM access_tokens t JOIN family f ON t.rotated_from = f.id
		)
		UPDATE access_tokens SET revoked_at = ? WHERE revoked_at IS NULL AND id IN (SELECT id FROM family)`, id, now)
	return err
}

func revokeTokens(ctx context.Context, q db.Q, userID int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE access_tokens SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now, userID)
	return err
}

func listTokens(ctx context.Context, d *db.DB, kind TokenKind, f TokenFilter, now time.Time, p db.Paging) (db.Page[Token], error) {
	return db.List(ctx, d, db.Query[Token]{
		Columns: tokenColumns, From: "access_tokens t", Where: f.where(kind, now), Order: f.Sort.columns(), Desc: f.Sort.Desc, Scan: scanToken,
	}, p)
}

func (f *TokenFilter) where(kind TokenKind, now time.Time) db.Where {
	var where db.Where
	where.And("t.kind = ?", string(kind))
	if f.UserID != 0 {
		where.And("t.user_id = ?", f.UserID)
	}
	if f.Revoked != nil {
		if *f.Revoked {
			where.And("t.revoked_at IS NOT NULL")
		} else {
			where.And("t.revoked_at IS NULL")
		}
	}
	today := now.UTC().Format(time.DateOnly)
	switch f.State {
	case "active":
		where.And("t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?)", today)
	case "inactive":
		where.And("t.revoked_at IS NOT NULL OR t.expires_at <= ?", today)
	}
	if f.Search != "" {
		where.And(`fold(t.name) LIKE ? ESCAPE '\'`, db.Like(f.Search))
	}
	where.Time("t.created_at >= ?", f.CreatedAfter)
	where.Time("t.created_at <= ?", f.CreatedBefore)
	where.Time("t.last_used_at >= ?", f.LastUsedAfter)
	where.Time("t.last_used_at <= ?", f.LastUsedBefore)
	if f.ExpiresAfter != "" {
		where.And("t.expires_at >= ?", f.ExpiresAfter)
	}
	if f.ExpiresBefore != "" {
		where.And("t.expires_at <= ?", f.ExpiresBefore)
	}
	return where
}

// columns returns the columns of the order. Tokens that were never used, or never
// expire, come first in both databases.
func (s TokenSort) columns() []db.Order {
	id := db.Order{Name: "t.id"}
	switch s.By {
	case "expires":
		return []db.Order{{Name: "COALESCE(t.expires_at, '')", Text: true}, id}
	case "last_used":
		return []db.Order{{Name: "COALESCE(t.last_used_at, 0)"}, id}
	case "name":
		return []db.Order{{Name: "t.name", Text: true}, id}
	}
	return []db.Order{id}
}

// revokeNonBotTokens revokes the tokens of a bot user that were not created by its
// project or group. The others are inactive and keep their state, such as expired.
func revokeNonBotTokens(ctx context.Context, q db.Q, userID int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE access_tokens SET revoked_at = ? WHERE user_id = ? AND kind <> ? AND revoked_at IS NULL`, now, userID, string(OfBot))
	return err
}

// blockUser blocks an active account.
func blockUser(ctx context.Context, q db.Q, userID int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE users SET state = ?, updated_at = ? WHERE id = ? AND state = ?`, string(Blocked), now, userID, string(Active))
	return err
}

// splitScopes parses the scopes column.
func splitScopes(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, " ")
}
