package project

import (
	"context"
	"errors"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
)

// deployOpens says what a deploy token or key opens of a project's code, by
// what is stored now: a credential that was taken back or has expired since
// the actor came in opens nothing.
func (s *Service) deployOpens(ctx context.Context, q db.Q, d actor.Deploy, p *Project) (read, write bool, err error) {
	if d.Kind == actor.DeployKey {
		return s.keyOpens(ctx, q, d.ID, p)
	}
	read, err = s.tokenOpens(ctx, q, d.ID, p)
	return read, false, err
}

// tokenOpens asks for a token of the project, or of a group above it.
func (s *Service) tokenOpens(ctx context.Context, q db.Q, id int64, p *Project) (bool, error) {
	var scopes string
	err := q.QueryRowContext(ctx, `
		SELECT t.scopes FROM deploy_tokens t
		WHERE t.id = ? AND (t.expires_at IS NULL OR t.expires_at > ?) AND (t.project_id = ?
			OR t.namespace_id IN (SELECT a.ancestor_id FROM namespace_tree a WHERE a.descendant_id = ?))`,
		id, s.Now(), p.ID, p.NamespaceID).Scan(&scopes)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil && slices.Contains(strings.Fields(scopes), ReadRepository), err
}

// keyOpens asks whether a key is enabled in the project.
func (s *Service) keyOpens(ctx context.Context, q db.Q, id int64, p *Project) (read, write bool, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT e.can_push FROM deploy_key_projects e JOIN deploy_keys k ON k.id = e.deploy_key_id
		WHERE e.project_id = ? AND e.deploy_key_id = ? AND (k.expires_at IS NULL OR k.expires_at > ?)`,
		p.ID, id, s.Now()).Scan(&write)
	if errors.Is(err, db.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, write, err
}
