package featureflag

import (
	"context"
	"encoding/json"
	"time"

	"svc/internal/db"
	"svc/internal/project"
)

const flagColumns = `f.id, f.project_id, f.iid, f.name, f.description, f.active, f.created_at, f.updated_at`

func scanFlag(sc db.Scanner) (*Flag, error) {
	var f Flag
	err := sc.Scan(&f.ID, &f.ProjectID, &f.IID, &f.Name, &f.Description, &f.Active, db.Time(&f.CreatedAt), db.Time(&f.UpdatedAt))
	return &f, err
}

func findFlag(ctx context.Context, q db.Q, projectID int64, name string) (*Flag, error) {
	return scanFlag(q.QueryRowContext(ctx, `SELECT `+flagColumns+` FROM feature_flags f WHERE f.project_id = ? AND f.name = ?`, projectID, name))
}

func findFlagByIID(ctx context.Context, q db.Q, projectID, iid int64) (*Flag, error) {
	return scanFlag(q.QueryRowContext(ctx, `SELECT `+flagColumns+` FROM feature_flags f WHERE f.project_id = ? AND f.iid = ?`, projectID, iid))
}

// listFlags reads one page. A project has at most maxFlags flags, so the filter has
// no index.
func listFlags(ctx context.Context, d *db.DB, projectID int64, status Status, p db.Paging) (db.Page[*Flag], error) {
	var w db.Where
	w.And(`f.project_id = ?`, projectID)
	if status != AnyStatus {
		w.And(`f.active = ?`, status == Enabled)
	}
	return db.List(ctx, d, db.Query[*Flag]{
		Columns: flagColumns, From: `feature_flags f`, Where: w, Order: []db.Order{{Name: "f.name"}}, Scan: scanFlag,
		Keys: func(f *Flag) []any { return []any{f.Name} },
	}, p)
}

// allFlags reads all flags of a project with their strategies.
func allFlags(ctx context.Context, q db.Q, projectID int64) ([]*Flag, error) {
	list, err := db.All(ctx, q, scanFlag, `SELECT `+flagColumns+` FROM feature_flags f WHERE f.project_id = ? ORDER BY f.name`, projectID)
	if err != nil {
		return nil, err
	}
	return list, fillStrategies(ctx, q, list)
}

func countRows(ctx context.Context, q db.Q, table string, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func nextIID(ctx context.Context, q db.Q, table string, projectID int64) (iid int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT coalesce(max(iid), 0) + 1 FROM `+table+` WHERE project_id = ?`, projectID).Scan(&iid)
	return iid, err
}

// flagsSize returns the size of the strategies and scopes of all flags of a project,
// with a fixed overhead for each row.
func flagsSize(ctx context.Context, q db.Q, projectID int64) (size int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT (SELECT coalesce(sum(length(s.parameters) + coalesce(length(l.user_xids), 0) + 32), 0)
			FROM feature_flags f JOIN feature_flag_strategies s ON s.flag_id = f.id LEFT JOIN feature_flag_user_lists l ON l.id = s.user_list_id WHERE f.project_id = ?)
		+ (SELECT coalesce(sum(length(c.environment_scope) + 32), 0)
			FROM feature_flags f JOIN feature_flag_strategies s ON s.flag_id = f.id JOIN feature_flag_scopes c ON c.strategy_id = s.id WHERE f.project_id = ?)`,
		projectID, projectID).Scan(&size)
	return size, err
}

func insertFlag(ctx context.Context, q db.Q, f *Flag) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO feature_flags (project_id, iid, name, description, active, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		f.ProjectID, f.IID, f.Name, f.Description, f.Active, f.CreatedAt, f.UpdatedAt).Scan(&f.ID)
}

func updateFlag(ctx context.Context, q db.Q, f *Flag) error {
	return db.ExecOne(ctx, q, `UPDATE feature_flags SET name = ?, description = ?, active = ?, updated_at = ? WHERE id = ?`,
		f.Name, f.Description, f.Active, f.UpdatedAt, f.ID)
}

