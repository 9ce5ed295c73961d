package plan

import (
	"context"
	"strconv"

	"svc/internal/db"
)

// completionScan is the number of newest issues or merge requests of a project
// that completion searches. It bounds the cost for large projects.
const completionScan = 2000

// Match adds the conditions on issues or merge requests i of a project that match:
// by number, or by title among the newest ones.
func (t Typed) Match(w *db.Where, kind Kind, projectID int64) {
	w.And(`i.project_id = ?`, projectID)
	if t.Number > 0 {
		cond, args := `i.iid = ?`, []any{t.Number}
		for low, size := t.Number*10, int64(10); size <= 1e6; low, size = low*10, size*10 {
			cond, args = cond+` OR i.iid BETWEEN ? AND ?`, append(args, low, low+size-1)
		}
		w.And(cond, args...)
		return
	}
	table := kind.table() + "s"
	w.And(`i.iid > COALESCE((SELECT x.iid FROM `+table+` x WHERE x.project_id = ? ORDER BY x.iid DESC LIMIT 1 OFFSET `+strconv.Itoa(completionScan)+`), 0)`, projectID)
	if t.Text != "" {
		w.And(`fold(i.title) LIKE ? ESCAPE '\'`, db.Like(t.Text))
	} else {
		w.And(`i.state = 'opened'`)
	}
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

func completeIssues(ctx context.Context, q db.Q, w db.Where, projectID int64, t Typed) ([]*Issue, error) {
	t.Match(&w, IssueKind, projectID)
	return db.All(ctx, q, scanIssue, `SELECT `+issueColumns+` FROM `+issueTables+w.SQL()+t.Order(), w.Args()...)
}
