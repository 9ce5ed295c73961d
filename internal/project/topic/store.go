package topic

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const topicColumns = `t.id, t.name, t.title, t.description, t.avatar, t.projects, t.created_at, t.updated_at`

func scanTopic(s db.Scanner) (*Topic, error) {
	var t Topic
	err := s.Scan(&t.ID, &t.Name, &t.Title, &t.Description, &t.Avatar, &t.Projects, db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt))
	return &t, err
}

func findTopic(ctx context.Context, q db.Q, id int64) (*Topic, error) {
	t, err := scanTopic(q.QueryRowContext(ctx, `SELECT `+topicColumns+` FROM topics t WHERE t.id = ?`, id))
	return t, db.NotFound(err, "Topic")
}

// lockTopic locks and returns a topic.
func lockTopic(ctx context.Context, tx *db.Tx, id int64) (*Topic, error) {
	if err := tx.Lock(ctx, "topics", id); err != nil {
		return nil, err
	}
	return findTopic(ctx, tx, id)
}

func listTopics(ctx context.Context, d *db.DB, f Filter, p db.Paging) (db.Page[*Topic], error) {
	var w db.Where
	if f.Search != "" {
		w.And(`fold(t.name) LIKE ? ESCAPE '\'`, db.Like(f.Search))
	}
	if f.Unused {
		w.And("t.projects = 0")
	}
	return db.List(ctx, d, db.Query[*Topic]{
		Columns: topicColumns, From: "topics t", Where: w, Order: []db.Order{{Name: "t.projects"}, {Name: "t.id"}}, Desc: true, Scan: scanTopic,
		Keys: func(t *Topic) []any { return []any{t.Projects, t.ID} },
	}, p)
}

func insertTopic(ctx context.Context, q db.Q, t *Topic) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO topics (name, title, description, created_at, updated_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		t.Name, t.Title, t.Description, t.CreatedAt, t.UpdatedAt).Scan(&t.ID)
	return topicTaken(err)
}

func saveTopic(ctx context.Context, q db.Q, t *Topic) error {
	return topicTaken(db.ExecOne(ctx, q, `UPDATE topics SET name = ?, title = ?, description = ?, updated_at = ? WHERE id = ?`,
		t.Name, t.Title, t.Description, t.UpdatedAt, t.ID))
}

func topicTaken(err error) error {
	if db.IsUnique(err, "topics_name") {
		return errs.InvalidField("name", "has already been taken")
	}
	return err
}

func saveTopicAvatar(ctx context.Context, q db.Q, id int64, name string) error {
	return db.ExecOne(ctx, q, `UPDATE topics SET avatar = ? WHERE id = ?`, name, id)
}

// deleteTopic deletes a topic and removes it from its projects.
func deleteTopic(ctx context.Context, q db.Q, t *Topic) error {
	if _, err := q.ExecContext(ctx, `DELETE FROM project_topics WHERE lower(name) = lower(?)`, t.Name); err != nil {
		return err
	}
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM topics WHERE id = ?`, t.ID), "Topic")
}

// moveTopic moves the projects of one topic to another and deletes the first.
func moveTopic(ctx context.Context, q db.Q, from, to *Topic) error {
	_, err := q.ExecContext(ctx, `
		DELETE FROM project_topics WHERE lower(name) = lower(?) AND project_id IN (SELECT o.project_id FROM project_topics o WHERE lower(o.name) = lower(?))`,
		from.Name, to.Name)
	if err != nil {
		return err
	}
	if err := renameTopic(ctx, q, from.Name, to.Name); err != nil {
		return err
	}
	if err := db.ExecOne(ctx, q, `DELETE FROM topics WHERE id = ?`, from.ID); err != nil {
		return db.NotFound(err, "Topic")
	}
	return countTopics(ctx, q, to.Name)
}

// renameTopic renames a topic in its projects.
func renameTopic(ctx context.Context, q db.Q, from, to string) error {
	_, err := q.ExecContext(ctx, `UPDATE project_topics SET name = ? WHERE lower(name) = lower(?)`, to, from)
	return err
}

// Save replaces the topics of a project. Unknown topics are created;
// existing ones keep their spelling.
func Save(ctx context.Context, q db.Q, projectID int64, topics []string, at time.Time) error {
	touched, err := db.All(ctx, q, db.Value[string], `SELECT name FROM project_topics WHERE project_id = ?`, projectID)
	if err != nil {
		return err
	}
	if _, err := q.ExecContext(ctx, `DELETE FROM project_topics WHERE project_id = ?`, projectID); err != nil {
		return err
	}
	for i, name := range topics {
		_, err := q.ExecContext(ctx, `INSERT INTO topics (name, title, created_at, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT (lower(name)) DO NOTHING`, name, name, at, at)
		if err != nil {
			return err
		}
		_, err = q.ExecContext(ctx, `
			INSERT INTO project_topics (project_id, position, name)
			SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), t.name FROM topics t WHERE lower(t.name) = lower(?)`, projectID, i, name)
		if err != nil {
			return err
		}
	}
	return countTopics(ctx, q, append(touched, topics...)...)
}

// countTopics updates the number of projects of topics. Names are compared by the
// database, because not every database folds the case of all letters.
func countTopics(ctx context.Context, q db.Q, names ...string) error {
	// Sorted, so that concurrent transactions lock topics in the same order.
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	for _, name := range slices.Compact(names) {
		_, err := q.ExecContext(ctx, `
			UPDATE topics SET projects = (SELECT count(*) FROM project_topics p WHERE lower(p.name) = lower(topics.name)) WHERE lower(name) = lower(?)`, name)
		if err != nil {
			return err
		}
	}
	return nil
}

// Use is the use of a topic by a project.
type Use struct {
	ProjectID int64
	Name      string
}

// Of returns the topics of projects in their original order.
func Of(ctx context.Context, q db.Q, projects []int64) ([]Use, error) {
	return db.All(ctx, q, func(s db.Scanner) (Use, error) {
		var t Use
		err := s.Scan(&t.ProjectID, &t.Name)
		return t, err
	}, `SELECT project_id, name FROM project_topics WHERE project_id IN `+db.In(len(projects))+` ORDER BY project_id, position`, db.Any(projects)...)
}
