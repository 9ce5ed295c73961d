package project

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// readable returns the condition of MayRead on projects p that are not deleted.
func readable(by actor.Actor, today string, part Part) (string, []any) {
	column, least := "p.issues_access_level", Guest
	switch part {
	case CodePart:
		column, least = "p.repository_access_level", Reporter
	case ConfidentialPart:
		least = Planner
	case MergePart:
		column, least = "p.merge_requests_access_level", Reporter
	case SnippetPart, MemberSnippetPart:
		column = "p.snippets_access_level"
	case ReleasePart:
		column = "p.releases_access_level"
	case PackagePart:
		column, least = "p.package_registry_access_level", Reporter
	}
	there := "p.deleted_at IS NULL AND " + column + " <> 'disabled'"
	if part == MergePart { // merge requests show code
		there += " AND p.repository_access_level <> 'disabled'"
	}
	if by.Admin || by.Auditor {
		return there, nil
	}
	open := "p.visibility IN ('public', 'internal')"
	if by.Anonymous() || by.External {
		open = "p.visibility = 'public'"
	}
	if part == PackagePart { // lists do not include private projects of which the actor can only see the packages
		open += " AND " + column + " IN ('enabled', 'public')"
	} else {
		open += " AND " + column + " = 'enabled'"
	}
	if part == MergePart {
		open += " AND p.repository_access_level = 'enabled'"
	}
	if part == ConfidentialPart || part == MemberSnippetPart {
		open = "1 = 0"
	}
	if by.Anonymous() {
		return there + " AND " + open, nil
	}
	member, args := memberProjects(by.ID, today, least)
	return there + " AND (" + anyOf(open, member) + ")", args
}

// MemberProjects returns the condition on projects p in which the actor has at
// least a level, for lists of other features.
func (s *Service) MemberProjects(by actor.Actor, least Level) (cond string, args []any) {
	return memberProjects(by.ID, s.today(), least)
}

// MemberGroups is MemberProjects for groups n.
func (s *Service) MemberGroups(by actor.Actor, least Level) (cond string, args []any) {
	return memberGroups(by.ID, s.today(), least)
}

// VisibleGroups returns the condition on groups n that the actor can see, without
// groups that are marked for deletion.
func (s *Service) VisibleGroups(by actor.Actor) (cond string, args []any) {
	cond, args = visibleGroups(by, s.today())
	return "n.deleted_at IS NULL AND (" + cond + ")", args
}

// Monitored returns the condition on projects p in which alerts and error tracking are
// not disabled.
func (s *Service) Monitored() string {
	level := `json_extract(p.settings, '$.Monitor')`
	if s.DB.Postgres() {
		level = `CAST(p.settings AS json) ->> 'Monitor'`
	}
	return `COALESCE(` + level + `, '') <> 'disabled'`
}

func findJoined(ctx context.Context, q db.Q, userID int64, today string) ([]*Project, error) {
	cond, args := memberProjects(userID, today, Guest)
	return db.All(ctx, q, scanProject, `SELECT `+projectColumns+` FROM `+projectTables+` WHERE p.deleted_at IS NULL AND (`+cond+`) ORDER BY p.id`, args...)
}

// NextNumber returns the next number of a kind of object in a project, in the
// transaction that uses it. There are no gaps; concurrent transactions wait for
// each other.
func NextNumber(ctx context.Context, tx *db.Tx, projectID int64, kind string) (n int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO project_counters (project_id, kind, value) VALUES (?, ?, 1)
		ON CONFLICT (project_id, kind) DO UPDATE SET value = project_counters.value + 1 RETURNING value`, projectID, kind).Scan(&n)
	return n, err
}

// HoldNumbers blocks NextNumber and HoldNumbers of other transactions for a kind
// of object in a project until tx ends.
func HoldNumbers(ctx context.Context, tx *db.Tx, projectID int64, kind string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO project_counters (project_id, kind, value) VALUES (?, ?, 0)
		ON CONFLICT (project_id, kind) DO UPDATE SET value = project_counters.value`, projectID, kind)
	return err
}

// touchEvery is the precision of the last activity of a project. It is limited, so
// that not every note updates the project.
const touchEvery = 10 * time.Minute

// Touch updates the last activity of a project.
func Touch(ctx context.Context, tx *db.Tx, p *Project, at time.Time) error {
	if at.Sub(p.LastActivityAt) < touchEvery {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE projects SET last_activity_at = ? WHERE id = ? AND last_activity_at < ?`, at, p.ID, at)
	return err
}
