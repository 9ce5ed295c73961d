package notify

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"svc/internal/db"
)

// where returns an SQL condition, with its arguments, that selects the settings s of
// the scope.
func (at scope) where() (string, []any) {
	switch {
	case at.project != nil:
		return `s.project_id = ?`, []any{*at.project}
	case at.group != nil:
		return `s.namespace_id = ?`, []any{*at.group}
	}
	return `s.project_id IS NULL AND s.namespace_id IS NULL`, nil
}

const settingColumns = `s.user_id, s.project_id, s.namespace_id, s.level, s.events, s.email, s.own_acts`

// settingRow is a setting with its user and scope.
type settingRow struct {
	user    int64
	at      scope
	depth   int64 // number of levels from the project to the group
	setting Setting
}

func (r *settingRow) scan(s db.Scanner, more ...any) error {
	var events string
	t := &r.setting
	err := s.Scan(append([]any{&r.user, &r.at.project, &r.at.group, (*string)(&t.Level), &events, &t.Email, &t.OwnActivity}, more...)...)
	if err == nil && events != "" {
		err = json.Unmarshal([]byte(events), &t.chosen)
	}
	return err
}

func scanSetting(s db.Scanner) (r settingRow, err error) {
	err = r.scan(s)
	return r, err
}

// findSetting returns nil if there is no setting.
func findSetting(ctx context.Context, q db.Q, userID int64, at scope) (*Setting, error) {
	cond, args := at.where()
	r, err := scanSetting(q.QueryRowContext(ctx, `SELECT `+settingColumns+` FROM notification_settings s WHERE s.user_id = ? AND `+cond,
		append([]any{userID}, args...)...))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &r.setting, err
}

// findSettings returns the settings of a user for projects and groups, ordered by
// path.
func findSettings(ctx context.Context, q db.Q, userID int64) ([]settingRow, error) {
	const most = 500 // settings in the list
	return db.All(ctx, q, scanSetting, `
		SELECT `+settingColumns+` FROM notification_settings s LEFT JOIN projects p ON p.id = s.project_id LEFT JOIN namespaces n ON n.id = s.namespace_id
		WHERE s.user_id = ? AND (s.project_id IS NOT NULL OR s.namespace_id IS NOT NULL) AND p.deleted_at IS NULL
		ORDER BY COALESCE(p.full_path, n.full_path) LIMIT ?`, userID, most)
}

// findLevels returns the levels of a user in projects and groups.
func findLevels(ctx context.Context, q db.Q, userID int64, projects, groups []int64) (LevelSet, error) {
	found := LevelSet{map[int64]Level{}, map[int64]Level{}}
	args := append(append([]any{userID}, db.Any(projects)...), db.Any(groups)...)
	_, err := db.All(ctx, q, func(s db.Scanner) (none struct{}, err error) {
		var projectID, groupID *int64
		var level string
		if err := s.Scan(&projectID, &groupID, &level); err != nil {
			return none, err
		}
		if projectID != nil {
			found.projects[*projectID] = Level(level)
		}
		if groupID != nil {
			found.groups[*groupID] = Level(level)
		}
		return none, nil
	}, `SELECT s.project_id, s.namespace_id, s.level FROM notification_settings s
		WHERE s.user_id = ? AND (s.project_id IN `+db.In(len(projects))+` OR s.namespace_id IN `+db.In(len(groups))+`)`, args...)
	return found, err
}

func saveSetting(ctx context.Context, tx *db.Tx, userID int64, at scope, t Setting) error {
	events := ""
	if len(t.chosen) > 0 {
		text, err := json.Marshal(t.chosen)
		if err != nil {
			return err
		}
		events = string(text)
	}
	cond, args := at.where()
	if _, err := tx.ExecContext(ctx, `DELETE FROM notification_settings AS s WHERE s.user_id = ? AND `+cond, append([]any{userID}, args...)...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO notification_settings (user_id, project_id, namespace_id, level, events, email, own_acts) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		userID, at.project, at.group, string(t.Level), events, t.Email, t.OwnActivity)
	return err
}

