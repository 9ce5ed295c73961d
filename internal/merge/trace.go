package merge

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
)

// maxMoved is the maximum number of diff notes, newest first, whose positions are
// saved after a push.
const maxMoved = 1000

// Trace returns the positions of diff notes of other versions in the version of c;
// see diffnote.Trace.
func (s *Service) Trace(ctx context.Context, c *Contents, list []*diffnote.Position) ([]*diffnote.Position, error) {
	compare := func(ctx context.Context, from, to git.OID, o git.DiffOptions) (*git.Diff, error) {
		return s.Repos.DiffOf(ctx, c.Project, from, to, o)
	}
	v := diffnote.Version{Base: c.Version.Base, Start: c.Version.Start, Head: c.Version.Head, Files: c.Diff.Files}
	traced, err := diffnote.Trace(ctx, v, compare, list)
	if err != nil {
		return nil, fmt.Errorf("trace notes of merge request %d: %w", c.Request.ID, err)
	}
	return traced, nil
}

// moveNotes saves the positions of the diff notes of a merge request in its newest
// version, which API clients read with the notes. Each push moves them from the
// previous version, so that one comparison suffices for most notes. A note whose
// line no longer exists keeps the position in the last version that had it.
// NotFound.
func (s *Service) moveNotes(ctx context.Context, id int64) error {
	m, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	v, err := newestVersion(ctx, s.DB, id)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	replaced, err := headsBefore(ctx, s.DB, v)
	if err != nil {
		return fmt.Errorf("versions of merge request %d: %w", id, err)
	}
	if err := s.moveNotesTo(ctx, m, v, replaced); err != nil {
		return err
	}
	if len(replaced) == 0 {
		return nil
	}
	if err := saveNotesMoved(ctx, s.DB, v); err != nil {
		return fmt.Errorf("moved notes of merge request %d: %w", id, err)
	}
	return nil
}

// moveNotesTo moves the diff notes to v, the newest version. replaced are the heads
// that were replaced since notes were last moved; several pushes may have been
// collected.
func (s *Service) moveNotesTo(ctx context.Context, m *MergeRequest, v *Version, replaced []string) error {
	found, err := s.Plan.DiffNotes(ctx, m.Target(), maxMoved)
	if err != nil {
		return err
	}
	var notes []*plan.Note
	var from []*diffnote.Position
	for _, n := range found {
		if at := n.At(); at.HeadSHA != v.Head || at.BaseSHA != v.Base {
			notes, from = append(notes, n), append(from, at)
		}
	}
	if len(notes) == 0 {
		return nil
	}
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil {
		return err
	}
	if in == nil {
		return errs.NotFound("Merge Request")
	}
	d, err := s.Repos.DiffOf(ctx, in, git.OID(v.Base), git.OID(v.Head), git.DiffOptions{})
	if err != nil {
		return err
	}
	traced, err := s.Trace(ctx, &Contents{Project: in, Request: m, Version: v, Diff: d}, from)
	if err != nil {
		return err
	}
	moved := map[int64]*diffnote.Position{}
	var outdated []string // threads
	for i, n := range notes {
		switch {
		case traced[i] != nil:
			moved[n.ID] = traced[i]
		case slices.Contains(replaced, from[i].HeadSHA) && n.Resolvable() && n.ResolvedAt == nil:
			outdated = append(outdated, n.Discussion)
		}
	}
	if len(moved) > 0 {
		if err := s.Plan.MoveNotes(ctx, moved); err != nil {
			return err
		}
	}
	if len(outdated) == 0 || !in.Settings.ResolveOutdatedDiffDiscussions {
		return nil
	}
	slices.Sort(outdated)
	return s.resolveOutdated(ctx, m, v, slices.Compact(outdated))
}

// resolveOutdated resolves threads whose lines a push changed, as the user who
// pushed. Threads that were outdated before the push are not included: users may
// have reopened them.
func (s *Service) resolveOutdated(ctx context.Context, m *MergeRequest, v *Version, threads []string) error {
	author := m.AuthorID
	if v.authorID != nil {
		author = *v.authorID
	}
	by, err := s.Users.As(ctx, author)
	if err != nil {
		return ignoreRefusal(err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		for _, id := range threads {
			if err := s.Plan.ResolveThread(ctx, tx, by, now.Target(), id); err != nil {
				return err
			}
		}
		text := "automatically resolved 1 thread that became outdated"
		if len(threads) > 1 {
			text = fmt.Sprintf("automatically resolved %d threads that became outdated", len(threads))
		}
		if err := s.Plan.AddSystemNote(ctx, tx, by, now.Target(), now.IID, now.ProjectID, text); err != nil {
			return err
		}
		return s.continueAuto(ctx, tx, now)
	})
	if err != nil {
		return fmt.Errorf("resolve outdated threads of merge request %d: %w", m.ID, err)
	}
	return nil
}
