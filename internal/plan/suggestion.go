package plan

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/markup"
)

// Suggestion is a change suggested in a diff note: a range of lines of the new
// file, in the head commit of the note's position, and their replacement.
type Suggestion struct {
	ID          int64
	NoteID      int64
	Number      int // index in the note, from 0
	FromLine    int64
	ToLine      int64
	FromContent string
	ToContent   string
	CommitSHA   string // the commit that applied it
	AppliedAt   *time.Time

	// Set by Noteable.CheckSuggestions.
	Appliable bool
	Reason    string // why it cannot be applied; empty if it was applied
	Offset    int64  // how many lines later commits have moved the range
}

// Applied reports whether the suggestion was applied.
func (s *Suggestion) Applied() bool { return s.AppliedAt != nil }

// Same reports whether the suggestion changes nothing.
func (s *Suggestion) Same() bool { return s.FromContent == s.ToContent }

// Limits per note: the number of suggestions, and the total size of the lines that
// they replace. Without the second limit, a short note could store many copies of
// a file in the database.
const (
	maxSuggestions    = 50
	maxSuggestedBytes = 1 << 18
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
	if at == nil || at.Type != OnText || at.NewLine == nil {
		return nil
	}
	content, err := on.Source(ctx, at.HeadSHA, at.NewPath)
	if errs.IsRefusal(err) {
		return nil // binary or too large: rendered as a code block
	}
	if err != nil {
		return err
	}
	lines, size := SplitLines(content), 0
	for i, parsed := range found[:min(len(found), maxSuggestions)] {
		suggestion := &Suggestion{
			Number: i, FromLine: max(1, *at.NewLine-int64(parsed.Above)), ToLine: min(int64(len(lines)), *at.NewLine+int64(parsed.Below)), ToContent: parsed.Content,
		}
		if suggestion.FromLine > suggestion.ToLine {
			continue
		}
		var from strings.Builder
		for _, line := range lines[suggestion.FromLine-1 : suggestion.ToLine] {
			from.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
		if suggestion.FromContent = from.String(); size+from.Len() <= maxSuggestedBytes && utf8.ValidString(suggestion.FromContent) {
			size += from.Len()
			n.Suggestions = append(n.Suggestions, suggestion)
		}
	}
	return nil
}

// SplitLines returns the lines of a text with their line endings.
func SplitLines(content []byte) []string {
	lines := make([]string, 0, bytes.Count(content, []byte("\n"))+1)
	for line := range strings.Lines(string(content)) {
		lines = append(lines, line)
	}
	return lines
}

// Apply replaces the lines of the suggestion in the lines of a file and keeps its
// line endings. It returns false if the lines in the file have changed.
func (s *Suggestion) Apply(lines []string) ([]string, bool) {
	from, to := s.FromLine-1+s.Offset, s.ToLine+s.Offset
	if from < 0 || to > int64(len(lines)) {
		return nil, false
	}
	old := lines[from:to]
	var current strings.Builder
	for _, line := range old {
		current.WriteString(strings.TrimRight(line, "\r\n") + "\n")
	}
	if current.String() != s.FromContent {
		return nil, false
	}
	end := "\n"
	if strings.HasSuffix(old[0], "\r\n") {
		end = "\r\n"
	}
	var replacement []string
	for line := range strings.Lines(s.ToContent) {
		replacement = append(replacement, strings.TrimRight(line, "\r\n")+end)
	}
	if last := old[len(old)-1]; !strings.HasSuffix(last, "\n") && len(replacement) > 0 { // no newline at end of file
		replacement[len(replacement)-1] = strings.TrimRight(replacement[len(replacement)-1], "\r\n")
	}
	return append(append(append([]string{}, lines[:from]...), replacement...), lines[to:]...), true
}

// start returns the lowest and the highest possible line number of the start of
// the suggestion after the changes in f. Lines that were inserted directly before
// it may be part of the suggestion.
func (s *Suggestion) start(f *git.FileDiff) [2]int64 {
	at := [2]int64{s.FromLine, s.FromLine}
	for l := range f.Lines() {
		switch {
		case l.Kind == '-' && l.Old < s.FromLine:
			at[0]--
			at[1]--
		case l.Kind == '+' && l.Old < s.FromLine:
			at[0]++
			at[1]++
		case l.Kind == '+' && l.Old == s.FromLine:
			at[1]++
		}
	}
	return at
}

// MayBeApplied reports whether f changes lines of the suggestion or next to it.
func (s *Suggestion) MayBeApplied(f *git.FileDiff) bool {
	for l := range f.Lines() {
		if l.Kind == '-' && l.Old >= s.FromLine && l.Old <= s.ToLine || l.Kind == '+' && l.Old >= s.FromLine && l.Old <= s.ToLine+1 {
			return true
		}
	}
	return false
}

// IsApplied reports whether the changes in f have put the suggested lines into the
// file.
func (s *Suggestion) IsApplied(f *git.FileDiff, lines []string) bool {
	want := SplitLines([]byte(s.ToContent))
	for _, at := range s.start(f) {
		if s.changedAt(f, at, at+int64(len(want))) && linesAt(lines, at, want) {
			return true
		}
	}
	return false
}

// changedAt reports whether f makes changes where the suggestion does; from and to
// are the range of its new lines. If the suggestion deletes lines, f must delete
// all of them.
func (s *Suggestion) changedAt(f *git.FileDiff, from, to int64) bool {
	removed, added := int64(0), 0
	for l := range f.Lines() {
		switch {
		case l.Kind == '-' && l.Old >= s.FromLine && l.Old <= s.ToLine:
			removed++
		case l.Kind == '+' && (l.New >= from && l.New < to || from == to && l.Old >= s.FromLine && l.Old <= s.ToLine+1):
			added++
		}
	}
	if from == to {
		return removed == s.ToLine-s.FromLine+1 && added == 0
	}
	return removed+int64(added) > 0
}

// linesAt reports whether lines contains want at line number from. Line endings
// are ignored.
func linesAt(lines []string, from int64, want []string) bool {
	if from < 1 || from-1+int64(len(want)) > int64(len(lines)) {
		return false
	}
	for i, line := range want {
		if strings.TrimRight(lines[from-1+int64(i)], "\r\n") != strings.TrimRight(line, "\r\n") {
			return false
		}
	}
	return true
}

// SettleApplied marks suggestions as applied that are part of a commit although no
// one applied them here. Their threads stay open, because it is not known who
// applied them.
func (s *Service) SettleApplied(ctx context.Context, ids []int64, commit string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		_, err := saveApplied(ctx, tx, ids, commit, s.Now())
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
	found, err := findSuggestions(ctx, s.DB, ids)
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
	ok, err := saveApplied(ctx, tx, ids, commit, s.Now())
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
