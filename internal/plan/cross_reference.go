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

// crossReference is the System of notes that tell where the target is mentioned.
const crossReference = "cross_reference"

// maxCrossReferences is how many issues and merge requests of a text are noted.
const maxCrossReferences = 20

// Source is what mentions issues and merge requests: one of them, or a commit.
type Source struct {
	Kind Kind // CommitKind for a commit
	ID   int64
	IID  int64
	SHA  string
	In   *project.Project
}

// CommitKind is the kind of a commit as a source of cross references.
const CommitKind Kind = "Commit"

// name is the source in a note of a project.
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

// Mentioned returns the issues and merge requests that a text of a project
// mentions and its author can see. It renders the text, so it is not called in a
// transaction.
func (s *Service) Mentioned(ctx context.Context, by actor.Actor, in *project.Project, text string) ([]Mentioned, error) {
	if !strings.ContainsAny(text, "#!") || len(text) > MaxText {
		return nil, nil
	}
	refs, err := markup.References(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("references of a text: %w", err)
	}
	r := reader{s: s, ctx: ctx, by: by, known: map[string]*project.Project{"": in}}
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
	in, err := r.project(ref.Project)
	if err != nil || in == nil {
		return nil, err
	}
	iid, err := strconv.ParseInt(ref.Name, 10, 64)
	if err != nil {
		return nil, nil
	}
	if ref.Kind == markup.Issue {
		_, i, err := r.s.issue(r.ctx, r.by, project.RefTo(in.ID), iid)
		if err != nil {
			return nil, err
		}
		return &Mentioned{i.Target(), iid, in.ID}, nil
	}
	if !in.MayRead(r.by, project.MergePart) {
		return nil, nil
	}
	m, err := findMetadata(r.ctx, r.s.DB, MergeKind, in.ID, iid)
	if err != nil {
		return nil, db.NotFound(err, "Merge Request")
	}
	return &Mentioned{m.Target(), iid, in.ID}, nil
}

// CrossReference adds system notes to the issues and merge requests that a text of
// the source mentions, once for each source, in the transaction of the text.
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
			continue // it is noted already
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

// readable returns the target with the condition on the cross references that the
// actor can see: those whose source they can.
func (s *Service) readable(on Noteable) Noteable {
	if on.Kind == IssueKind || on.Kind == MergeKind {
		on.crossed = s.sourcesSeen(on.by)
	}
	return on
}
