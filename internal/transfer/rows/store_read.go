package rows

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"svc/internal/db"
	"svc/internal/repo"
	"svc/internal/transfer/archive"
)

// Add writes a row to the file.
type Add func(row any) error

// pair is a value that belongs to a row.
type pair[T any] struct {
	of    int64
	value T
}

// group reads the values that belong to rows, by the IDs of the rows. The query ends
// with the condition on the IDs, and order follows them.
func group[T any](ctx context.Context, q db.Q, ids []int64, scan func(s db.Scanner, of *int64) (T, error), query, order string) (map[int64][]T, error) {
	found := map[int64][]T{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (p pair[T], err error) {
		p.value, err = scan(s, &p.of)
		return p, err
	}, query+` IN `+db.In(len(ids))+` ORDER BY `+order, db.Any(ids)...)
	for _, p := range list {
		found[p.of] = append(found[p.of], p.value)
	}
	return found, err
}

// one scans a value of one column.
func one[T any](s db.Scanner, of *int64) (v T, err error) {
	err = s.Scan(of, &v)
	return v, err
}

// Ghost returns the ID of the ghost user.
func Ghost(ctx context.Context, q db.Q) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM users WHERE kind = 'ghost' ORDER BY id LIMIT 1`).Scan(&id)
	return id, err
}

// Name is how a user is called.
type Name struct{ Username, Name string }

// Names returns how users are called, also bot users.
func Names(ctx context.Context, q db.Q, ids []int64) (map[int64]Name, error) {
	found, err := group(ctx, q, ids, func(s db.Scanner, of *int64) (n Name, err error) {
		err = s.Scan(of, &n.Username, &n.Name)
		return n, err
	}, `SELECT u.id, u.username, u.name FROM users u WHERE u.deleted_at IS NULL AND u.id`, `u.id`)
	names := map[int64]Name{}
	for id, list := range found {
		names[id] = list[0]
	}
	return names, err
}

// Count returns about how many rows the export will have, and remembers which issues
// and merge requests there are.
func (s *Source) Count(ctx context.Context) (n int64, err error) {
	err = s.DB.QueryRowContext(ctx, `
		SELECT COALESCE((SELECT max(iid) FROM issues WHERE project_id = ?), 0), COALESCE((SELECT max(iid) FROM merge_requests WHERE project_id = ?), 0),
			(SELECT count(*) FROM issues WHERE project_id = ?) + (SELECT count(*) FROM merge_requests WHERE project_id = ?) + (SELECT count(*) FROM notes WHERE project_id = ?)
			+ (SELECT count(*) FROM resource_events WHERE project_id = ?)`,
		s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID).Scan(&s.issues, &s.merges, &n)
	return n, err
}

// Topics returns the topics of the project, in their order.
func (s *Source) Topics(ctx context.Context) ([]string, error) {
	return db.All(ctx, s.DB, db.Value[string], `SELECT name FROM project_topics WHERE project_id = ? ORDER BY position`, s.ProjectID)
}

// Uploads writes the rows of the files of the project.
func (s *Source) Uploads(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.UploadRow, err error) {
		var author *int64
		var at time.Time
		err = sc.Scan(&r.Secret, &r.Name, &r.Size, &author, db.Time(&at))
		r.Author, r.CreatedAt = s.Person(author), at.UTC()
		return r, err
	}, func(r archive.UploadRow) error { return add(r) },
		`SELECT secret, name, size, author_id, created_at FROM uploads WHERE project_id = ? ORDER BY secret`, s.ProjectID)
}

// LFSObject is an LFS object of the project.
type LFSObject struct {
	OID  string
	Size int64
}

// LFSObjects returns a batch of the LFS objects of the project, after one of them.
func (s *Source) LFSObjects(ctx context.Context, after string) ([]LFSObject, error) {
	return db.All(ctx, s.DB, func(sc db.Scanner) (o LFSObject, err error) {
		err = sc.Scan(&o.OID, &o.Size)
		return o, err
	}, `SELECT o.oid, o.size FROM lfs_project_objects p JOIN lfs_objects o ON o.id = p.object_id WHERE p.project_id = ? AND o.oid > ? ORDER BY o.oid LIMIT ?`, s.ProjectID, after, batch)
}

// Labels writes the labels of the project, and those of groups that it uses.
func (s *Source) Labels(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.ProjectLabelRow, err error) {
		var made, changed time.Time
		err = sc.Scan(&r.Name, &r.Color, &r.Description, &r.Priority, &r.Inherited, db.Time(&made), db.Time(&changed))
		r.CreatedAt, r.UpdatedAt = made.UTC(), changed.UTC()
		return r, err
	}, func(r archive.ProjectLabelRow) error { return add(r) }, `
		SELECT l.name, l.color, l.description, o.priority, l.project_id IS NULL, l.created_at, l.updated_at
		FROM labels l LEFT JOIN label_priorities o ON o.label_id = l.id AND o.project_id = ?
		WHERE l.project_id = ? OR l.id IN (
			SELECT x.label_id FROM issue_labels x JOIN issues i ON i.id = x.issue_id WHERE i.project_id = ?
			UNION SELECT x.label_id FROM merge_request_labels x JOIN merge_requests i ON i.id = x.merge_request_id WHERE i.project_id = ?
			UNION SELECT x.label_id FROM board_lists x JOIN boards b ON b.id = x.board_id WHERE b.project_id = ? AND x.label_id IS NOT NULL
			UNION SELECT x.label_id FROM resource_events x WHERE x.project_id = ? AND x.label_id IS NOT NULL)
		ORDER BY CASE WHEN l.project_id IS NULL THEN 1 ELSE 0 END, l.name, l.id`,
		s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID)
}

// Milestones writes the milestones of the project, and those of groups that it uses.
func (s *Source) Milestones(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.ProjectMilestoneRow, err error) {
		var made, changed time.Time
		err = sc.Scan(&r.IID, &r.Title, &r.Description, &r.State, &r.StartDate, &r.DueDate, &r.Inherited, db.Time(&made), db.Time(&changed))
		r.CreatedAt, r.UpdatedAt = made.UTC(), changed.UTC()
		return r, err
	}, func(r archive.ProjectMilestoneRow) error { return add(r) }, `
		SELECT m.iid, m.title, m.description, m.state, COALESCE(m.start_date, ''), COALESCE(m.due_date, ''), m.project_id IS NULL, m.created_at, m.updated_at
		FROM milestones m WHERE m.project_id = ? OR m.id IN (
			SELECT i.milestone_id FROM issues i WHERE i.project_id = ? AND i.milestone_id IS NOT NULL
			UNION SELECT i.milestone_id FROM merge_requests i WHERE i.project_id = ? AND i.milestone_id IS NOT NULL
			UNION SELECT b.milestone_id FROM boards b WHERE b.project_id = ? AND b.milestone_id IS NOT NULL
			UNION SELECT x.milestone_id FROM board_lists x JOIN boards b ON b.id = x.board_id WHERE b.project_id = ? AND x.milestone_id IS NOT NULL
			UNION SELECT x.milestone_id FROM release_milestones x JOIN releases r ON r.id = x.release_id WHERE r.project_id = ?
			UNION SELECT x.milestone_id FROM resource_events x WHERE x.project_id = ? AND x.milestone_id IS NOT NULL)
		ORDER BY CASE WHEN m.project_id IS NULL THEN 1 ELSE 0 END, m.iid, m.title, m.id`,
		s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID, s.ProjectID)
}

// ProtectedRefs writes the protected branches and tags, with the entries for roles and
// users.
func (s *Source) ProtectedRefs(ctx context.Context, add Add) error {
	type protected struct {
		id int64
		archive.ProtectedRow
	}
	list, err := db.All(ctx, s.DB, func(sc db.Scanner) (r protected, err error) {
		var at time.Time
		err = sc.Scan(&r.id, &r.Kind, &r.Name, &r.AllowForcePush, &r.CodeOwnerApproval, db.Time(&at))
		r.CreatedAt = at.UTC()
		return r, err
	}, `SELECT id, kind, name, allow_force_push, code_owner_approval, created_at FROM protected_refs WHERE project_id = ? ORDER BY kind, name`, s.ProjectID)
	if err != nil {
		return err
	}
	for _, r := range list {
		r.Access, err = db.All(ctx, s.DB, func(sc db.Scanner) (a archive.AccessRow, err error) {
			var user *int64
			err = sc.Scan(&a.Action, &a.AccessLevel, &user)
			a.User = s.Person(user)
			return a, err
		}, `SELECT action, access_level, user_id FROM protected_ref_access WHERE protected_ref_id = ? AND group_id IS NULL AND deploy_key_id IS NULL ORDER BY id`, r.id)
		if err != nil {
			return err
		}
		// Groups and deploy keys are left out. An action without entries would be for
		// Maintainers, so one that only they may do is for no one.
		actions, err := db.All(ctx, s.DB, db.Value[string], `SELECT DISTINCT action FROM protected_ref_access WHERE protected_ref_id = ? AND action <> ? ORDER BY action`,
			r.id, string(repo.Unprotect))
		if err != nil {
			return err
		}
		for _, action := range actions {
			if !slices.ContainsFunc(r.Access, func(a archive.AccessRow) bool { return a.Action == action }) {
				r.Access = append(r.Access, archive.AccessRow{Action: action})
			}
		}
		if err := add(r.ProtectedRow); err != nil {
			return err
		}
	}
	return nil
}

// related is what issues and merge requests have in other tables.
type related struct {
	labels    map[int64][]string
	assignees map[int64][]*int64
	timelogs  map[int64][]archive.TimelogRow
	awards    map[int64][]archive.AwardRow
}

// relate reads what issues or merge requests have: table is issue or merge_request,
// kind is Issue or MergeRequest.
func (s *Source) relate(ctx context.Context, table, kind string, ids []int64) (r related, err error) {
	column := table + "_id"
	if r.labels, err = group(ctx, s.DB, ids, one[string],
		`SELECT x.`+column+`, l.name FROM `+table+`_labels x JOIN labels l ON l.id = x.label_id WHERE x.`+column, `l.name, l.id`); err != nil {
		return r, err
	}
	if r.assignees, err = group(ctx, s.DB, ids, one[*int64],
		`SELECT x.`+column+`, x.user_id FROM `+table+`_assignees x JOIN users u ON u.id = x.user_id WHERE x.`+column, `u.username`); err != nil {
		return r, err
	}
	if r.timelogs, err = group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (t archive.TimelogRow, err error) {
		var user *int64
		var spent, made time.Time
		err = sc.Scan(of, &user, &t.Seconds, db.Time(&spent), &t.Summary, db.Time(&made))
		t.User, t.SpentAt, t.CreatedAt = s.Person(user), spent.UTC(), made.UTC()
		return t, err
	}, `SELECT x.noteable_id, x.user_id, x.seconds, x.spent_at, x.summary, x.created_at FROM timelogs x WHERE x.noteable_type = '`+kind+`' AND x.noteable_id`, `x.id`); err != nil {
		return r, err
	}
	r.awards, err = s.awards(ctx, column, ids)
	return r, err
}

func (s *Source) awards(ctx context.Context, column string, ids []int64) (map[int64][]archive.AwardRow, error) {
	return group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (a archive.AwardRow, err error) {
		var user *int64
		var at time.Time
		err = sc.Scan(of, &a.Name, &user, db.Time(&at))
		a.User, a.CreatedAt = s.Person(user), at.UTC()
		return a, err
	}, `SELECT a.`+column+`, a.name, a.user_id, a.created_at FROM award_emoji a WHERE a.`+column, `a.id`)
}

// common sets what issues and merge requests share.
func (s *Source) common(i *archive.IssuableRow, id int64, author, closedBy *int64, closed *time.Time, r related) {
	i.Author, i.ClosedBy = s.Person(author), s.Person(closedBy)
	i.CreatedAt, i.UpdatedAt, i.ClosedAt = i.CreatedAt.UTC(), i.UpdatedAt.UTC(), utcOrNull(closed)
	i.Labels, i.Timelogs, i.AwardEmoji = r.labels[id], r.timelogs[id], r.awards[id]
	i.Assignees = s.persons(r.assignees[id])
	if i.Labels == nil {
		i.Labels = []string{}
	}
}

// Issues writes the issues, by number.
func (s *Source) Issues(ctx context.Context, add Add) error {
	type issue struct {
		id               int64
		author, closedBy *int64
		closed           *time.Time
		archive.IssueRow
	}
	for after := int64(0); ; {
		list, err := db.All(ctx, s.DB, func(sc db.Scanner) (r issue, err error) {
			err = sc.Scan(&r.id, &r.IID, &r.Title, &r.Description, &r.State, &r.DiscussionLocked, &r.author, &r.Milestone, &r.TimeEstimate, &r.TimeSpent,
				db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt), db.NullTime(&r.closed), &r.closedBy, &r.Type, &r.Confidential, &r.DueDate, &r.Weight, &r.RelativePosition)
			return r, err
		}, `SELECT i.id, i.iid, i.title, i.description, i.state, i.locked, i.author_id, COALESCE(m.title, ''), i.time_estimate, i.time_spent,
				i.created_at, i.updated_at, i.closed_at, i.closed_by_id, i.type, i.confidential, COALESCE(i.due_date, ''), i.weight, i.position
			FROM issues i LEFT JOIN milestones m ON m.id = i.milestone_id WHERE i.project_id = ? AND i.iid > ? AND i.iid <= ? ORDER BY i.iid LIMIT ?`,
			s.ProjectID, after, s.issues, batch)
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]int64, len(list))
		for n, i := range list {
			ids[n] = i.id
		}
		r, err := s.relate(ctx, "issue", "Issue", ids)
		if err != nil {
			return err
		}
		for _, i := range list {
			s.common(&i.IssuableRow, i.id, i.author, i.closedBy, i.closed, r)
			if err := add(i.IssueRow); err != nil {
				return err
			}
			after = i.IID
		}
	}
}

// IssueLinks writes the links between issues of the project.
func (s *Source) IssueLinks(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.IssueLinkRow, err error) {
		var made, changed time.Time
		err = sc.Scan(&r.Source, &r.Target, &r.LinkType, db.Time(&made), db.Time(&changed))
		r.CreatedAt, r.UpdatedAt = made.UTC(), changed.UTC()
		return r, err
	}, func(r archive.IssueLinkRow) error { return add(r) }, `
		SELECT a.iid, b.iid, l.kind, l.created_at, l.updated_at FROM issues a JOIN issue_links l ON l.source_id = a.id JOIN issues b ON b.id = l.target_id
		WHERE a.project_id = ? AND b.project_id = ? AND a.iid <= ? AND b.iid <= ? ORDER BY a.iid, b.iid`, s.ProjectID, s.ProjectID, s.issues, s.issues)
}

// Releases writes the releases, by tag.
func (s *Source) Releases(ctx context.Context, add Add) error {
	type release struct {
		id     int64
		author *int64
		archive.ReleaseRow
	}
	for after := ""; ; {
		list, err := db.All(ctx, s.DB, func(sc db.Scanner) (r release, err error) {
			err = sc.Scan(&r.id, &r.Tag, &r.Name, &r.SHA, &r.Description, &r.author, db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt), db.Time(&r.ReleasedAt))
			r.CreatedAt, r.UpdatedAt, r.ReleasedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC(), r.ReleasedAt.UTC()
			return r, err
		}, `SELECT id, tag, name, sha, description, author_id, created_at, updated_at, released_at FROM releases WHERE project_id = ? AND tag > ? ORDER BY tag LIMIT ?`,
			s.ProjectID, after, batch)
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]int64, len(list))
		for n, r := range list {
			ids[n] = r.id
		}
		links, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (l archive.ReleaseLinkRow, err error) {
			var at time.Time
			err = sc.Scan(of, &l.Name, &l.URL, &l.Filepath, &l.LinkType, db.Time(&at))
			l.CreatedAt = at.UTC()
			return l, err
		}, `SELECT l.release_id, l.name, l.url, l.filepath, l.link_type, l.created_at FROM release_links l WHERE l.release_id`, `l.id`)
		if err != nil {
			return err
		}
		milestones, err := group(ctx, s.DB, ids, one[string],
			`SELECT x.release_id, m.title FROM release_milestones x JOIN milestones m ON m.id = x.milestone_id WHERE x.release_id`, `m.title`)
		if err != nil {
			return err
		}
		for _, r := range list {
			r.Author, r.Links, r.Milestones = s.Person(r.author), links[r.id], milestones[r.id]
			if err := add(r.ReleaseRow); err != nil {
				return err
			}
			after = r.Tag
		}
	}
}

// Snippet is a snippet of the project.
type Snippet struct {
	ID     int64
	author *int64
	archive.SnippetRow
}

// Snippets returns the snippets of the project, in the order in which they were
// created.
func (s *Source) Snippets(ctx context.Context) ([]*Snippet, error) {
	list, err := db.All(ctx, s.DB, func(sc db.Scanner) (*Snippet, error) {
		var r Snippet
		var files string
		err := sc.Scan(&r.ID, &r.Title, &r.Description, &r.Visibility, &files, &r.author, db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt))
		if err == nil {
			err = json.Unmarshal([]byte(files), &r.Files)
		}
		r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
		return &r, err
	}, `SELECT id, title, description, visibility, files, author_id, created_at, updated_at FROM snippets WHERE project_id = ? AND files <> '[]' ORDER BY id LIMIT 100000`, s.ProjectID)
	if err != nil {
		return nil, err
	}
	for from := 0; from < len(list); from += batch {
		part := list[from:min(len(list), from+batch)]
		ids := make([]int64, len(part))
		for n, r := range part {
			ids[n] = r.ID
		}
		awards, err := s.awards(ctx, "snippet_id", ids)
		if err != nil {
			return nil, err
		}
		for _, r := range part {
			r.Author, r.AwardEmoji = s.Person(r.author), awards[r.ID]
		}
	}
	return list, nil
}

// Comments writes the comments on commits.
func (s *Source) Comments(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.CommentRow, err error) {
		var author *int64
		var made, changed time.Time
		err = sc.Scan(&r.SHA, &r.Note, &author, &r.Discussion, &r.Thread, &r.Path, &r.OldPath, &r.Line, &r.LineType, db.Time(&made), db.Time(&changed))
		r.Author, r.CreatedAt, r.UpdatedAt = s.Person(author), made.UTC(), changed.UTC()
		return r, err
	}, func(r archive.CommentRow) error { return add(r) }, `
		SELECT sha, note, author_id, discussion_id, thread, path, old_path, line, line_type, created_at, updated_at FROM commit_comments WHERE project_id = ? ORDER BY id`, s.ProjectID)
}

// Schedules writes the pipeline schedules without their variables.
func (s *Source) Schedules(ctx context.Context, add Add) error {
	return db.Each(ctx, s.DB, func(sc db.Scanner) (r archive.ScheduleRow, err error) {
		var made, changed time.Time
		err = sc.Scan(&r.Description, &r.Ref, &r.Cron, &r.Timezone, db.Time(&made), db.Time(&changed))
		r.CreatedAt, r.UpdatedAt = made.UTC(), changed.UTC()
		return r, err
	}, func(r archive.ScheduleRow) error { return add(r) },
		`SELECT description, ref, cron, cron_timezone, created_at, updated_at FROM pipeline_schedules WHERE project_id = ? ORDER BY id`, s.ProjectID)
}

// ApprovalRules writes the approval rules of the project, without groups.
func (s *Source) ApprovalRules(ctx context.Context, add Add) error {
	type rule struct {
		id int64
		archive.ApprovalRuleRow
	}
	list, err := db.All(ctx, s.DB, func(sc db.Scanner) (r rule, err error) {
		err = sc.Scan(&r.id, &r.Name, &r.RuleType, &r.ApprovalsRequired, &r.AllProtected, db.Time(&r.CreatedAt))
		r.CreatedAt = r.CreatedAt.UTC()
		return r, err
	}, `SELECT id, name, type, approvals_required, all_protected, created_at FROM approval_rules
		WHERE project_id = ? AND merge_request_id IS NULL AND type IN ('regular', 'any_approver') ORDER BY id`, s.ProjectID)
	if err != nil {
		return err
	}
	for _, r := range list {
		users, err := db.All(ctx, s.DB, db.Value[*int64], `
			SELECT x.user_id FROM approval_rule_users x JOIN users u ON u.id = x.user_id WHERE x.approval_rule_id = ? ORDER BY u.username`, r.id)
		if err != nil {
			return err
		}
		r.Users = s.persons(users)
		r.ProtectedBranches, err = db.All(ctx, s.DB, db.Value[string], `
			SELECT p.name FROM approval_rule_branches x JOIN protected_refs p ON p.id = x.protected_ref_id WHERE x.approval_rule_id = ? AND p.project_id = ? ORDER BY p.name`, r.id, s.ProjectID)
		if err != nil {
			return err
		}
		if err := add(r.ApprovalRuleRow); err != nil {
			return err
		}
	}
	return nil
}
