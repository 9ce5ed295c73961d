package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// deployKeyColumns are followed by can_push.
const deployKeyColumns = `k.id, k.title, k.key, k.fingerprint, k.sha256, k.public, k.created_by, k.created_at, k.expires_at, k.last_used_at`

func scanDeployKey(s db.Scanner) (DeployKey, error) {
	var k DeployKey
	err := s.Scan(&k.ID, &k.Title, &k.Key, &k.Fingerprint, &k.SHA256, &k.Public, &k.CreatedBy, db.Time(&k.CreatedAt),
		db.NullTime(&k.ExpiresAt), db.NullTime(&k.LastUsedAt), &k.CanPush)
	return k, err
}

// insertDeployKey inserts a key. It returns an error if a user or project has the
// key.
func (s *Service) insertDeployKey(ctx context.Context, tx *db.Tx, k *DeployKey) error {
	if err := s.Users.RequireNoKey(ctx, tx, k.SHA256); err != nil {
		return err
	}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO deploy_keys (title, key, fingerprint, sha256, public, created_by, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		k.Title, k.Key, k.Fingerprint, k.SHA256, k.Public, k.CreatedBy, k.CreatedAt, k.ExpiresAt).Scan(&k.ID)
	if db.IsUnique(err, "deploy_keys_sha256") {
		return errs.InvalidField("fingerprint_sha256", hasBeenTaken).Because(err)
	}
	return err
}

