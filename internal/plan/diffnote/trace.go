package diffnote

import (
	"context"
	"slices"

	"svc/internal/git"
)

// maxTraced is the maximum number of earlier versions whose diff notes are traced,
// because each requires a git process. Notes of other versions count as outdated.
const maxTraced = 20

// Version is a version of a diff: the commits that it compares, and its files.
type Version struct {
	Base  string
	Start string // head of the target branch
	Head  string
	Files []git.FileDiff
}

// Compare returns the diff between two commits of a repository.
type Compare func(ctx context.Context, from, to git.OID, o git.DiffOptions) (*git.Diff, error)

// Trace returns the positions of diff notes of other versions in the version v: the
// same line in its diff, or nil if the line has changed since or is not in the diff.
// Positions follow renamed files.
func Trace(ctx context.Context, v Version, compare Compare, list []*Position) ([]*Position, error) {
	t := tracer{ctx: ctx, v: v, compare: compare, files: map[string]*git.FileDiff{}, moves: map[[2]string]map[string]*git.FileDiff{}, paths: map[[2]string][]string{}}
	for i := range v.Files {
		t.files[v.Files[i].NewPath] = &v.Files[i]
	}
	for _, p := range list {
		t.paths[[2]string{p.HeadSHA, v.Head}] = append(t.paths[[2]string{p.HeadSHA, v.Head}], p.NewPath)
		t.paths[[2]string{p.BaseSHA, v.Base}] = append(t.paths[[2]string{p.BaseSHA, v.Base}], p.OldPath)
	}
	traced := make([]*Position, len(list))
	for i, p := range list {
		var err error
		if traced[i], err = t.trace(p); err != nil {
			return nil, err
		}
	}
	return traced, nil
}

type tracer struct {
	ctx     context.Context
	v       Version
	compare Compare
	files   map[string]*git.FileDiff               // of the version, by new path
	paths   map[[2]string][]string                 // paths of all positions, by both commits
	moves   map[[2]string]map[string]*git.FileDiff // diffs between commits, by old path
}

func (t *tracer) trace(p *Position) (*Position, error) {
	if p.HeadSHA == t.v.Head && p.BaseSHA == t.v.Base {
		return p, nil
	}
	path, changed, err := t.path(p.HeadSHA, t.v.Head, p.NewPath)
	if err != nil {
		return nil, err
	}
	f := t.files[path]
	if f == nil || f.TooLarge {
		return nil, nil
	}
	now := *p
	now.BaseSHA, now.StartSHA, now.HeadSHA, now.OldPath, now.NewPath = t.v.Base, t.v.Start, t.v.Head, f.OldPath, f.NewPath
	if p.Type != OnText {
		if changed && p.Type == OnImage {
			return nil, nil
		}
		return &now, nil
	}
	end, err := t.line(f, p, p.OldLine, p.NewLine)
	if err != nil || end == nil {
		return nil, err
	}
	now.OldLine, now.NewLine, now.Range, now.Code = end.OldLine, end.NewLine, nil, end.Code
	if p.Range != nil {
		start, err := t.line(f, p, p.Range.Start.OldLine, p.Range.Start.NewLine)
		if err != nil {
			return nil, err
		}
		if start != nil {
			now.Range = &LineRange{Start: *start, End: *end}
		}
	}
	return &now, nil
}

// line returns a line of a position in the diff of its file; nil if the line no
// longer exists. A removed line is followed in the base, other lines in the head.
func (t *tracer) line(f *git.FileDiff, p *Position, old, now *int64) (*LinePoint, error) {
	if now != nil {
		n, gone, err := t.follow(p.HeadSHA, t.v.Head, p.NewPath, *now)
		if err != nil || gone {
			return nil, err
		}
		return lineOf(f, n, false), nil
	}
	if old == nil {
		return nil, nil
	}
	n, gone, err := t.follow(p.BaseSHA, t.v.Base, p.OldPath, *old)
	if err != nil || gone {
		return nil, err
	}
	return lineOf(f, n, true), nil
}

// changes returns the diffs between two commits of the files of all positions, by
// old path; nil if unknown.
func (t *tracer) changes(from, to string) (map[string]*git.FileDiff, error) {
	key := [2]string{from, to}
	files, known := t.moves[key]
	if known {
		return files, nil
	}
	if len(t.moves) >= 2*maxTraced || from == "" || to == "" {
		return nil, nil
	}
	files, err := t.read(key)
	if err == nil {
		t.moves[key] = files
	}
	return files, err
}