// batch is the maximum number of IDs in one statement.
const batch = 500

// findEffective returns the settings of users that may apply to a project: for the
// project, for the groups above it, and the global ones.
func findEffective(ctx context.Context, q db.Q, projectID int64, users []int64) ([]settingRow, error) {
	var list []settingRow
	for len(users) > 0 {
		part := users[:min(batch, len(users))]
		users = users[len(part):]
		found, err := db.All(ctx, q, func(s db.Scanner) (r settingRow, err error) {
			err = r.scan(s, &r.depth)
			return r, err
		}, `
			SELECT `+settingColumns+`, COALESCE(t.depth, 0) FROM notification_settings s
				LEFT JOIN namespace_tree t ON t.ancestor_id = s.namespace_id AND t.descendant_id = (SELECT p.namespace_id FROM projects p WHERE p.id = ?)
			WHERE (s.project_id = ? OR t.ancestor_id IS NOT NULL OR s.project_id IS NULL AND s.namespace_id IS NULL) AND s.user_id IN `+db.In(len(part)),
			append([]any{projectID, projectID}, db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// findWatchers returns the users with the level watch or custom on a project or
// a group above it.
func findWatchers(ctx context.Context, q db.Q, projectID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT s.user_id FROM notification_settings s WHERE s.project_id = ? AND s.level IN ('watch', 'custom')
		UNION
		SELECT s.user_id FROM projects p JOIN namespace_tree t ON t.descendant_id = p.namespace_id JOIN notification_settings s ON s.namespace_id = t.ancestor_id
		WHERE p.id = ? AND s.level IN ('watch', 'custom')`, projectID, projectID)
}

func insertEvent(ctx context.Context, tx *db.Tx, e *Event) (int64, error) {
	details, err := json.Marshal(e.Details)
	if err != nil {
		return 0, err
	}
	var author *int64
	if e.AuthorID > 0 {
		author = &e.AuthorID
	}
	err = tx.QueryRowContext(ctx, `
		INSERT INTO notification_acts (event, kind, thing_id, project_id, author_id, once, details, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (once) WHERE once IS NOT NULL DO NOTHING RETURNING id`,
		string(e.Type), e.TargetKind, e.TargetID, e.ProjectID, author, db.NullText(e.Once), string(details), e.CreatedAt).Scan(&e.ID)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return e.ID, err
}

const eventColumns = `a.id, a.event, a.kind, a.thing_id, a.project_id, COALESCE(a.author_id, 0), a.details, a.created_at`

func scanEvent(s db.Scanner, more ...any) (*Event, error) {
	var e Event
	var details string
	err := s.Scan(append([]any{&e.ID, (*string)(&e.Type), &e.TargetKind, &e.TargetID, &e.ProjectID, &e.AuthorID, &details, db.Time(&e.CreatedAt)}, more...)...)
	if err == nil {
		err = json.Unmarshal([]byte(details), &e.Details)
	}
	return &e, err
}

// findEvent returns nil for an event that was deleted with its target.
func findEvent(ctx context.Context, q db.Q, id int64) (*Event, error) {
	e, err := scanEvent(q.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM notification_acts a WHERE a.id = ?`, id))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return e, err
}

func hasEvent(ctx context.Context, q db.Q, kind string, targetID int64, e EventType) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM notification_acts a WHERE a.kind = ? AND a.thing_id = ? AND a.event = ? LIMIT 1`, kind, targetID, string(e))
}

func deleteEvents(ctx context.Context, q db.Q, kind string, targets []int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM notification_acts WHERE kind = ? AND thing_id IN `+db.In(len(targets)), append([]any{kind}, db.Any(targets)...)...)
	return err
}

func deleteOld(ctx context.Context, q db.Q, table string, before time.Time, limit int) (int64, error) {
	return db.ExecCount(ctx, q, `DELETE FROM `+table+` WHERE id IN (SELECT id FROM `+table+` WHERE created_at < ? ORDER BY created_at LIMIT ?)`, before, limit)
}
