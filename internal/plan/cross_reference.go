package plan

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/markup"
	"svc/internal/project"
)

// crossReference is the System value of notes about mentions of the target.
const crossReference = "cross_reference"

// maxCrossReferences is the maximum number of cross-references that one text
// creates.
const maxCrossReferences = 20

// Source is the origin of a cross-reference: an issue, a merge request or a
// commit.
type Source struct {
	Kind Kind // CommitKind for a commit
	ID   int64
	IID  int64
	SHA  string
	In   *project.Project
}

// CommitKind is the kind of a commit as the source of cross-references.
const CommitKind Kind = "Commit"

// name returns the reference to the source in a note of a project.
func (from Source) name(projectID int64) string {
	path := ""
	if from.In.ID != projectID {
		path = from.In.FullPath
	}
	switch from.Kind {
	case MergeKind:
		return "merge request " + path + "!" + strconv.FormatInt(from.IID, 10)
	case CommitKind:
		if path != "" {
			path += "@"
		}
		return "commit " + path + from.SHA
	}
	return "issue " + path + "#" + strconv.FormatInt(from.IID, 10)
}

// Mentioned is an issue or merge request that a text mentions.
type Mentioned struct {
	Target
	IID, ProjectID int64
}

// Mentioned returns the issues and merge requests that a text mentions and its
// author can see. It parses Markdown, so it must not be called in a transaction.
func (s *Service) Mentioned(ctx context.Context, by actor.Actor, proj *project.Project, text string) ([]Mentioned, error) {
	if !strings.ContainsAny(text, "#!") || len(text) > MaxText {
		return nil, nil
	}
	refs, err := markup.References(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("references of a text: %w", err)
	}
	r := reader{s: s, ctx: ctx, by: by, known: map[string]*project.Project{"": proj}}
	var list []Mentioned
	for _, ref := range refs {
		if ref.Kind != markup.Issue && ref.Kind != markup.MergeRequest || len(list) == maxCrossReferences {
			continue
		}
		m, err := r.mentioned(ref)
		if hiddenError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m != nil {
			list = append(list, *m)
		}
	}
	return list, nil
}

func (r *reader) mentioned(ref markup.Reference) (*Mentioned, error) {
	proj, err := r.project(ref.Project)
	if err != nil || proj == nil {
		return nil, err
	}
	iid, err := strconv.ParseInt(ref.Name, 10, 64)
	if err != nil {
		return nil, nil
	}
	if ref.Kind == markup.Issue {
		_, i, err := r.s.issue(r.ctx, r.by, project.RefTo(proj.ID), iid)
		if err != nil {
			return nil, err
		}
		return &Mentioned{i.Target(), iid, proj.ID}, nil
	}
	if !proj.MayRead(r.by, project.MergePart) {
		return nil, nil
	}
	m, err := findMetadata(r.ctx, r.s.DB, MergeKind, proj.ID, iid)
	if err != nil {
		return nil, db.NotFound(err, "Merge Request")
	}
	return &Mentioned{m.Target(), iid, proj.ID}, nil
}

// CrossReference adds a system note to each mentioned issue and merge request,
// unless the source has mentioned it before. It runs in the transaction that saves
// the text.
func (s *Service) CrossReference(ctx context.Context, tx *db.Tx, by actor.Actor, from Source, list []Mentioned) error {
	if by.ID <= 0 {
		return nil
	}
	for _, m := range list {
		if m.Kind == from.Kind && m.ID == from.ID {
			continue
		}
		id, err := insertCrossReference(ctx, tx, from, m)
		if err != nil {
			return err
		}
		if id == 0 {
			continue // the note exists already
		}
		now := s.Now()
		n := &Note{
			ProjectID: &m.ProjectID, On: m.Target, OnIID: m.IID, Body: "mentioned in " + from.name(m.ProjectID), AuthorID: by.ID, System: crossReference,
			Discussion: newDiscussion(), CreatedAt: now, UpdatedAt: now,
		}
		if err := insertNote(ctx, tx, n); err != nil {
			return err
		}
		if err := saveCrossReference(ctx, tx, id, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// source returns an issue or merge request as a source.
func (on Noteable) source() Source { return Source{Kind: on.Kind, ID: on.ID, IID: on.IID, In: on.In} }

// readable returns the target with a condition that hides cross-references from
// sources that the actor cannot see.
func (s *Service) readable(on Noteable) Noteable {
	if on.Kind == IssueKind || on.Kind == MergeKind {
		on.crossed = s.visibleNotes(on.by)
	}
	return on
}