func (s *Service) listDeployKeys(ctx context.Context, w db.Where, p db.Paging) (db.Page[DeployKey], error) {
	page, err := db.List(ctx, s.DB, db.Query[DeployKey]{
		Columns: deployKeyColumns + `, FALSE`, From: "deploy_keys k", Where: w, Order: []db.Order{{Name: "k.id"}},
		Scan: scanDeployKey, Keys: func(k DeployKey) []any { return []any{k.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list deploy keys: %w", err)
	}
	return page, nil
}

const enabledKeys = `deploy_key_projects e JOIN deploy_keys k ON k.id = e.deploy_key_id`

func findEnabledKey(ctx context.Context, q db.Q, projectID, id int64) (*DeployKey, error) {
	k, err := scanDeployKey(q.QueryRowContext(ctx, `SELECT `+deployKeyColumns+`, e.can_push FROM `+enabledKeys+`
		WHERE e.project_id = ? AND k.id = ?`, projectID, id))
	if err != nil {
		return nil, db.NotFound(err, noDeployKey)
	}
	return &k, nil
}

// reachableKey finds a key that the actor may enable.
func (s *Service) reachableKey(ctx context.Context, q db.Q, by actor.Actor, cond string, arg any) (*DeployKey, error) {
	var w db.Where
	w.And(cond, arg)
	if !by.Admin {
		mine, args := memberProjects(by.ID, s.today(), Maintainer)
		w.And(anyOf("k.public", `k.id IN (SELECT e.deploy_key_id FROM deploy_key_projects e JOIN projects p ON p.id = e.project_id
			WHERE p.deleted_at IS NULL AND (`+mine+`))`), args...)
	}
	k, err := scanDeployKey(q.QueryRowContext(ctx, `SELECT `+deployKeyColumns+`, FALSE FROM deploy_keys k`+w.SQL(), w.Args()...))
	if err != nil {
		return nil, db.NotFound(err, noDeployKey)
	}
	return &k, nil
}

// maintainsKey reports whether the user is a Maintainer of all projects in which a key
// is enabled.
func (s *Service) maintainsKey(ctx context.Context, q db.Q, userID, id int64) (bool, error) {
	mine, args := memberProjects(userID, s.today(), Maintainer)
	other, err := db.Exists(ctx, q, `SELECT 1 FROM deploy_key_projects e JOIN projects p ON p.id = e.project_id WHERE e.deploy_key_id = ? AND NOT (`+mine+`) LIMIT 1`,
		append([]any{id}, args...)...)
	return !other, err
}

func saveEnabledKey(ctx context.Context, q db.Q, projectID int64, k *DeployKey) error {
	if err := db.ExecOne(ctx, q, `UPDATE deploy_keys SET title = ? WHERE id = ?`, k.Title, k.ID); err != nil {
		return db.NotFound(err, noDeployKey)
	}
	err := db.ExecOne(ctx, q, `UPDATE deploy_key_projects SET can_push = ? WHERE project_id = ? AND deploy_key_id = ?`, k.CanPush, projectID, k.ID)
	return db.NotFound(err, noDeployKey)
}

// keyOpens reports the access that a deploy key grants to a project. A key can write
// while the account of its creator is active: whoever was blocked may still have the
// private key. Public keys belong to the instance, not to the administrator who
// created them.
func (s *Service) keyOpens(ctx context.Context, q db.Q, id int64, p *Project) (o opening, err error) {
	var active bool
	err = q.QueryRowContext(ctx, `
		SELECT e.can_push, k.public OR k.created_by IS NULL OR COALESCE(u.state = 'active' AND u.kind <> 'ghost' AND u.deleted_at IS NULL, FALSE)
		FROM deploy_key_projects e JOIN deploy_keys k ON k.id = e.deploy_key_id LEFT JOIN users u ON u.id = k.created_by
		WHERE e.project_id = ? AND e.deploy_key_id = ? AND (k.expires_at IS NULL OR k.expires_at > ?)`,
		p.ID, id, s.Now()).Scan(&o.write, &active)
	if errors.Is(err, db.ErrNoRows) {
		return opening{}, nil
	}
	if err != nil {
		return opening{}, err
	}
	o.read, o.inactive, o.write = true, o.write && !active, o.write && active
	return o, nil
}

// findKeyCreator returns the creator of a deploy key that is not public; 0 if there is
// none.
func findKeyCreator(ctx context.Context, q db.Q, id int64) (userID int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(created_by, 0) FROM deploy_keys WHERE id = ? AND NOT public`, id).Scan(&userID)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return userID, err
}

const deployTokenColumns = `t.id, t.name, t.username, t.scopes, t.created_by, t.created_at, t.expires_at`

func scanDeployToken(s db.Scanner) (DeployToken, error) {
	var t DeployToken
	var scopes string
	err := s.Scan(&t.ID, &t.Name, &t.Username, &scopes, &t.CreatedBy, db.Time(&t.CreatedAt), db.NullTime(&t.ExpiresAt))
	t.Scopes = strings.Fields(scopes)
	return t, err
}

func findDeployToken(ctx context.Context, q db.Q, in source, id int64) (*DeployToken, error) {
	column, of := in.column()
	t, err := scanDeployToken(q.QueryRowContext(ctx, `
		SELECT `+deployTokenColumns+` FROM deploy_tokens t WHERE t`+column[1:]+` = ? AND t.id = ?`, of, id))
	if err != nil {
		return nil, db.NotFound(err, noDeployToken)
	}
	return &t, nil
}

// insertDeployToken inserts a token. The default username is the stem followed by
// the ID.
func insertDeployToken(ctx context.Context, q db.Q, in source, t *DeployToken, stem string) error {
	namespaceID, projectID := in.ids()
	err := q.QueryRowContext(ctx, `
		INSERT INTO deploy_tokens (project_id, namespace_id, name, username, scopes, digest, created_by, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, namespaceID, t.Name, t.Username, strings.Join(t.Scopes, " "), secret.Digest(t.Secret), t.CreatedBy, t.CreatedAt, t.ExpiresAt).Scan(&t.ID)
	if err != nil || t.Username != "" {
		return err
	}
	t.Username = stem + fmt.Sprint(t.ID)
	return db.ExecOne(ctx, q, `UPDATE deploy_tokens SET username = ? WHERE id = ?`, t.Username, t.ID)
}

// listDeployTokens lists the tokens of a source, or of the instance if it is nil.
func (s *Service) listDeployTokens(ctx context.Context, in *source, active *bool, p db.Paging) (db.Page[DeployToken], error) {
	var w db.Where
	if in != nil {
		column, id := in.column()
		w.And("t"+column[1:]+" = ?", id)
	}
	if active != nil {
		cond := "t.expires_at IS NULL OR t.expires_at > ?"
		if !*active {
			cond = "t.expires_at <= ?"
		}
		w.And(cond, s.Now())
	}
	page, err := db.List(ctx, s.DB, db.Query[DeployToken]{
		Columns: deployTokenColumns, From: "deploy_tokens t", Where: w, Order: []db.Order{{Name: "t.id"}},
		Scan: scanDeployToken, Keys: func(t DeployToken) []any { return []any{t.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list deploy tokens: %w", err)
	}
	return page, nil
}

// tokenOpens reports whether a deploy token grants access to the repository of a
// project.
func (s *Service) tokenOpens(ctx context.Context, q db.Q, id int64, p *Project) (bool, error) {
	scopes, err := s.tokenScopes(ctx, q, id, p)
	return slices.Contains(scopes, ReadRepository), err
}

// tokenScopes returns the scopes of a token of the project or an ancestor group.
// Other tokens have none.
func (s *Service) tokenScopes(ctx context.Context, q db.Q, id int64, p *Project) ([]string, error) {
	var scopes string
	err := q.QueryRowContext(ctx, `
		SELECT t.scopes FROM deploy_tokens t
		WHERE t.id = ? AND (t.expires_at IS NULL OR t.expires_at > ?) AND (t.project_id = ?
			OR t.namespace_id IN (SELECT a.ancestor_id FROM namespace_tree a WHERE a.descendant_id = ?))`,
		id, s.Now(), p.ID, p.NamespaceID).Scan(&scopes)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return strings.Fields(scopes), err
}

// keyByID and keyByDigest are conditions for reachableKey.
const (
	keyByID     = "k.id = ?"
	keyByDigest = "k.sha256 = ?"
)

// findDeployKey finds a key by its SHA-256 fingerprint.
func findDeployKey(ctx context.Context, q db.Q, fingerprint string) (DeployKey, error) {
	return scanDeployKey(q.QueryRowContext(ctx, `SELECT `+deployKeyColumns+`, FALSE FROM deploy_keys k WHERE k.sha256 = ?`, fingerprint))
}

// findDeployKeyByFingerprint finds a key by one of its fingerprints.
func findDeployKeyByFingerprint(ctx context.Context, q db.Q, md5, sha256 string) (DeployKey, error) {
	if sha256 != "" {
		return findDeployKey(ctx, q, sha256)
	}
	return scanDeployKey(q.QueryRowContext(ctx, `SELECT `+deployKeyColumns+`, FALSE FROM deploy_keys k WHERE k.fingerprint = ? ORDER BY k.id LIMIT 1`, md5))
}

// findDeployKeyProjects returns the first projects in which a key is enabled.
func findDeployKeyProjects(ctx context.Context, q db.Q, id int64) ([]DeployKeyProject, error) {
	return db.All(ctx, q, func(s db.Scanner) (p DeployKeyProject, err error) {
		err = s.Scan(&p.ProjectID, &p.CanPush, db.Time(&p.CreatedAt))
		return p, err
	}, `SELECT e.project_id, e.can_push, e.created_at FROM deploy_key_projects e WHERE e.deploy_key_id = ? ORDER BY e.project_id LIMIT 1000`, id)
}

func touchDeployKey(ctx context.Context, q db.Q, id int64, now time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE deploy_keys SET last_used_at = ? WHERE id = ?`, now, id)
	return err
}

func listEnabledKeys(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[DeployKey], error) {
	var w db.Where
	w.And("e.project_id = ?", projectID)
	return db.List(ctx, d, db.Query[DeployKey]{
		Columns: deployKeyColumns + `, e.can_push`, From: enabledKeys, Where: w, Order: []db.Order{{Name: "k.id"}},
		Scan: scanDeployKey, Keys: func(k DeployKey) []any { return []any{k.ID} },
	}, p)
}

// allKeys selects all keys, or only public ones.
func allKeys(public bool) (w db.Where) {
	if public {
		w.And("k.public")
	}
	return w
}

// publicKeysNotIn selects the public keys that are not enabled in a project.
func publicKeysNotIn(projectID int64) (w db.Where) {
	w.And("k.public AND NOT EXISTS (SELECT 1 FROM deploy_key_projects e WHERE e.deploy_key_id = k.id AND e.project_id = ?)", projectID)
	return w
}

// keysEnabledIn selects the keys that are enabled in the projects of a subquery.
func keysEnabledIn(projects string, args []any) (w db.Where) {
	w.And(`k.id IN (SELECT e.deploy_key_id FROM deploy_key_projects e WHERE e.project_id IN (`+projects+`))`, args...)
	return w
}

// maintainedByBoth returns a query for the projects in which both users are
// Maintainers.
func maintainedByBoth(first, second int64, today string) (query string, args []any) {
	query = `SELECT p.id FROM projects p WHERE p.deleted_at IS NULL`
	for _, id := range []int64{first, second} {
		sql, more := memberProjects(id, today, Maintainer)
		query, args = query+` AND (`+sql+`)`, append(args, more...)
	}
	return query, args
}

// hasAny reports whether a query has rows.
func hasAny(ctx context.Context, q db.Q, query string, args []any) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM (`+query+`) c LIMIT 1`, args...)
}

// openedBy is a project in which a key is enabled.
type openedBy struct {
	key, project int64
	canPush      bool
}

func findOpened(ctx context.Context, q db.Q, keys []int64) ([]openedBy, error) {
	return db.All(ctx, q, func(sc db.Scanner) (openedBy, error) {
		var o openedBy
		err := sc.Scan(&o.key, &o.project, &o.canPush)
		return o, err
	}, `SELECT deploy_key_id, project_id, can_push FROM deploy_key_projects WHERE deploy_key_id IN `+db.In(len(keys))+` ORDER BY deploy_key_id, project_id`, db.Any(keys)...)
}

// enableKey enables a key in a project. It returns false if it was enabled
// already.
func enableKey(ctx context.Context, q db.Q, projectID, keyID int64, canPush bool, now time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `
		INSERT INTO deploy_key_projects (deploy_key_id, project_id, can_push, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		keyID, projectID, canPush, now)
}

// disableKey disables a key in a project, and deletes a private key that is
// enabled in no other. NotFound.
func disableKey(ctx context.Context, q db.Q, projectID, keyID int64) error {
	if err := db.ExecOne(ctx, q, `DELETE FROM deploy_key_projects WHERE project_id = ? AND deploy_key_id = ?`, projectID, keyID); err != nil {
		return db.NotFound(err, noDeployKey)
	}
	_, err := q.ExecContext(ctx, `DELETE FROM deploy_keys WHERE id = ? AND NOT public
		AND NOT EXISTS (SELECT 1 FROM deploy_key_projects e WHERE e.deploy_key_id = deploy_keys.id)`, keyID)
	return err
}

// findTokenByDigest finds a deploy token by the digest of its secret.
func findTokenByDigest(ctx context.Context, q db.Q, digest string) (DeployToken, error) {
	return scanDeployToken(q.QueryRowContext(ctx, `SELECT `+deployTokenColumns+` FROM deploy_tokens t WHERE t.digest = ?`, digest))
}

func deleteDeployToken(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM deploy_tokens WHERE id = ?`, id), noDeployToken)
}
