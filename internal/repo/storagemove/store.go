package storagemove

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"svc/internal/db"
)

const moveColumns = `m.id, m.kind, m.owner_id, m.source, m.destination, m.state, m.error, m.run, m.tries, m.left_behind, m.created_at, m.updated_at, m.started_at, m.ended_at`

func scanMove(s db.Scanner) (*Move, error) {
	var m Move
	var left string
	err := s.Scan(&m.ID, (*string)(&m.Kind), &m.OwnerID, &m.Source, &m.Destination, (*string)(&m.State), &m.Error, &m.run, &m.tries, &left,
		db.Time(&m.CreatedAt), db.Time(&m.UpdatedAt), db.NullTime(&m.StartedAt), db.NullTime(&m.EndedAt))
	if err == nil {
		err = json.Unmarshal([]byte(left), &m.left)
	}
	return &m, err
}

func findMove(ctx context.Context, q db.Q, id int64) (*Move, error) {
	return scanMove(q.QueryRowContext(ctx, `SELECT `+moveColumns+` FROM storage_moves m WHERE m.id = ?`, id))
}

// insertMove inserts a move; ErrNoRows if its owner has one in progress.
func insertMove(ctx context.Context, q db.Q, m *Move) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO storage_moves (kind, owner_id, source, destination, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		string(m.Kind), m.OwnerID, m.Source, m.Destination, string(m.State), m.CreatedAt, m.UpdatedAt).Scan(&m.ID)
}

// saveMove saves a move by compare-and-set on its state and run. ErrNoRows if
// they have changed.
func saveMove(ctx context.Context, q db.Q, m *Move, was State, run string) error {
	left, err := json.Marshal(m.left)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `
		UPDATE storage_moves SET source = ?, state = ?, error = ?, run = ?, tries = ?, left_behind = ?, updated_at = ?, started_at = ?, ended_at = ?
		WHERE id = ? AND state = ? AND run = ?`,
		m.Source, string(m.State), m.Error, m.run, m.tries, string(left), m.UpdatedAt, m.StartedAt, m.EndedAt, m.ID, string(was), run)
}

// touchMove updates the time of a move; ErrNoRows if another run has taken it over.
func touchMove(ctx context.Context, q db.Q, id int64, run string, at time.Time) error {
	return db.ExecOne(ctx, q, `UPDATE storage_moves SET updated_at = ? WHERE id = ? AND run = ?`, at, id, run)
}

// ownsMove returns ErrNoRows if the state or the run of a move has changed.
func ownsMove(ctx context.Context, q db.Q, m *Move) error {
	return q.QueryRowContext(ctx, `SELECT 1 FROM storage_moves WHERE id = ? AND state = ? AND run = ?`, m.ID, string(m.State), m.run).Scan(new(int64))
}

// moveOwner has the table and columns of the owners of a kind.
type moveOwner struct {
	table, name, title, live string
	auxRepo                  string // column of the auxiliary repository that refers to it
}

func (k Kind) owner() moveOwner {
	switch k {
	case Project:
		return moveOwner{"projects", "full_path", "name", "o.deleted_at IS NULL", "project_id"}
	case Group:
		return moveOwner{"namespaces", "full_path", "name", "o.deleted_at IS NULL", "namespace_id"}
	}
	return moveOwner{"snippets", "title", "title", "o.files <> '[]'", "snippet_id"}
}

// searchMoves returns a page of moves, newest first, without those of deleted
// owners.
func searchMoves(ctx context.Context, d *db.DB, f Filter, p db.Paging) (db.Page[*Move], error) {
	var w db.Where
	var names, titles, there []string
	for _, kind := range []Kind{Project, Group, Snippet} {
		o := kind.owner()
		from := ` FROM ` + o.table + ` o WHERE o.id = m.owner_id AND ` + o.live
		names = append(names, `WHEN '`+string(kind)+`' THEN (SELECT o.`+o.name+from+`)`)
		titles = append(titles, `WHEN '`+string(kind)+`' THEN (SELECT o.`+o.title+from+`)`)
		there = append(there, `m.kind = '`+string(kind)+`' AND EXISTS (SELECT 1`+from+`)`)
	}
	w.And(strings.Join(there, " OR "))
	if f.Kind != "" {
		w.And(`m.kind = ?`, string(f.Kind))
	}
	if f.OwnerID != 0 {
		w.And(`m.owner_id = ?`, f.OwnerID)
	}
	if f.ID != 0 {
		w.And(`m.id = ?`, f.ID)
	}
	return db.List(ctx, d, db.Query[*Move]{
		Columns: moveColumns + `, CASE m.kind ` + strings.Join(names, " ") + ` END, CASE m.kind ` + strings.Join(titles, " ") + ` END`, From: "storage_moves m", Where: w,
		Order: []db.Order{{Name: "m.id"}}, Desc: true,
		Scan: func(s db.Scanner) (*Move, error) {
			var name, title string
			m, err := scanMove(plus{s, []any{&name, &title}})
			m.Name, m.Title = name, title
			return m, err
		},
		Keys: func(m *Move) []any { return []any{m.ID} },
	}, p)
}

// plus scans additional columns.
type plus struct {
	db.Scanner
	more []any
}

// Scan implements db.Scanner.
func (p plus) Scan(to ...any) error { return p.Scanner.Scan(append(to, p.more...)...) }

// ownersOn finds the owners with repositories on a storage, in the order of
// their IDs.
func ownersOn(ctx context.Context, q db.Q, kind Kind, storage string, after int64, limit int) ([]int64, error) {
	o := kind.owner()
	query := `SELECT o.id FROM projects o WHERE o.storage = ? AND o.id > ? AND ` + o.live + ` ORDER BY o.id LIMIT ?`
	if kind != Project {
		query = `SELECT o.id FROM annexes a JOIN ` + o.table + ` o ON o.id = a.` + o.auxRepo + ` WHERE a.storage = ? AND o.id > ? AND ` + o.live + ` ORDER BY o.id LIMIT ?`
	}
	return db.All(ctx, q, db.Value[int64], query, storage, after, limit)
}

func countMoves(ctx context.Context, q db.Q) (p Progress, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(CASE WHEN state IN ('initial', 'scheduled') THEN 1 END), count(CASE WHEN state = 'started' THEN 1 END), count(CASE WHEN state = 'replicated' THEN 1 END)
		FROM storage_moves WHERE state IN ('initial', 'scheduled', 'started', 'replicated')`).Scan(&p.Waiting, &p.Copying, &p.Leaving)
	return p, err
}

// staleMoves returns the moves in progress that were not updated for a while.
func staleMoves(ctx context.Context, q db.Q, before time.Time) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT id FROM storage_moves
		WHERE state IN ('initial', 'scheduled', 'started', 'replicated') AND updated_at < ? ORDER BY id LIMIT 1000`, before)
}

// movesLeaving returns the moves whose old directories nodes may still use.
func movesLeaving(ctx context.Context, q db.Q) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM storage_moves WHERE state = 'replicated' ORDER BY id`)
}

func insertMoveNode(ctx context.Context, q db.Q, id int64, node string) error {
	_, err := q.ExecContext(ctx, `INSERT INTO storage_move_nodes (move_id, node) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, node)
	return err
}

func moveNodes(ctx context.Context, q db.Q, id int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT node FROM storage_move_nodes WHERE move_id = ?`, id)
}

func deleteMoveNodes(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM storage_move_nodes WHERE move_id = ?`, id)
	return err
}
