package snippet

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

const snippetColumns = `s.id, s.project_id, s.author_id, s.visibility, s.title, s.files, s.user_agent, s.ip_address, s.created_at, s.updated_at, s.description`

// unfinished is the value of the column files before the first commit.
const unfinished = "[]"

func scanSnippet(sc db.Scanner) (*Snippet, error) {
	var s Snippet
	var files string
	err := sc.Scan(&s.ID, &s.ProjectID, &s.AuthorID, (*string)(&s.Visibility), &s.Title, &files, &s.UserAgent, &s.IPAddress,
		db.Time(&s.CreatedAt), db.Time(&s.UpdatedAt), &s.Description)
	if err == nil {
		err = json.Unmarshal([]byte(files), &s.Files)
	}
	return &s, err
}

func findSnippet(ctx context.Context, q db.Q, id int64) (*Snippet, error) {
	return scanSnippet(q.QueryRowContext(ctx, `SELECT `+snippetColumns+` FROM snippets s WHERE s.id = ? AND s.files <> '`+unfinished+`'`, id))
}

// findAny is findSnippet that also finds unfinished snippets.
func findAny(ctx context.Context, q db.Q, id int64) (*Snippet, error) {
	return scanSnippet(q.QueryRowContext(ctx, `SELECT `+snippetColumns+` FROM snippets s WHERE s.id = ?`, id))
}

func insertSnippet(ctx context.Context, q db.Q, s *Snippet) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO snippets (project_id, author_id, visibility, title, files, user_agent, ip_address, created_at, updated_at, description)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		s.ProjectID, s.AuthorID, string(s.Visibility), s.Title, unfinished, s.UserAgent, s.IPAddress, s.CreatedAt, s.UpdatedAt, s.Description).Scan(&s.ID)
}

func saveSnippet(ctx context.Context, q db.Q, s *Snippet) error {
	return db.ExecOne(ctx, q, `UPDATE snippets SET visibility = ?, title = ?, description = ?, updated_at = ? WHERE id = ?`,
		string(s.Visibility), s.Title, s.Description, s.UpdatedAt, s.ID)
}

func saveFiles(ctx context.Context, q db.Q, id int64, files []string, at time.Time) error {
	text, err := json.Marshal(files)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE snippets SET files = ?, updated_at = ? WHERE id = ?`, string(text), at, id)
}

func deleteSnippet(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM snippets WHERE id = ?`, id)
}

func deleteUnfinished(ctx context.Context, q db.Q, before time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `DELETE FROM snippets WHERE files = '`+unfinished+`' AND created_at < ?`, before)
}

// deleteOf deletes the personal snippets of a user, or all their snippets, and
// returns their IDs.
func deleteOf(ctx context.Context, q db.Q, userID int64, all bool) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `DELETE FROM snippets WHERE author_id = ? AND (project_id IS NULL OR ?) RETURNING id`, userID, all)
}

func changeAuthor(ctx context.Context, q db.Q, from, to int64) error {
	_, err := q.ExecContext(ctx, `UPDATE snippets SET author_id = ? WHERE author_id = ?`, to, from)
	return err
}

// search reads one page of snippets, the newest first.
func (s *Service) search(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Snippet], error) {
	var w db.Where
	w.And(`s.files <> '` + unfinished + `'`)
	if f.authorID != 0 {
		w.And(`s.author_id = ?`, f.authorID)
	}
	if f.projectID != 0 {
		w.And(`s.project_id = ?`, f.projectID)
	}
	if len(f.ids) > 0 {
		w.And(`s.id IN `+db.In(len(f.ids)), db.Any(f.ids)...)
	}
	if f.personal {
		w.And(`s.project_id IS NULL`)
	}
	if f.Visibility != "" {
		w.And(`s.visibility = ?`, string(f.Visibility))
	}
	if f.Search != "" {
		w.Text("snippets", f.Search, "s.title")
	}
	if f.Storage != "" && by.Admin {
		w.And(`s.id IN (SELECT a.snippet_id FROM annexes a WHERE a.storage = ?)`, f.Storage)
	}
	w.Time(`s.created_at > ?`, f.CreatedAfter)
	w.Time(`s.created_at < ?`, f.CreatedBefore)
	cond, args := s.seen(by)
	w.And(cond, args...)
	return db.List(ctx, s.DB, db.Query[*Snippet]{
		Columns: snippetColumns, From: "snippets s", Where: w, Order: []db.Order{{Name: "s.id"}}, Desc: !f.Oldest, Scan: scanSnippet,
		Keys: func(s *Snippet) []any { return []any{s.ID} },
	}, p)
}

// Visible is the condition on snippets s that the actor sees, for lists of other
// features.
func (s *Service) Visible(by actor.Actor) (cond string, args []any) { return s.seen(by) }

// seen returns the SQL condition that is equivalent to visible.
func (s *Service) seen(by actor.Actor) (string, []any) {
	open := []string{`s.visibility = 'public'`}
	var openArgs []any
	if !by.Anonymous() {
		if !by.External {
			open = append(open, `s.visibility = 'internal'`)
		}
		open, openArgs = append(open, `s.author_id = ?`), append(openArgs, by.ID)
	}
	alone := strings.Join(open, " OR ")
	aloneArgs := openArgs
	if by.Admin || by.Auditor {
		alone, aloneArgs = "1 = 1", nil
	}
	readable, readArgs := s.Projects.Readable(by, project.SnippetPart)
	member, memberArgs := s.Projects.Readable(by, project.MemberSnippetPart)
	cond := `s.project_id IS NULL AND (` + alone + `)
		OR s.project_id IN (SELECT p.id FROM projects p WHERE ` + readable + `) AND (` + strings.Join(open, " OR ") + `)
		OR s.project_id IN (SELECT p.id FROM projects p WHERE ` + member + `)`
	args := append([]any{}, aloneArgs...)
	args = append(append(args, readArgs...), openArgs...)
	return cond, append(args, memberArgs...)
}
