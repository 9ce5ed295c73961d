package oauth

import (
	"context"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/secret"
	"svc/internal/user"
)

const applicationColumns = `a.id, a.uid, a.secret_digest, a.name, a.redirect_uris, a.scopes, a.confidential, a.trusted, a.disabled, a.builtin, a.owner_id, a.created_at, a.updated_at`

func scanApplication(sc db.Scanner) (*Application, error) {
	var a Application
	var redirects, scopes string
	err := sc.Scan(&a.ID, &a.UID, &a.digest, &a.Name, &redirects, &scopes, &a.Confidential, &a.Trusted, &a.Disabled, &a.Builtin, &a.OwnerID,
		db.Time(&a.CreatedAt), db.Time(&a.UpdatedAt))
	a.RedirectURIs, a.Scopes = strings.Split(redirects, "\n"), strings.Fields(scopes)
	return &a, err
}

func findApplication(ctx context.Context, q db.Q, id int64) (*Application, error) {
	a, err := scanApplication(q.QueryRowContext(ctx, `SELECT `+applicationColumns+` FROM oauth_applications a WHERE a.id = ?`, id))
	return a, db.NotFound(err, "Application")
}

func findByUID(ctx context.Context, q db.Q, uid string) (*Application, error) {
	if strings.ContainsRune(uid, 0) || strings.ToValidUTF8(uid, "") != uid {
		return nil, db.NotFound(db.ErrNoRows, "Application") // PostgreSQL rejects such texts
	}
	a, err := scanApplication(q.QueryRowContext(ctx, `SELECT `+applicationColumns+` FROM oauth_applications a WHERE a.uid = ?`, uid))
	return a, db.NotFound(err, "Application")
}

// listApplications lists the applications of a user, or of the instance if the
// owner is nil.
func listApplications(ctx context.Context, d *db.DB, ownerID *int64, p db.Paging) (db.Page[*Application], error) {
	var where db.Where
	if ownerID == nil {
		where.And("a.owner_id IS NULL")
	} else {
		where.And("a.owner_id = ?", *ownerID)
	}
	return db.List(ctx, d, db.Query[*Application]{
		Columns: applicationColumns, From: "oauth_applications a", Where: where, Order: []db.Order{{Name: "a.id"}}, Scan: scanApplication,
		Keys: func(a *Application) []any { return []any{a.ID} },
	}, p)
}

func insertApplication(ctx context.Context, q db.Q, a *Application) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO oauth_applications (uid, secret_digest, name, redirect_uris, scopes, confidential, trusted, disabled, builtin, owner_id, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		a.UID, a.digest, a.Name, strings.Join(a.RedirectURIs, "\n"), strings.Join(a.Scopes, " "), a.Confidential, a.Trusted, a.Disabled,
		a.Builtin, a.OwnerID, a.CreatedAt, a.UpdatedAt).Scan(&a.ID)
}

func saveApplication(ctx context.Context, q db.Q, a *Application) error {
	return db.ExecOne(ctx, q, `
		UPDATE oauth_applications SET secret_digest = ?, name = ?, redirect_uris = ?, scopes = ?, confidential = ?, trusted = ?, disabled = ?, builtin = ?,
			updated_at = ? WHERE id = ?`,
		a.digest, a.Name, strings.Join(a.RedirectURIs, "\n"), strings.Join(a.Scopes, " "), a.Confidential, a.Trusted, a.Disabled, a.Builtin, a.UpdatedAt, a.ID)
}

func deleteApplication(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM oauth_applications WHERE id = ?`, id)
	return err
}

func applicationsOf(ctx context.Context, q db.Q, ownerID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM oauth_applications WHERE owner_id = ?`, ownerID)
}

// grant is an authorization by a user. Revoking it revokes all its tokens.
type grant struct {
	id              int64
	applicationID   *int64
	userID          int64
	scopes          []string
	redirectURI     string
	pkce            bool
	nonce           string
	authenticatedAt time.Time
	createdAt       time.Time
	usedAt          time.Time
	revokedAt       *time.Time

	username    string // joined, for audit events
	application string
	app         *Application // read by grantsOf only
}

const (
	grantColumns = `g.id, g.application_id, g.user_id, g.scopes, g.redirect_uri, g.pkce, g.nonce, g.authenticated_at, g.created_at, g.used_at,
		g.revoked_at, u.username, COALESCE(a.name, '')`
	grantTables = `oauth_grants g JOIN users u ON u.id = g.user_id LEFT JOIN oauth_applications a ON a.id = g.application_id`
)

