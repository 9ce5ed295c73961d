// Package diffnote implements the positions of notes in diffs, and the changes that
// notes suggest. It does not check permissions.
package diffnote

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
)

// Position is the position of a note in a version of a diff. It is stored as JSON.
type Position struct {
	BaseSHA  string       `json:"base_sha"`
	StartSHA string       `json:"start_sha"`
	HeadSHA  string       `json:"head_sha"`
	Type     PositionType `json:"type"`
	OldPath  string       `json:"old_path"`
	NewPath  string       `json:"new_path"`

	// Text positions: the line on one side of the diff, or on both sides if it is
	// unchanged.
	OldLine *int64     `json:"old_line,omitempty"`
	NewLine *int64     `json:"new_line,omitempty"`
	Range   *LineRange `json:"range,omitempty"`
	Code    string     `json:"code,omitempty"`

	// Image positions: the point, and the size of the image.
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
	Type    string `json:"type,omitempty"` // "new" or "old"; empty for an unchanged line
	OldLine *int64 `json:"old_line,omitempty"`
	NewLine *int64 `json:"new_line,omitempty"`
}

// path returns the path that line codes are computed from.
func (p *Position) path() string {
	if p.NewPath != "" {
		return p.NewPath
	}
	return p.OldPath
}

// String describes the file and line of the position. It is empty for nil.
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

// LineCode returns the line code of a line in the diff of a file, as defined by
// the API.
func LineCode(path string, old, now int64) string {
	return fmt.Sprintf("%s_%d_%d", FileCode(path), old, now)
}

// FileCode returns the part of a line code that identifies the file: the SHA-1 of
// its path.
func FileCode(path string) string {
	sum := sha1.Sum([]byte(path))
	return hex.EncodeToString(sum[:])
}

// Differ returns the diff, with all lines, of the file of a position in the
// version of the diff that the position refers to. NotFound if there is no such
// version.
type Differ func(ctx context.Context, p *Position) (*git.FileDiff, error)

const maxPath = 4096

func errNoLine() error {
	return &errs.Error{Kind: errs.KindInvalid, Fields: map[string][]string{"line_code": {"can't be blank", "must be a valid line code"}}}
}

// Check validates a position against the diff and sets the line codes. Invalid.
func (p *Position) Check(ctx context.Context, diff Differ) error {
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

// checkLines looks up the lines of a position and of its range. Clients identify
// them by line code, by line numbers or by both.
func (p *Position) checkLines(f *git.FileDiff) error {
	wanted := []*LinePoint{{OldLine: p.OldLine, NewLine: p.NewLine}}
	if p.Range != nil {
		wanted = append(wanted, &p.Range.Start, &p.Range.End)
	}
	found, indexes := 0, make([]int, len(wanted))
	index := 0
	for l := range f.Lines() {
		index++
		for i, w := range wanted {
			if indexes[i] == 0 && w.matches(p.path(), l) {
				w.set(p.path(), l)
				indexes[i] = index
				found++
			}
		}
		if found == len(wanted) {
			break
		}
	}
	switch {
	case indexes[0] == 0:
		return errNoLine()
	case found < len(wanted):
		return errs.InvalidField("position", "has lines that are not in the diff")
	case p.Range != nil && indexes[1] > indexes[2]:
		return errs.InvalidField("position", "has lines in the wrong order")
	}
	p.Code = wanted[0].Code
	return nil
}

// matches reports whether w refers to a line of the diff.
func (w *LinePoint) matches(path string, l git.DiffLine) bool {
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

// Encode returns the position as JSON, or an empty string for nil.
func (p *Position) Encode() (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// DecodePosition parses a stored position. It returns nil for an empty string.
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
