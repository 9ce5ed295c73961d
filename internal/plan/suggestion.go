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

// Suggestion is a change that a diff note suggests: lines of the new file, in the
// head commit of the position of the note, and their replacement.
type Suggestion struct {
	ID          int64
	NoteID      int64
	Number      int // in the note, from 0
	FromLine    int64
	ToLine      int64
	FromContent string
	ToContent   string
	CommitSHA   string // the commit that applied it
	AppliedAt   *time.Time

	// Set by Noteable.CheckSuggestions.
	Appliable bool
	Reason    string // why it cannot be applied; empty if it was applied
	Offset    int64  // by how many lines later commits moved the lines
}

// Applied reports whether the suggestion was applied.
func (s *Suggestion) Applied() bool { return s.AppliedAt != nil }

// Same reports whether the suggestion would change nothing.
func (s *Suggestion) Same() bool { return s.FromContent == s.ToContent }

// The limits of suggestions: in a note, and of the bytes of the lines that those
// of a note replace. A short note could otherwise copy a file many times into the
// database.
const (
	maxSuggestions    = 50
	maxSuggestedBytes = 1 << 18
)

// suggest sets the suggestions of a new text of a note, if it is about a line of
// the new file.
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
		notes, err := findDiscussed(ctx, s.DB, on, []string{n.Discussion})
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
		return nil // binary or too large: the suggestion stays a block of code
	}
	if err != nil {
		return err
	}
	lines, copied := SplitLines(content), 0
	for i, one := range found[:min(len(found), maxSuggestions)] {
		next := &Suggestion{
			Number: i, FromLine: max(1, *at.NewLine-int64(one.Above)), ToLine: min(int64(len(lines)), *at.NewLine+int64(one.Below)), ToContent: one.Content,
		}
		if next.FromLine > next.ToLine {
			continue
		}
		var from strings.Builder
		for _, line := range lines[next.FromLine-1 : next.ToLine] {
			from.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
		if next.FromContent = from.String(); copied+from.Len() <= maxSuggestedBytes && utf8.ValidString(next.FromContent) {
			copied += from.Len()
			n.Suggestions = append(n.Suggestions, next)
		}
	}
	return nil
}

// SplitLines returns the lines of a text, with their ends.
func SplitLines(content []byte) []string {
	lines := make([]string, 0, bytes.Count(content, []byte("\n"))+1)
	for line := range strings.Lines(string(content)) {
		lines = append(lines, line)
	}
	return lines
}

// Apply replaces the lines of the suggestion in the lines of a file. It keeps the
// line ends of the file. It returns false if the file has other lines there.
func (s *Suggestion) Apply(lines []string) ([]string, bool) {
	from, to := s.FromLine-1+s.Offset, s.ToLine+s.Offset
	if from < 0 || to > int64(len(lines)) {
		return nil, false
	}
	old := lines[from:to]
	var now strings.Builder
	for _, line := range old {
		now.WriteString(strings.TrimRight(line, "\r\n") + "\n")
	}
	if now.String() != s.FromContent {
		return nil, false
	}
	end := "\n"
	if strings.HasSuffix(old[0], "\r\n") {
		end = "\r\n"
	}
	var next []string
	for line := range strings.Lines(s.ToContent) {
		next = append(next, strings.TrimRight(line, "\r\n")+end)
	}
	if last := old[len(old)-1]; !strings.HasSuffix(last, "\n") && len(next) > 0 { // the file ends without a line feed
		next[len(next)-1] = strings.TrimRight(next[len(next)-1], "\r\n")
	}
	return append(append(append([]string{}, lines[:from]...), next...), lines[to:]...), true
}

// start returns the numbers that the first line of the suggestion can have now,
// given the diff of the file since: insertions directly before it may be a part of
// the suggestion.
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

// MayBeApplied reports whether the diff of the file since changes lines of the
// suggestion, or lines next to them.
func (s *Suggestion) MayBeApplied(f *git.FileDiff) bool {
	for l := range f.Lines() {
		if l.Kind == '-' && l.Old >= s.FromLine && l.Old <= s.ToLine || l.Kind == '+' && l.Old >= s.FromLine && l.Old <= s.ToLine+1 {
			return true
		}
	}
	return false
}

// IsApplied reports whether a file has the lines that the suggestion suggests,
// because the diff of the file since put them there.
func (s *Suggestion) IsApplied(f *git.FileDiff, lines []string) bool {
	want := SplitLines([]byte(s.ToContent))
	for _, at := range s.start(f) {
		if s.changedAt(f, at, at+int64(len(want))) && linesAt(lines, at, want) {
			return true
		}
	}
	return false
}

// changedAt reports whether a diff removes all lines of a suggestion that deletes
// them, or adds or removes lines where the suggestion does: from and to are its new
// lines.
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

// linesAt reports whether a file has lines from a number on. Line ends do not
// matter.
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

// SettleApplied records that suggestions are in a commit although nobody marked
// them. Their threads stay as they are, because it is not known who applied them.
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

// fillSuggestions reads the suggestions of notes, and whether they can be applied.
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
	var with []*Note
	for _, one := range found {
		n := byID[one.NoteID]
		if len(n.Suggestions) == 0 {
			with = append(with, n)
		}
		n.Suggestions = append(n.Suggestions, one)
	}
	if len(with) == 0 {
		return nil
	}
	return on.CheckSuggestions(ctx, with)
}

// SuggestedNotes returns the notes of suggestions on a target, each with all its
// suggestions. NotFound if one of the suggestions is not on the target.
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
		for _, one := range n.Suggestions {
			known[one.ID] = true
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
// access to it. NotFound.
func (s *Service) SuggestionTarget(ctx context.Context, id int64) (target Target, projectID, iid int64, err error) {
	target, projectID, iid, err = findSuggestionTarget(ctx, s.DB, id)
	return target, projectID, iid, db.NotFound(err, "Suggestion")
}

// MarkApplied records that a commit applied suggestions, and resolves their
// threads, in the transaction of the caller. It returns false for suggestions that
// were applied in the meantime.
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
