package plan

import (
	"context"
	"slices"
	"strings"

	"svc/internal/db"
)

// lostGroups selects the groups that are no longer above what was moved. Its arguments
// are the previous and the new namespace.
const lostGroups = `(SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?
	AND t.ancestor_id NOT IN (SELECT a.ancestor_id FROM namespace_tree a WHERE a.descendant_id = ?))`

func (m moved) lostArgs() []any { return []any{m.from, m.to.tree()} }

// projects returns a condition that selects the moved projects by a column.
func (m moved) projects(column string) (string, []any) {
	if m.to.project != nil {
		return column + ` = ?`, []any{m.to.project.ID}
	}
	return column + ` IN (SELECT p.id FROM projects p WHERE p.namespace_id IN ` + below + `)`, []any{m.to.group.ID}
}

// boards returns a condition that selects the boards b of the moved projects and
// groups.
func (m moved) boards() (string, []any) {
	cond, args := m.projects("b.project_id")
	if m.to.group != nil {
		cond, args = `(`+cond+` OR b.namespace_id IN `+below+`)`, append(args, m.to.group.ID)
	}
	return cond, args
}

// lostLabels returns the labels of groups that are no longer above what was moved, as
// far as something in it has them.
func (m moved) lostLabels(ctx context.Context, tx *db.Tx) ([]*Label, error) {
	some, err := db.Exists(ctx, tx, `SELECT 1 FROM labels l WHERE l.namespace_id IN `+lostGroups+` LIMIT 1`, m.lostArgs()...)
	if err != nil || !some {
		return nil, err
	}
	issues, of := m.projects("i.project_id")
	priorities, _ := m.projects("x.project_id")
	boards, ofBoards := m.boards()
	return db.All(ctx, tx, scanLabel, `
		SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE l.namespace_id IN `+lostGroups+` AND l.id IN (
			SELECT x.label_id FROM issues i JOIN issue_labels x ON x.issue_id = i.id WHERE `+issues+`
			UNION SELECT x.label_id FROM merge_requests i JOIN merge_request_labels x ON x.merge_request_id = i.id WHERE `+issues+`
			UNION SELECT x.label_id FROM label_priorities x WHERE `+priorities+`
			UNION SELECT x.label_id FROM boards b JOIN board_lists x ON x.board_id = b.id WHERE x.label_id IS NOT NULL AND `+boards+`)
		ORDER BY l.id`, slices.Concat([]any{0}, m.lostArgs(), of, of, of, ofBoards)...)
}

// lostMilestones is lostLabels for milestones.
func (m moved) lostMilestones(ctx context.Context, tx *db.Tx) ([]*Milestone, error) {
	some, err := db.Exists(ctx, tx, `SELECT 1 FROM milestones m WHERE m.namespace_id IN `+lostGroups+` LIMIT 1`, m.lostArgs()...)
	if err != nil || !some {
		return nil, err
	}
	issues, of := m.projects("i.project_id")
	boards, ofBoards := m.boards()
	return db.All(ctx, tx, scanMilestone, `
		SELECT `+milestoneColumns+` FROM `+milestoneTables+` WHERE m.namespace_id IN `+lostGroups+` AND m.id IN (
			SELECT i.milestone_id FROM issues i WHERE i.milestone_id IS NOT NULL AND `+issues+`
			UNION SELECT i.milestone_id FROM merge_requests i WHERE i.milestone_id IS NOT NULL AND `+issues+`
			UNION SELECT x.milestone_id FROM releases i JOIN release_milestones x ON x.release_id = i.id WHERE `+issues+`
			UNION SELECT b.milestone_id FROM boards b WHERE b.milestone_id IS NOT NULL AND `+boards+`
			UNION SELECT x.milestone_id FROM boards b JOIN board_lists x ON x.board_id = b.id WHERE x.milestone_id IS NOT NULL AND `+boards+`)
		ORDER BY m.id`, slices.Concat(m.lostArgs(), of, of, of, ofBoards, ofBoards)...)
}

// replaced is the number of labels or milestones that one statement replaces.
const replaced = 200

// replacements returns a common table expression replacements (old_id, new_id).
func replacements(pairs []pair) (string, []any) {
	var args []any
	for _, p := range pairs {
		args = append(args, p.first, p.second)
	}
	return `WITH replacements (old_id, new_id) AS (VALUES ` + strings.Repeat(`, (CAST(? AS BIGINT), CAST(? AS BIGINT))`, len(pairs))[2:] + `) `, args
}