// path returns the path of a file of one commit in another commit, and whether its
// content or path changed.
func (t *tracer) path(from, to, path string) (now string, changed bool, err error) {
	if from == to {
		return path, false, nil
	}
	files, err := t.changes(from, to)
	if err != nil {
		return "", false, err
	}
	if f := files[path]; f != nil && !f.Deleted {
		return f.NewPath, true, nil
	}
	return path, files == nil || files[path] != nil, nil
}

// follow returns the number of a line of a file of one commit in another commit.
// gone is true if the line was changed or removed.
func (t *tracer) follow(from, to, path string, n int64) (line int64, gone bool, err error) {
	if from == to {
		return n, false, nil
	}
	files, err := t.changes(from, to)
	if err != nil || files == nil {
		return 0, true, err
	}
	f := files[path]
	if f == nil {
		return n, false, nil
	}
	if f.Deleted || f.Binary || f.TooLarge {
		return 0, true, nil
	}
	shift := int64(0)
	for l := range f.Lines() {
		if l.Old > n {
			break
		}
		switch {
		case l.Kind == '-' && l.Old == n:
			return 0, true, nil
		case l.Kind == '-':
			shift--
		case l.Kind == '+':
			shift++
		}
	}
	return n + shift, false, nil
}

// read returns the diffs between two commits of the files of all positions; nil if
// this is too expensive.
func (t *tracer) read(key [2]string) (map[string]*git.FileDiff, error) {
	paths := slices.Compact(slices.Sorted(slices.Values(t.paths[key])))
	size := 0
	for _, path := range paths {
		size += len(path)
	}
	if size > 64<<10 {
		return nil, nil
	}
	d, err := t.compare(t.ctx, git.OID(key[0]), git.OID(key[1]), git.DiffOptions{Paths: paths, Context: 1, MaxFiles: 1000, MaxLines: 100_000})
	if err != nil || d.TimedOut {
		return nil, err
	}
	files := map[string]*git.FileDiff{}
	var gone []string
	for i := range d.Files {
		f := &d.Files[i]
		if files[f.OldPath] = f; f.Deleted {
			gone = append(gone, f.OldPath)
		}
	}
	return files, t.followRenames(key, files, gone)
}

// followRenames replaces deleted files by the files that they were renamed to, which
// git detects only if it compares all files.
func (t *tracer) followRenames(key [2]string, files map[string]*git.FileDiff, gone []string) error {
	if len(gone) == 0 {
		return nil
	}
	all, err := t.compare(t.ctx, git.OID(key[0]), git.OID(key[1]), git.DiffOptions{MaxFiles: 1, MaxLines: 1})
	if err != nil || all.TimedOut {
		return err
	}
	var paths []string
	for _, f := range all.Files {
		if f.Renamed && slices.Contains(gone, f.OldPath) {
			paths = append(paths, f.OldPath, f.NewPath)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	d, err := t.compare(t.ctx, git.OID(key[0]), git.OID(key[1]), git.DiffOptions{Paths: paths, Context: 1, MaxFiles: 1000, MaxLines: 100_000})
	if err != nil || d.TimedOut {
		return err
	}
	for i := range d.Files {
		if f := &d.Files[i]; f.Renamed {
			files[f.OldPath] = f
		}
	}
	return nil
}

// lineOf returns a line in the diff of a file by its number in the new file or, if
// removed is set, in the old file; nil if the line was not removed. Lines between the
// hunks of the diff are unchanged.
func lineOf(f *git.FileDiff, n int64, removed bool) *LinePoint {
	shift := int64(0)
	for l := range f.Lines() {
		if removed {
			if l.Kind == '-' && l.Old == n {
				return &LinePoint{Code: LineCode(f.NewPath, l.Old, l.New), Type: "old", OldLine: &n}
			}
			continue
		}
		if l.New > n {
			break
		}
		switch {
		case l.Kind == '+' && l.New == n:
			return &LinePoint{Code: LineCode(f.NewPath, l.Old, l.New), Type: "new", NewLine: &n}
		case l.Kind == '+':
			shift--
		case l.Kind == '-':
			shift++
		}
	}
	old := n + shift
	if removed || f.New || old < 1 {
		return nil
	}
	return &LinePoint{Code: LineCode(f.NewPath, old, n), OldLine: &old, NewLine: &n}
}