func deleteFlag(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM feature_flags WHERE id = ?`, id)
}

// fillStrategies reads the strategies and scopes of flags.
func fillStrategies(ctx context.Context, q db.Q, flags []*Flag) error {
	const most = 500 // placeholders of one statement
	for len(flags) > 0 {
		part := flags[:min(most, len(flags))]
		flags = flags[len(part):]
		if err := fillSome(ctx, q, part); err != nil {
			return err
		}
	}
	return nil
}

func fillSome(ctx context.Context, q db.Q, flags []*Flag) error {
	byID, ids := map[int64]*Flag{}, make([]int64, len(flags))
	for i, f := range flags {
		byID[f.ID], ids[i], f.Strategies = f, f.ID, nil
	}
	found := map[int64]*Strategy{}
	_, err := db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var st Strategy
		var flagID int64
		var parameters string
		var l UserList
		var created, updated *time.Time
		err := sc.Scan(&st.ID, &flagID, &st.Name, &parameters, &l.ID, &l.IID, &l.Name, &l.UserIDs, db.NullTime(&created), db.NullTime(&updated))
		if err != nil {
			return struct{}{}, err
		}
		if l.ID != 0 {
			l.ProjectID, l.CreatedAt, l.UpdatedAt = byID[flagID].ProjectID, *created, *updated
			st.UserList = &l
		}
		found[st.ID] = &st
		byID[flagID].Strategies = append(byID[flagID].Strategies, &st)
		return struct{}{}, json.Unmarshal([]byte(parameters), &st.Parameters)
	}, `SELECT s.id, s.flag_id, s.name, s.parameters, coalesce(l.id, 0), coalesce(l.iid, 0), coalesce(l.name, ''), coalesce(l.user_xids, ''), l.created_at, l.updated_at
		FROM feature_flag_strategies s LEFT JOIN feature_flag_user_lists l ON l.id = s.user_list_id
		WHERE s.flag_id IN `+db.In(len(ids))+` ORDER BY s.flag_id, s.id`, db.Any(ids)...)
	if err != nil || len(found) == 0 {
		return err
	}
	_, err = db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var scope Scope
		var strategyID int64
		err := sc.Scan(&scope.ID, &strategyID, &scope.Environment)
		if st := found[strategyID]; st != nil {
			st.Scopes = append(st.Scopes, &scope)
		}
		return struct{}{}, err
	}, `SELECT c.id, c.strategy_id, c.environment_scope FROM feature_flag_scopes c JOIN feature_flag_strategies s ON s.id = c.strategy_id
		WHERE s.flag_id IN `+db.In(len(ids))+` ORDER BY c.strategy_id, c.id`, db.Any(ids)...)
	return err
}

// saveStrategies stores the strategies of a flag; was are the strategies that are
// stored.
func saveStrategies(ctx context.Context, q db.Q, f *Flag, was []*Strategy) error {
	kept := map[int64]bool{}
	for _, st := range f.Strategies {
		parameters, err := json.Marshal(st.Parameters)
		if err != nil {
			return err
		}
		var list *int64
		if st.UserList != nil {
			list = &st.UserList.ID
		}
		if st.ID == 0 {
			err = q.QueryRowContext(ctx, `INSERT INTO feature_flag_strategies (flag_id, name, parameters, user_list_id) VALUES (?, ?, ?, ?) RETURNING id`,
				f.ID, st.Name, string(parameters), list).Scan(&st.ID)
		} else {
			err = db.ExecOne(ctx, q, `UPDATE feature_flag_strategies SET name = ?, parameters = ?, user_list_id = ? WHERE id = ?`, st.Name, string(parameters), list, st.ID)
		}
		if err != nil {
			return err
		}
		kept[st.ID] = true
		if err := saveScopes(ctx, q, st, was); err != nil {
			return err
		}
	}
	for _, st := range was {
		if kept[st.ID] {
			continue
		}
		if err := db.ExecOne(ctx, q, `DELETE FROM feature_flag_strategies WHERE id = ?`, st.ID); err != nil {
			return err
		}
	}
	return nil
}

func saveScopes(ctx context.Context, q db.Q, st *Strategy, was []*Strategy) error {
	kept := map[int64]bool{}
	for _, sc := range st.Scopes {
		var err error
		if sc.ID == 0 {
			err = q.QueryRowContext(ctx, `INSERT INTO feature_flag_scopes (strategy_id, environment_scope) VALUES (?, ?) RETURNING id`, st.ID, sc.Environment).Scan(&sc.ID)
		} else {
			err = db.ExecOne(ctx, q, `UPDATE feature_flag_scopes SET environment_scope = ? WHERE id = ?`, sc.Environment, sc.ID)
		}
		if err != nil {
			return err
		}
		kept[sc.ID] = true
	}
	for _, old := range was {
		if old.ID != st.ID {
			continue
		}
		for _, sc := range old.Scopes {
			if kept[sc.ID] {
				continue
			}
			if err := db.ExecOne(ctx, q, `DELETE FROM feature_flag_scopes WHERE id = ?`, sc.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

const listColumns = `l.id, l.project_id, l.iid, l.name, l.user_xids, l.created_at, l.updated_at`

func scanUserList(sc db.Scanner) (*UserList, error) {
	var l UserList
	err := sc.Scan(&l.ID, &l.ProjectID, &l.IID, &l.Name, &l.UserIDs, db.Time(&l.CreatedAt), db.Time(&l.UpdatedAt))
	return &l, err
}

func findUserList(ctx context.Context, q db.Q, projectID, iid int64) (*UserList, error) {
	return scanUserList(q.QueryRowContext(ctx, `SELECT `+listColumns+` FROM feature_flag_user_lists l WHERE l.project_id = ? AND l.iid = ?`, projectID, iid))
}

func findUserListByID(ctx context.Context, q db.Q, projectID, id int64) (*UserList, error) {
	return scanUserList(q.QueryRowContext(ctx, `SELECT `+listColumns+` FROM feature_flag_user_lists l WHERE l.project_id = ? AND l.id = ?`, projectID, id))
}

// listUserLists reads one page. A project has at most maxLists lists, so the search
// has no index.
func listUserLists(ctx context.Context, d *db.DB, projectID int64, search string, p db.Paging) (db.Page[*UserList], error) {
	var w db.Where
	w.And(`l.project_id = ?`, projectID)
	if search != "" {
		w.And(`fold(l.name) LIKE ? ESCAPE '\'`, db.Like(search))
	}
	return db.List(ctx, d, db.Query[*UserList]{
		Columns: listColumns, From: `feature_flag_user_lists l`, Where: w, Order: []db.Order{{Name: "l.iid"}}, Scan: scanUserList,
		Keys: func(l *UserList) []any { return []any{l.IID} },
	}, p)
}