// scanGrant scans the columns of a grant, and the following columns into more.
func scanGrant(sc db.Scanner, g *grant, more ...any) error {
	var scopes string
	err := sc.Scan(append([]any{&g.id, &g.applicationID, &g.userID, &scopes, &g.redirectURI, &g.pkce, &g.nonce, db.Time(&g.authenticatedAt),
		db.Time(&g.createdAt), db.Time(&g.usedAt), db.NullTime(&g.revokedAt), &g.username, &g.application}, more...)...)
	g.scopes = strings.Fields(scopes)
	return err
}

func insertGrant(ctx context.Context, q db.Q, g *grant) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO oauth_grants (application_id, user_id, scopes, redirect_uri, pkce, nonce, authenticated_at, created_at, used_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		g.applicationID, g.userID, strings.Join(g.scopes, " "), g.redirectURI, g.pkce, g.nonce, g.authenticatedAt, g.createdAt, g.usedAt).Scan(&g.id)
}

// touchGrant records the use of a grant. It returns db.ErrNoRows if the grant was
// revoked.
func touchGrant(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE oauth_grants SET used_at = ? WHERE id = ? AND revoked_at IS NULL`, now, id)
}

// revokeGrant revokes a grant. It returns db.ErrNoRows if the grant was already
// revoked.
func revokeGrant(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE oauth_grants SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, now, id)
}

func revokeOf(ctx context.Context, q db.Q, applicationID int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE oauth_grants SET revoked_at = ? WHERE application_id = ? AND revoked_at IS NULL`, now, applicationID)
	return err
}

// revokeBetween revokes the grants of a user for an application, and returns their
// number. An applicationID of 0 means grants without an application.
func revokeBetween(ctx context.Context, q db.Q, userID, applicationID int64, now time.Time) (int64, error) {
	return db.ExecCount(ctx, q, `
		UPDATE oauth_grants SET revoked_at = ? WHERE user_id = ? AND COALESCE(application_id, 0) = ? AND revoked_at IS NULL`,
		now, userID, applicationID)
}

// revokeAllOf revokes all grants of a user.
func revokeAllOf(ctx context.Context, q db.Q, userID int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE oauth_grants SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now, userID)
	return err
}

// usersOf returns the users who have authorized an application.
func usersOf(ctx context.Context, q db.Q, applicationID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT user_id FROM oauth_grants WHERE application_id = ? AND revoked_at IS NULL`, applicationID)
}

// grantedScopes returns the scopes that the user has granted to an application in
// a browser.
func grantedScopes(ctx context.Context, q db.Q, userID, applicationID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT DISTINCT scopes FROM oauth_grants WHERE user_id = ? AND application_id = ? AND revoked_at IS NULL AND redirect_uri <> ''`,
		userID, applicationID)
}

// grantsOf returns the grants of a user that have valid tokens or can still issue
// some, newest first.
func grantsOf(ctx context.Context, q db.Q, userID int64, now time.Time) ([]grant, error) {
	grants, err := db.All(ctx, q, func(sc db.Scanner) (g grant, err error) {
		return g, scanGrant(sc, &g)
	}, `
		SELECT `+grantColumns+` FROM `+grantTables+`
		WHERE g.user_id = ? AND g.revoked_at IS NULL AND (g.redirect_uri <> '' OR g.used_at > ?) ORDER BY g.id DESC`,
		userID, now.Add(-TokenLife))
	if err != nil {
		return nil, err
	}
	apps := map[int64]*Application{}
	for i := range grants {
		id := grants[i].applicationID
		if id == nil {
			continue
		}
		if apps[*id] == nil {
			if apps[*id], err = findApplication(ctx, q, *id); err != nil {
				return nil, err
			}
		}
		grants[i].app = apps[*id]
	}
	return grants, nil
}

// code is an authorization code with its grant.
type code struct {
	grant     grant
	id        int64
	challenge string
	expiresAt time.Time
	usedAt    *time.Time
}

func insertCode(ctx context.Context, q db.Q, digest string, grantID int64, challenge string, expiresAt time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO oauth_codes (digest, grant_id, challenge, expires_at) VALUES (?, ?, ?, ?)`, digest, grantID, challenge, expiresAt)
	return err
}

func findCode(ctx context.Context, q db.Q, digest string) (*code, error) {
	var c code
	err := scanGrant(q.QueryRowContext(ctx, `
		SELECT `+grantColumns+`, c.id, c.challenge, c.expires_at, c.used_at FROM `+grantTables+` JOIN oauth_codes c ON c.grant_id = g.id
		WHERE c.digest = ?`, digest), &c.grant, &c.id, &c.challenge, db.Time(&c.expiresAt), db.NullTime(&c.usedAt))
	return &c, err
}

// useCode marks a code as used. It returns db.ErrNoRows if the code was already
// used.
func useCode(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE oauth_codes SET used_at = ? WHERE id = ? AND used_at IS NULL`, now, id)
}