// replaceLabels replaces labels, from the first to the second of each pair, in what was
// moved.
func (m moved) replaceLabels(ctx context.Context, tx *db.Tx, pairs []pair) error {
	issues, of := m.projects("i.project_id")
	for part := range slices.Chunk(pairs, replaced) {
		for _, kind := range []Kind{IssueKind, MergeKind} {
			table, key := kind.table()+"_labels", kind.table()+"_id"
			if err := m.replaceRows(ctx, tx, part, table, key, "label_id", `SELECT i.id FROM `+kind.table()+`s i WHERE `+issues, of); err != nil {
				return err
			}
		}
		if err := m.replacePriorities(ctx, tx, part); err != nil {
			return err
		}
		if err := m.replaceColumns(ctx, tx, part, "label_id", "resource_events"); err != nil {
			return err
		}
	}
	return nil
}

// replaceMilestones is replaceLabels for milestones.
func (m moved) replaceMilestones(ctx context.Context, tx *db.Tx, pairs []pair) error {
	issues, of := m.projects("i.project_id")
	for part := range slices.Chunk(pairs, replaced) {
		if err := m.replaceRows(ctx, tx, part, "release_milestones", "release_id", "milestone_id", `SELECT i.id FROM releases i WHERE `+issues, of); err != nil {
			return err
		}
		if err := m.replaceColumns(ctx, tx, part, "milestone_id", "issues", "merge_requests", "resource_events"); err != nil {
			return err
		}
		with, args := replacements(part)
		boards, ofBoards := m.boards()
		_, err := tx.ExecContext(ctx, with+`UPDATE boards AS b SET milestone_id = (SELECT r.new_id FROM replacements r WHERE r.old_id = b.milestone_id)
			WHERE b.milestone_id IN (SELECT r.old_id FROM replacements r) AND `+boards, append(args, ofBoards...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceColumns replaces the values of a column in rows of the moved projects, and in
// the lists of boards.
func (m moved) replaceColumns(ctx context.Context, tx *db.Tx, pairs []pair, column string, tables ...string) error {
	with, args := replacements(pairs)
	set := ` AS x SET ` + column + ` = (SELECT r.new_id FROM replacements r WHERE r.old_id = x.` + column + `)
		WHERE x.` + column + ` IN (SELECT r.old_id FROM replacements r) AND `
	projects, of := m.projects("x.project_id")
	for _, table := range tables {
		if _, err := tx.ExecContext(ctx, with+`UPDATE `+table+set+projects, slices.Concat(args, of)...); err != nil {
			return err
		}
	}
	boards, ofBoards := m.boards()
	_, err := tx.ExecContext(ctx, with+`UPDATE board_lists`+set+`x.board_id IN (SELECT b.id FROM boards b WHERE `+boards+`)`, slices.Concat(args, ofBoards)...)
	return err
}

// replaceRows replaces the labels or milestones of the selected owners in a join table.
// An owner may have the new one already.
func (m moved) replaceRows(ctx context.Context, tx *db.Tx, pairs []pair, table, key, column, owners string, ownerArgs []any) error {
	with, args := replacements(pairs)
	args = append(args, ownerArgs...)
	_, err := tx.ExecContext(ctx, with+`INSERT INTO `+table+` (`+key+`, `+column+`)
		SELECT x.`+key+`, r.new_id FROM `+table+` x JOIN replacements r ON r.old_id = x.`+column+` WHERE x.`+key+` IN (`+owners+`) ON CONFLICT DO NOTHING`, args...)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, with+`DELETE FROM `+table+` WHERE `+column+` IN (SELECT r.old_id FROM replacements r) AND `+key+` IN (`+owners+`)`, args...)
	return err
}

func (m moved) replacePriorities(ctx context.Context, tx *db.Tx, pairs []pair) error {
	with, args := replacements(pairs)
	projects, of := m.projects("x.project_id")
	args = append(args, of...)
	_, err := tx.ExecContext(ctx, with+`INSERT INTO label_priorities (project_id, label_id, priority)
		SELECT x.project_id, r.new_id, x.priority FROM label_priorities x JOIN replacements r ON r.old_id = x.label_id WHERE `+projects+` ON CONFLICT DO NOTHING`, args...)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, with+`DELETE FROM label_priorities AS x WHERE x.label_id IN (SELECT r.old_id FROM replacements r) AND `+projects, args...)
	return err
}
