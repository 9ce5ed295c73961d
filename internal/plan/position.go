package plan

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
)

// Position is a position of a note in a version of a diff. It is stored as JSON.
type Position struct {
	BaseSHA  string       `json:"base_sha"`
	StartSHA string       `json:"start_sha"`
	HeadSHA  string       `json:"head_sha"`
	Type     PositionType `json:"type"`
	OldPath  string       `json:"old_path"`
	NewPath  string       `json:"new_path"`

	// Of a text: the line on one side, or on both for one that did not change.
	OldLine *int64     `json:"old_line,omitempty"`
	NewLine *int64     `json:"new_line,omitempty"`
	Range   *LineRange `json:"range,omitempty"`
	Code    string     `json:"code,omitempty"`

	// Of a picture: the point, and how large the picture is.
	X      float64 `json:"x,omitempty"`
	Y      float64 `json:"y,omitempty"`
	Width  int64   `json:"width,omitempty"`
	Height int64   `json:"height,omitempty"`
}

// PositionType is the type of a diff note: text, image or file.
type PositionType string

// The types of positions.
const (
	OnText  PositionType = "text"
	OnFile  PositionType = "file"
	OnImage PositionType = "image"
)

// LineRange is the line range of a diff note.
type LineRange struct {
	Start LinePoint `json:"start"`
	End   LinePoint `json:"end"`
}

// LinePoint is a line of a diff.
type LinePoint struct {
	Code    string `json:"code"`
	Type    string `json:"type,omitempty"` // new or old; empty for one that did not change
	OldLine *int64 `json:"old_line,omitempty"`
	NewLine *int64 `json:"new_line,omitempty"`
}

// path is the one by which lines are named.
func (p *Position) path() string {
	if p.NewPath != "" {
		return p.NewPath
	}
	return p.OldPath
}

// String names the position in a text: its file and line. It is empty for nil.
func (p *Position) String() string {
	switch {
	case p == nil:
		return ""
	case p.NewLine != nil:
		return fmt.Sprintf("%s, line %d", p.NewPath, *p.NewLine)
	case p.OldLine != nil:
		return fmt.Sprintf("%s, old line %d", p.OldPath, *p.OldLine)
	}
	return p.NewPath
}

// LineCode names a line of the diff of a file, as clients know it.
func LineCode(path string, old, now int64) string {
	return fmt.Sprintf("%s_%d_%d", FileCode(path), old, now)
}

// FileCode names a file of a diff, as clients know it: the SHA-1 of its path.
func FileCode(path string) string {
	sum := sha1.Sum([]byte(path))
	return hex.EncodeToString(sum[:])
}

// Differ returns what became of the file of a position, with all its lines, in
// the diff that the position names: NotFound when there is no such diff.
type Differ func(ctx context.Context, p *Position) (*git.FileDiff, error)

const maxPath = 4096

func errNoLine() error {
	return &errs.Error{Kind: errs.KindInvalid, Fields: map[string][]string{"line_code": {"can't be blank", "must be a valid line code"}}}
}

// check refuses a position that is nowhere in the diff, and completes it:
// Invalid.
func (p *Position) check(ctx context.Context, diff Differ) error {
	if diff == nil {
		return errs.InvalidField("position", "is only for notes on a diff")
	}
	if p.OldPath == "" {
		p.OldPath = p.NewPath
	}
	if p.NewPath == "" {
		p.NewPath = p.OldPath
	}
	if p.path() == "" || len(p.OldPath) > maxPath || len(p.NewPath) > maxPath {
		return errs.InvalidField("position", "is incomplete")
	}
	f, err := diff(ctx, p)
	if errs.Is(err, errs.KindNotFound) {
		return errNoLine()
	}
	if err != nil {
		return err
	}
	switch p.Type {
	case OnFile:
		p.OldLine, p.NewLine, p.Range = nil, nil, nil
		return nil
	case OnImage:
		p.OldLine, p.NewLine, p.Range = nil, nil, nil
		if p.Width <= 0 || p.Height <= 0 || p.X < 0 || p.Y < 0 || p.X > float64(p.Width) || p.Y > float64(p.Height) {
			return errs.InvalidField("position", "is incomplete")
		}
		return nil
	}
	return p.checkLines(f)
}

// checkLines looks for the lines of a position, and for those of its range, which
// clients name by code, by numbers or by both.
func (p *Position) checkLines(f *git.FileDiff) error {
	wanted := []*LinePoint{{OldLine: p.OldLine, NewLine: p.NewLine}}
	if p.Range != nil {
		wanted = append(wanted, &p.Range.Start, &p.Range.End)
	}
	found, places := 0, make([]int, len(wanted))
	at := 0
	for l := range f.Lines() {
		at++
		for i, w := range wanted {
			if places[i] == 0 && w.is(p.path(), l) {
				w.set(p.path(), l)
				places[i] = at
				found++
			}
		}
		if found == len(wanted) {
			break
		}
	}
	switch {
	case places[0] == 0:
		return errNoLine()
	case found < len(wanted):
		return errs.InvalidField("position", "has lines that are not in the diff")
	case p.Range != nil && places[1] > places[2]:
		return errs.InvalidField("position", "has lines in the wrong order")
	}
	p.Code = wanted[0].Code
	return nil
}

// is reports whether a line of the diff is the one.
func (w *LinePoint) is(path string, l git.DiffLine) bool {
	if w.OldLine == nil && w.NewLine == nil {
		return w.Code != "" && w.Code == LineCode(path, l.Old, l.New)
	}
	var old, now int64
	patch.Set(&old, w.OldLine)
	patch.Set(&now, w.NewLine)
	switch l.Kind {
	case '+':
		return old == 0 && now == l.New
	case '-':
		return now == 0 && old == l.Old
	}
	return old == l.Old && now == l.New
}

func (w *LinePoint) set(path string, l git.DiffLine) {
	old, now := l.Old, l.New
	w.Code, w.Type, w.OldLine, w.NewLine = LineCode(path, old, now), "", &old, &now
	switch l.Kind {
	case '+':
		w.Type, w.OldLine = "new", nil
	case '-':
		w.Type, w.NewLine = "old", nil
	}
}

// At returns the position of a diff note in the newest version of the diff that has
// its line.
func (n *Note) At() *Position { return cmp.Or(n.Current, n.Position) }

// DiffNotes returns the newest diff notes on a target, for the feature that owns
// the diff.
func (s *Service) DiffNotes(ctx context.Context, on Target, limit int) ([]*Note, error) {
	list, err := findDiffNotes(ctx, s.DB, on, limit)
	if err != nil {
		return nil, fmt.Errorf("diff notes on %s %d: %w", on.Kind, on.ID, err)
	}
	return list, nil
}

// MoveNotes stores the current positions of diff notes by their IDs.
func (s *Service) MoveNotes(ctx context.Context, to map[int64]*Position) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(to)) { // one order, so that transactions do not wait for each other
			if err := saveCurrentPosition(ctx, tx, id, to[id]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("move diff notes: %w", err)
	}
	return nil
}

// Encode returns the position as it is stored; empty for nil.
func (p *Position) Encode() (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// DecodePosition returns a stored position; nil for a note that is in no diff.
func DecodePosition(text string) (*Position, error) {
	if text == "" {
		return nil, nil
	}
	var p Position
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("position of a note: %w", err)
	}
	return &p, nil
}
