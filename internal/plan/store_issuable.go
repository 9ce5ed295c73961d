package plan

import (
	"context"
	"strings"

	"svc/internal/db"
	"svc/internal/plan/listing"
)

// list returns the table of a kind for package listing.
func (k Kind) list() listing.Table {
	if k == MergeKind {
		return listing.MergeRequests
	}
	return listing.Issues
}

// table returns the singular table name of a kind. The names of related tables
// start with it.
func (k Kind) table() string { return string(k.list()) }

// noun returns the kind as a word in a sentence.
func (k Kind) noun() string { return strings.ReplaceAll(k.table(), "_", " ") }

// name returns the kind as a word in an error message.
func (k Kind) name() string {
	if k == MergeKind {
		return "Merge Request"
	}
	return string(k)
}

// relations returns the user relations of a kind.
func (k Kind) relations() []Relation {
	if k == MergeKind {
		return []Relation{Assignees, Reviewers}
	}
	return []Relation{Assignees}
}

func findDescription(ctx context.Context, q db.Q, of Target) (text string, err error) {
	err = q.QueryRowContext(ctx, `SELECT description FROM `+of.Kind.table()+`s WHERE id = ?`, of.ID).Scan(&text)
	return text, err
}

// Relation is a relation between users and an issue or merge request.
type Relation = listing.Relation

// The relations.
const (
	Assignees = listing.Assignees
	Reviewers = listing.Reviewers // merge requests only
)

// pair is a row of a join table.
type pair struct{ first, second int64 }

func scanPair(s db.Scanner) (p pair, err error) {
	err = s.Scan(&p.first, &p.second)
	return p, err
}

// findRelated returns the IDs of the related users by target ID, in ascending
// order.
func findRelated(ctx context.Context, q db.Q, kind Kind, as Relation, ids []int64) (map[int64][]int64, error) {
	key := kind.table() + "_id"
	list, err := db.All(ctx, q, scanPair, `SELECT `+key+`, user_id FROM `+as.Table(kind.list())+` WHERE `+key+` IN `+db.In(len(ids))+` ORDER BY user_id`, db.Any(ids)...)
	found := map[int64][]int64{}
	for _, a := range list {
		found[a.first] = append(found[a.first], a.second)
	}
	return found, err
}

// saveRelated replaces the related users of a target. Existing rows of users who
// remain are not rewritten.
func saveRelated(ctx context.Context, tx *db.Tx, of Target, as Relation, users []int64) error {
	key := of.Kind.table() + "_id"
	gone, args := ``, []any{of.ID}
	if len(users) > 0 {
		gone, args = ` AND user_id NOT IN `+db.In(len(users)), append(args, db.Any(users)...)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM `+as.Table(of.Kind.list())+` WHERE `+key+` = ?`+gone, args...); err != nil {
		return err
	}
	for _, id := range users {
		if _, err := tx.ExecContext(ctx, `INSERT INTO `+as.Table(of.Kind.list())+` (`+key+`, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, of.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// findLabelsOf returns the labels of targets by name, with their priority in the
// project of each target.
func findLabelsOf(ctx context.Context, q db.Q, kind Kind, ids []int64) (map[int64][]*Label, error) {
	type row struct {
		target int64
		label  *Label
	}
	key := kind.table() + "_id"
	list, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		r := row{label: &Label{}}
		l := r.label
		err := s.Scan(&r.target, &l.ID, &l.ProjectID, &l.GroupID, &l.Name, &l.Color, &l.Description, db.Time(&l.CreatedAt), db.Time(&l.UpdatedAt), &l.Priority)
		return r, err
	}, `SELECT x.`+key+`, `+labelColumns+` FROM `+kind.table()+`_labels x JOIN `+kind.table()+`s i ON i.id = x.`+key+` JOIN labels l ON l.id = x.label_id
			LEFT JOIN label_priorities o ON o.label_id = l.id AND o.project_id = i.project_id
		WHERE x.`+key+` IN `+db.In(len(ids))+` ORDER BY l.name, l.id`, db.Any(ids)...)
	found := map[int64][]*Label{}
	for _, r := range list {
		found[r.target] = append(found[r.target], r.label)
	}
	return found, err
}

func changeLabels(ctx context.Context, tx *db.Tx, of Target, added, removed []*Label) error {
	table, key := of.Kind.table()+"_labels", of.Kind.table()+"_id"
	for _, l := range added {
		if _, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (`+key+`, label_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, of.ID, l.ID); err != nil {
			return err
		}
	}
	for _, l := range removed {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE `+key+` = ? AND label_id = ?`, of.ID, l.ID); err != nil {
			return err
		}
	}
	return nil
}

// countOpenThreads counts the unresolved threads of targets.
func countOpenThreads(ctx context.Context, q db.Q, kind Kind, ids []int64) (map[int64]int64, error) {
	list, err := db.All(ctx, q, scanPair, `
		SELECT n.noteable_id, count(DISTINCT n.discussion_id) FROM notes n
		WHERE n.noteable_type = ? AND n.noteable_id IN `+db.In(len(ids))+` AND n.type <> '' AND n.system = '' AND n.resolved_at IS NULL
		GROUP BY n.noteable_id`, append([]any{string(kind)}, db.Any(ids)...)...)
	found := map[int64]int64{}
	for _, row := range list {
		found[row.first] = row.second
	}
	return found, err
}

// findMetadata returns the ID and the milestone of an issue or merge request.
func findMetadata(ctx context.Context, q db.Q, kind Kind, projectID, iid int64) (*Issuable, error) {
	i := Issuable{Kind: kind, ProjectID: projectID, IID: iid}
	err := q.QueryRowContext(ctx, `SELECT id, milestone_id FROM `+kind.table()+`s WHERE project_id = ? AND iid = ?`, projectID, iid).Scan(&i.ID, &i.MilestoneID)
	return &i, err
}
