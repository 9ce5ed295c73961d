package rows

import (
	"context"
	"encoding/json"
	"time"

	"svc/internal/db"
	"svc/internal/transfer/archive"
)

// note is a note with what its row does not name.
type note struct {
	id, on             int64
	author, resolvedBy *int64
	resolved           *time.Time
	archive.NoteRow
}

// Notes writes the notes on issues, merge requests and snippets, whose numbers in the
// file are given by their IDs. Mentions in other projects are left out: not everyone
// who reads the file may know of those.
func (s *Source) Notes(ctx context.Context, snippets map[int64]int64, add Add) error {
	for _, kind := range s.kinds() {
		err := s.walk(ctx, kind, func(list []object) error {
			ids := make([]int64, len(list))
			for n, o := range list {
				ids[n] = o.id
			}
			noted, err := group(ctx, s.DB, ids, one[int64],
				`SELECT DISTINCT n.noteable_id, 1 FROM notes n WHERE n.noteable_type = '`+kind.name+`' AND n.noteable_id`, `1`)
			if err != nil {
				return err
			}
			for _, o := range list {
				if len(noted[o.id]) == 0 {
					continue
				}
				if err := s.notesOn(ctx, kind, o, add); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(snippets) == 0 {
		return nil
	}
	for last := int64(0); ; {
		list, err := s.findNotes(ctx, `n.project_id = ? AND n.noteable_type = 'Snippet' AND n.id > ? ORDER BY n.id`, s.ProjectID, last)
		if err != nil || len(list) == 0 {
			return err
		}
		var there []*note
		for _, n := range list {
			last = n.id
			if n.Snippet = snippets[n.on]; n.Snippet != 0 {
				there = append(there, n)
			}
		}
		if err := s.addNotes(ctx, there, add); err != nil {
			return err
		}
	}
}

// notesOn writes the notes on an issue or merge request.
func (s *Source) notesOn(ctx context.Context, kind kind, o object, add Add) error {
	for last := int64(0); ; {
		list, err := s.findNotes(ctx, `n.noteable_type = ? AND n.noteable_id = ? AND n.id > ? ORDER BY n.id`, kind.name, o.id, last)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, n := range list {
			last = n.id
			*kind.of(&n.Noteable) = o.iid
		}
		if err := s.addNotes(ctx, list, add); err != nil {
			return err
		}
	}
}

// kind is the issues or the merge requests of the project.
type kind struct {
	name, table string
	most        int64 // the highest number of the export
	of          func(*archive.Noteable) *int64
}

func (s *Source) kinds() []kind {
	return []kind{
		{"Issue", "issues", s.issues, func(on *archive.Noteable) *int64 { return &on.Issue }},
		{"MergeRequest", "merge_requests", s.merges, func(on *archive.Noteable) *int64 { return &on.MergeRequest }},
	}
}

// object is an issue or merge request.
type object struct{ id, iid int64 }

// walk calls f with the issues or merge requests of the project, some at a time, by
// number.
func (s *Source) walk(ctx context.Context, k kind, f func([]object) error) error {
	for after := int64(0); ; {
		list, err := db.All(ctx, s.DB, func(sc db.Scanner) (o object, err error) {
			err = sc.Scan(&o.id, &o.iid)
			return o, err
		}, `SELECT id, iid FROM `+k.table+` WHERE project_id = ? AND iid > ? AND iid <= ? ORDER BY iid LIMIT ?`, s.ProjectID, after, k.most, batch)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := f(list); err != nil {
			return err
		}
		after = list[len(list)-1].iid
	}
}

func (s *Source) findNotes(ctx context.Context, where string, args ...any) ([]*note, error) {
	return db.All(ctx, s.DB, func(sc db.Scanner) (*note, error) {
		var n note
		var position, current string
		err := sc.Scan(&n.id, &n.on, &n.Discussion, &n.Type, &n.System, &n.Internal, &n.Body, &n.author, &position, &current, &n.CommitSHA,
			db.NullTime(&n.resolved), &n.resolvedBy, db.Time(&n.CreatedAt), db.Time(&n.UpdatedAt))
		n.CreatedAt, n.UpdatedAt, n.ResolvedAt = n.CreatedAt.UTC(), n.UpdatedAt.UTC(), utcOrNull(n.resolved)
		if position != "" {
			n.Position = json.RawMessage(position)
		}
		if current != "" {
			n.CurrentPosition = json.RawMessage(current)
		}
		return &n, err
	}, `SELECT n.id, n.noteable_id, n.discussion_id, n.type, n.system, n.internal, n.body, n.author_id,
			n.position, n.current_position, n.commit_sha, n.resolved_at, n.resolved_by_id, n.created_at, n.updated_at
		FROM notes n WHERE `+where+` LIMIT ?`, append(args, batch)...) // a note has up to 1 MiB
}

func (s *Source) addNotes(ctx context.Context, list []*note, add Add) error {
	ids := make([]int64, len(list))
	for i, n := range list {
		ids[i] = n.id
	}
	awards, err := s.awards(ctx, "note_id", ids)
	if err != nil {
		return err
	}
	suggestions, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r archive.SuggestionRow, err error) {
		var at *time.Time
		err = sc.Scan(of, &r.FromLine, &r.ToLine, &r.FromContent, &r.ToContent, &r.CommitSHA, db.NullTime(&at))
		r.AppliedAt = utcOrNull(at)
		return r, err
	}, `SELECT g.note_id, g.from_line, g.to_line, g.from_content, g.to_content, g.commit_sha, g.applied_at FROM suggestions g WHERE g.note_id`, `g.note_id, g.number`)
	if err != nil {
		return err
	}
	sources, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r *archive.SourceRow, err error) {
		r = &archive.SourceRow{}
		var project int64
		err = sc.Scan(of, &project, &r.Issue, &r.MergeRequest, &r.Commit)
		if project != s.ProjectID {
			r = nil
		}
		return r, err
	}, `SELECT x.note_id, x.source_project_id, COALESCE(i.iid, 0), COALESCE(m.iid, 0), x.source_sha FROM cross_references x
		LEFT JOIN issues i ON x.source_type = 'Issue' AND i.id = x.source_id LEFT JOIN merge_requests m ON x.source_type = 'MergeRequest' AND m.id = x.source_id
		WHERE x.note_id`, `x.note_id`)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.System == crossReference {
			found := sources[n.id]
			if len(found) == 0 || found[0] == nil || *found[0] == (archive.SourceRow{}) {
				continue
			}
			n.Source = found[0]
		}
		n.Author, n.ResolvedBy = s.Person(n.author), s.Person(n.resolvedBy)
		n.AwardEmoji, n.Suggestions = awards[n.id], suggestions[n.id]
		if err := add(n.NoteRow); err != nil {
			return err
		}
	}
	return nil
}

