package listing

import (
	"strconv"

	"svc/internal/db"
)

// completionScan is the number of newest issues or merge requests of a project
// that completion searches. It bounds the cost for large projects.
const completionScan = 2000

// rangeScan is the maximum number of rows that completion reads per range of
// numbers. It exceeds MaxCompletions, because some of the rows may be invisible to
// the user.
const rangeScan = 20 * MaxCompletions

// Match adds the conditions on matching issues or merge requests i of a project: by
// number (see From), or by title among the newest ones.
func (t Typed) Match(w *db.Where, in Table, projectID int64) {
	w.And(`i.project_id = ?`, projectID)
	if t.Number > 0 {
		return // From has the rows
	}
	table := string(in) + "s"
	w.And(`i.iid > COALESCE((SELECT x.iid FROM `+table+` x WHERE x.project_id = ? ORDER BY x.iid DESC LIMIT 1 OFFSET `+strconv.Itoa(completionScan)+`), 0)`, projectID)
	if t.Text != "" {
		w.And(`fold(i.title) LIKE ? ESCAPE '\'`, db.Like(t.Text))
	} else {
		w.And(`i.state = 'opened'`)
	}
}

// From returns the tables that the suggestions are read from, and their arguments.
// For a number, the tables start with the rows whose number is equal to it or starts
// with it. Each range of numbers is a separate query, because a condition with OR
// would be checked for all rows.
func (t Typed) From(d *db.DB, in Table, tables string, projectID int64) (from string, args []any) {
	if t.Number == 0 {
		return tables, nil
	}
	rows := `SELECT x.id FROM ` + string(in) + `s x WHERE x.project_id = ? AND x.iid `
	query, args := rows+`= ?`, []any{projectID, t.Number}
	for low, size := t.Number*10, int64(10); size <= 1e6; low, size = low*10, size*10 {
		query += ` UNION ALL SELECT y.id FROM (` + rows + `BETWEEN ? AND ? ORDER BY x.iid LIMIT ` + strconv.Itoa(rangeScan) + `) AS y`
		args = append(args, projectID, low, low+size-1)
	}
	return d.Behind(query, tables, `i.id`), args
}

// Order returns the order of suggestions: by number for a number, otherwise newest
// first.
func (t Typed) Order() string {
	order := ` ORDER BY i.iid`
	if t.Number == 0 {
		order += ` DESC`
	}
	return order + ` LIMIT ` + strconv.Itoa(MaxCompletions)
}
