package diffnote

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

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

	// Set by plan.Noteable.CheckSuggestions.
	Appliable bool
	Reason    string // why it cannot be applied; empty if it was applied
	Offset    int64  // number of lines by which later commits have moved the range
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

// Suggest returns the suggestions parsed from a note at a position in the new file,
// whose content is given. Those that are outside the file or too large are left out.
func Suggest(parsed []markup.Suggestion, at *Position, content []byte) (list []*Suggestion) {
	lines, size := SplitLines(content), 0
	for i, p := range parsed[:min(len(parsed), maxSuggestions)] {
		suggestion := &Suggestion{
			Number: i, FromLine: max(1, *at.NewLine-int64(p.Above)), ToLine: min(int64(len(lines)), *at.NewLine+int64(p.Below)), ToContent: p.Content,
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
			list = append(list, suggestion)
		}
	}
	return list
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

// IsApplied reports whether the changes in f have added the suggested lines to the
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

// changedAt reports whether f changes the lines that the suggestion changes; from
// and to are the range of its new lines. If the suggestion deletes lines, f must
// delete all of them.
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