// crossReference is the kind of system notes about mentions.
const crossReference = "cross_reference"

// Events writes the resource events of issues and merge requests.
func (s *Source) Events(ctx context.Context, add Add) error {
	for _, kind := range s.kinds() {
		err := s.walk(ctx, kind, func(list []object) error {
			ids := make([]int64, len(list))
			for n, o := range list {
				ids[n] = o.id
			}
			events, err := group(ctx, s.DB, ids, func(sc db.Scanner, of *int64) (r archive.EventRow, err error) {
				var user *int64
				var at time.Time
				err = sc.Scan(of, &r.Kind, &r.Action, &user, &r.Label, &r.Milestone, &r.Weight, db.Time(&at))
				r.User, r.CreatedAt = s.Person(user), at.UTC()
				return r, err
			}, `SELECT e.noteable_id, e.kind, e.action, e.user_id, COALESCE(l.name, ''), COALESCE(m.title, ''), e.weight, e.created_at
				FROM resource_events e LEFT JOIN labels l ON l.id = e.label_id LEFT JOIN milestones m ON m.id = e.milestone_id
				WHERE e.noteable_type = '`+kind.name+`' AND e.noteable_id`, `e.noteable_id, e.id`)
			if err != nil {
				return err
			}
			for _, o := range list {
				for _, r := range events[o.id] {
					*kind.of(&r.Noteable) = o.iid
					if err := add(r); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