func insertUserList(ctx context.Context, q db.Q, l *UserList) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO feature_flag_user_lists (project_id, iid, name, user_xids, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		l.ProjectID, l.IID, l.Name, l.UserIDs, l.CreatedAt, l.UpdatedAt).Scan(&l.ID)
}

func updateUserList(ctx context.Context, q db.Q, l *UserList) error {
	return db.ExecOne(ctx, q, `UPDATE feature_flag_user_lists SET name = ?, user_xids = ?, updated_at = ? WHERE id = ?`, l.Name, l.UserIDs, l.UpdatedAt, l.ID)
}

func deleteUserList(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM feature_flag_user_lists WHERE id = ?`, id)
}

func userListUsed(ctx context.Context, q db.Q, id int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM feature_flag_strategies WHERE user_list_id = ? LIMIT 1`, id)
}

func countRevision(ctx context.Context, q db.Q, projectID int64) error {
	_, err := q.ExecContext(ctx, `UPDATE feature_flag_clients SET revision = revision + 1 WHERE project_id = ?`, projectID)
	return err
}

func findSealed(ctx context.Context, q db.Q, projectID int64) (sealed string, err error) {
	err = q.QueryRowContext(ctx, `SELECT sealed FROM feature_flag_clients WHERE project_id = ?`, projectID).Scan(&sealed)
	return sealed, err
}

func saveClient(ctx context.Context, q db.Q, projectID int64, digest, sealed string, now time.Time) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO feature_flag_clients (project_id, digest, sealed, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET digest = excluded.digest, sealed = excluded.sealed, revision = feature_flag_clients.revision + 1`,
		projectID, digest, sealed, now)
	return err
}

// clientRow has the columns that a poll of a client needs.
type clientRow struct {
	digest   string
	revision int64
	access   project.Feature
}

func findClient(ctx context.Context, q db.Q, projectID int64) (clientRow, error) {
	var c clientRow
	var settings string
	err := q.QueryRowContext(ctx, `
		SELECT c.digest, c.revision, p.settings FROM feature_flag_clients c JOIN projects p ON p.id = c.project_id
		WHERE c.project_id = ? AND p.deleted_at IS NULL`, projectID).Scan(&c.digest, &c.revision, &settings)
	if err != nil {
		return c, err
	}
	var parsed struct{ FeatureFlags project.Feature }
	err = json.Unmarshal([]byte(settings), &parsed)
	c.access = parsed.FeatureFlags
	return c, err
}
