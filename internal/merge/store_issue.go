package merge

import (
	"context"
	"maps"
	"slices"

	"svc/internal/db"
	"svc/internal/plan/listing"
)

// saveIssues saves the issues that a merge request references, and whether it closes
// them.
func saveIssues(ctx context.Context, tx *db.Tx, requestID int64, named map[int64]bool) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM merge_request_issues WHERE merge_request_id = ?`, requestID); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(named)) {
		// The issue may have been deleted in the meantime.
		_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_issues (merge_request_id, issue_id, closes) SELECT CAST(? AS BIGINT), i.id, CAST(? AS BOOLEAN) FROM issues i WHERE i.id = ?`,
			requestID, named[id], id)
		if err != nil {
			return err
		}
	}
	return nil
}

func findIssuesOf(ctx context.Context, q db.Q, requestID int64, closes bool) ([]int64, error) {
	cond := ``
	if closes {
		cond = ` AND closes`
	}
	return db.All(ctx, q, db.Value[int64], `SELECT issue_id FROM merge_request_issues WHERE merge_request_id = ?`+cond+` ORDER BY issue_id`, requestID)
}

const closesIssue = `EXISTS (SELECT 1 FROM merge_request_issues x WHERE x.merge_request_id = i.id AND x.issue_id = ? AND x.closes) AND i.target_branch = p.default_branch`

func listOfIssue(ctx context.Context, d *db.DB, w db.Where, issueID int64, closes bool, p db.Paging) (db.Page[*MergeRequest], error) {
	if closes {
		w.And(closesIssue, issueID)
	} else {
		w.And(`EXISTS (SELECT 1 FROM merge_request_issues x WHERE x.merge_request_id = i.id AND x.issue_id = ?)`, issueID)
	}
	var found listing.Selection
	ids, few, err := d.Few(ctx, `SELECT x.merge_request_id FROM merge_request_issues x WHERE x.issue_id = ?`, []any{issueID}, db.MaxCandidates)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	if few {
		found.Among = append([]int64{}, ids...)
	}
	return listRequests(ctx, d, w, found, listing.Sort{By: "created_at"}, p)
}

func countOfIssues(ctx context.Context, q db.Q, w db.Where, issues []int64) (map[int64]int64, error) {
	w.And(`x.closes AND i.target_branch = p.default_branch`)
	w.And(`x.issue_id IN `+db.In(len(issues)), db.Any(issues)...)
	type row struct{ issue, n int64 }
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.issue, &r.n)
		return r, err
	}, `SELECT x.issue_id, count(*) FROM merge_request_issues x JOIN merge_requests i ON i.id = x.merge_request_id JOIN projects p ON p.id = i.project_id`+w.SQL()+` GROUP BY x.issue_id`, w.Args()...)
	found := map[int64]int64{}
	for _, r := range list {
		found[r.issue] = r.n
	}
	return found, err
}