// token is an access token with its refresh token and grant.
type token struct {
	grant     grant
	id        int64
	scopes    []string
	createdAt time.Time
	expiresAt time.Time
	revokedAt *time.Time
}

func insertToken(ctx context.Context, q db.Q, m *minted) error {
	refresh := ""
	if m.RefreshToken != "" {
		refresh = secret.Digest(m.RefreshToken)
	}
	_, err := q.ExecContext(ctx, `
		INSERT INTO oauth_tokens (grant_id, digest, refresh_digest, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
		m.grant.id, secret.Digest(m.AccessToken), refresh, strings.Join(m.Scopes, " "), m.CreatedAt, m.CreatedAt.Add(TokenLife))
	return err
}

// revokeToken revokes a token. It returns db.ErrNoRows if the token was already
// revoked.
func revokeToken(ctx context.Context, q db.Q, id int64, now time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE oauth_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, now, id)
}

func findToken(ctx context.Context, q db.Q, where string, args ...any) (*token, error) {
	var t token
	var scopes string
	err := scanGrant(q.QueryRowContext(ctx, `
		SELECT `+grantColumns+`, t.id, t.scopes, t.created_at, t.expires_at, t.revoked_at
		FROM `+grantTables+` JOIN oauth_tokens t ON t.grant_id = g.id WHERE `+where, args...),
		&t.grant, &t.id, &scopes, db.Time(&t.createdAt), db.Time(&t.expiresAt), db.NullTime(&t.revokedAt))
	t.scopes = strings.Fields(scopes)
	return &t, err
}

func findRefresh(ctx context.Context, q db.Q, digest string) (*token, error) {
	// The second condition lets the query use the partial index.
	return findToken(ctx, q, `t.refresh_digest = ? AND t.refresh_digest <> ''`, digest)
}

func findTokenByDigest(ctx context.Context, q db.Q, digest string) (*token, error) {
	return findToken(ctx, q, `t.digest = ?`, digest)
}

// findEither finds an access or refresh token.
func findEither(ctx context.Context, q db.Q, digest string) (*token, error) {
	return findToken(ctx, q, `t.id IN (
		SELECT id FROM oauth_tokens WHERE digest = ? UNION SELECT id FROM oauth_tokens WHERE refresh_digest = ? AND refresh_digest <> '')`,
		digest, digest)
}

// FindToken implements user.TokenSource.
func FindToken(ctx context.Context, q db.Q, digest string) (*user.OAuthToken, error) {
	t := user.OAuthToken{}
	var scopes string
	var ended int64
	err := q.QueryRowContext(ctx, `
		SELECT t.id, g.user_id, t.scopes, t.expires_at, COALESCE(t.revoked_at, g.revoked_at, 0)
		FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id WHERE t.digest = ?`, digest).
		Scan(&t.ID, &t.UserID, &scopes, db.Time(&t.ExpiresAt), &ended)
	if err != nil {
		return nil, err
	}
	t.Scopes, t.Revoked = strings.Fields(scopes), ended != 0
	return &t, nil
}

// oldRows selects the rows of a table that ended before a time, which is the
// argument of the condition.
type oldRows struct{ table, where string }

var (
	expiredCodes  = oldRows{"oauth_codes", "expires_at <= ?"}
	revokedTokens = oldRows{"oauth_tokens", "revoked_at <= ?"}
	revokedGrants = oldRows{"oauth_grants", "revoked_at <= ?"}
	unusedGrants  = oldRows{"oauth_grants", "used_at <= ?"}
	// unusedPasswordGrants are grants without a redirect URI, as created by the
	// password grant.
	unusedPasswordGrants = oldRows{"oauth_grants", "redirect_uri = '' AND used_at <= ?"}
)

// deleteOld deletes up to limit old rows and returns their number.
func deleteOld(ctx context.Context, q db.Q, old oldRows, before time.Time, limit int) (int64, error) {
	return db.ExecCount(ctx, q, `DELETE FROM `+old.table+` WHERE id IN (SELECT id FROM `+old.table+` WHERE `+old.where+` LIMIT ?)`, before, limit)
}
