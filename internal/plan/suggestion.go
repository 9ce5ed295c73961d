package plan

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/plan/diffnote"
)

// suggest parses the suggestions in the text of a note on a line of the new file.
func (s *Service) suggest(ctx context.Context, on Noteable, n *Note) error {
	n.Suggestions = nil
	if on.Source == nil {
		return nil
	}
	found := markup.Suggestions(ctx, n.Body)
	if len(found) == 0 {
		return nil
	}
	at := n.Position
	if at == nil && n.Discussion != "" { // a reply
		notes, err := findDiscussionNotes(ctx, s.DB, on, []string{n.Discussion})
		if err != nil {
			return fmt.Errorf("position of discussion %s: %w", n.Discussion, err)
		}
		if len(notes) > 0 {
			at = notes[0].Position
		}
	}
	if at == nil || at.Type != diffnote.OnText || at.NewLine == nil {
		return nil
	}
	content, err := on.Source(ctx, at.HeadSHA, at.NewPath)
	if errs.IsRefusal(err) {
		return nil // binary or too large: rendered as a code block
	}
	if err != nil {
		return err
	}
	n.Suggestions = diffnote.Suggest(found, at, content)
	return nil
}

// SettleApplied marks suggestions as applied that a commit contains although they
// were not applied with MarkApplied. Their threads stay open, because the user who
// applied them is unknown.
func (s *Service) SettleApplied(ctx context.Context, ids []int64, commit string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		_, err := diffnote.SaveApplied(ctx, tx, ids, commit, s.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("settle suggestions: %w", err)
	}
	return nil
}

// fillSuggestions reads the suggestions of notes and whether they can be applied.
func (s *Service) fillSuggestions(ctx context.Context, on Noteable, list []*Note) error {
	if on.CheckSuggestions == nil {
		return nil
	}
	byID, ids := map[int64]*Note{}, []int64{}
	for _, n := range list {
		if n.Type == DiffNote && strings.Contains(n.Body, "suggestion") {
			ids, byID[n.ID], n.Suggestions = append(ids, n.ID), n, nil
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := diffnote.FindSuggestions(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("suggestions of notes: %w", err)
	}
	var changed []*Note
	for _, suggestion := range found {
		n := byID[suggestion.NoteID]
		if len(n.Suggestions) == 0 {
			changed = append(changed, n)
		}
		n.Suggestions = append(n.Suggestions, suggestion)
	}
	if len(changed) == 0 {
		return nil
	}
	return on.CheckSuggestions(ctx, changed)
}

// SuggestedNotes returns the notes that contain the given suggestions, each with
// all its suggestions. NotFound if a suggestion is not on the target.
func (s *Service) SuggestedNotes(ctx context.Context, on Noteable, ids []int64) ([]*Note, error) {
	notes, err := findSuggestedNotes(ctx, s.DB, on, ids)
	if err != nil {
		return nil, fmt.Errorf("notes of suggestions: %w", err)
	}
	if err := s.fillNotesOn(ctx, on, notes...); err != nil {
		return nil, err
	}
	known := map[int64]bool{}
	for _, n := range notes {
		for _, suggestion := range n.Suggestions {
			known[suggestion.ID] = true
		}
	}
	for _, id := range ids {
		if !known[id] {
			return nil, errs.NotFound("Suggestion")
		}
	}
	return notes, nil
}

// SuggestionTarget returns the object that a suggestion is on. The caller checks
// access. NotFound.
func (s *Service) SuggestionTarget(ctx context.Context, id int64) (target Target, projectID, iid int64, err error) {
	target, projectID, iid, err = findSuggestionTarget(ctx, s.DB, id)
	return target, projectID, iid, db.NotFound(err, "Suggestion")
}

// MarkApplied records that a commit applied suggestions, and resolves their
// threads, in the transaction of the caller. It returns false if one of them was
// applied in the meantime.
func (s *Service) MarkApplied(ctx context.Context, tx *db.Tx, byID int64, on Target, ids []int64, commit string) (bool, error) {
	ok, err := diffnote.SaveApplied(ctx, tx, ids, commit, s.Now())
	if err != nil || !ok {
		return false, err
	}
	discussions, err := findSuggestedDiscussions(ctx, tx, ids)
	if err != nil {
		return false, err
	}
	for _, id := range discussions {
		if err := resolveThread(ctx, tx, on, id, nil, byID, s.Now()); err != nil {
			return false, err
		}
	}
	return true, nil
}
