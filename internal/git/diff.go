package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DiffOptions says what is compared and how much of it is wanted. A limit that
// is zero takes the value beside it.
type DiffOptions struct {
	From string // a revision; empty is the empty tree
	To   string
	// Straight compares the two as they are. Otherwise To is compared with
	// the merge base of both.
	Straight bool
	// Base finds the merge base, if the caller has a better way than to ask
	// for it in another process.
	Base func(context.Context) (OID, error)
	// Unidiff leaves the lines with the names of both files in the texts.
	Unidiff          bool
	Paths            []string
	IgnoreWhitespace bool
	Context          int // lines around a change; 3

	MaxFiles    int           // files with a text: 1,000
	MaxLines    int           // lines of all texts: 50,000
	MaxFileSize int           // bytes of one text: 1 MiB
	MaxSize     int           // bytes of all texts, after which no further one is read: 16 MiB
	Time        time.Duration // the time of reading
}

// FileDiff is what became of one file.
type FileDiff struct {
	OldPath, NewPath string // the same unless it was renamed
	AMode, BMode     string // 0 before it was made and after it was deleted
	OldID, NewID     OID
	New              bool
	Renamed          bool
	Deleted          bool
	Binary           bool
	// Diff is valid UTF-8, whatever the file is. It is empty when the file
	// is binary, was only renamed, or TooLarge.
	Diff     string
	TooLarge bool // a limit was over
	Added    int  // lines in Diff
	Removed  int
}

// Diff is a comparison. It must not be changed.
type Diff struct {
	Base  OID // what To was compared with
	Files []FileDiff
	// Overflow says that a limit was over and texts are missing.
	Overflow bool
	// TimedOut says that git had not finished; the files may be missing, or
	// only their texts.
	TimedOut bool
}

// maxDiffFiles is the most files that a comparison lists. With more of them
// there are no texts.
const maxDiffFiles = 100_000

func (o DiffOptions) filled(e *Engine) DiffOptions {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.Context, 3)
	set(&o.MaxFiles, 1000)
	set(&o.MaxLines, 50_000)
	set(&o.MaxFileSize, 1<<20)
	set(&o.MaxSize, 16<<20)
	if o.Time == 0 {
		o.Time = e.limits.Read
	}
	return o
}

// Diff compares two revisions. When the time is over it gives what there is,
// marked as such. It returns ErrBadRevision, ErrBadPath, and ErrNotFound for a
// revision that is not there or two that have no merge base.
func (r Repo) Diff(ctx context.Context, o DiffOptions) (*Diff, error) {
	o = o.filled(r.engine)
	to, err := r.ResolveTree(ctx, o.To)
	if err != nil {
		return nil, err
	}
	switch {
	case o.From == "":
		return r.diffTrees(ctx, o, EmptyTree, to)
	case o.Straight:
		base, err := r.ResolveCommit(ctx, o.From)
		if errors.Is(err, ErrNotFound) {
			base, err = r.ResolveTree(ctx, o.From)
		}
		if err != nil {
			return nil, err
		}
		return r.diffTrees(ctx, o, base, to)
	}
	ids, err := r.resolveAll(ctx, []string{o.From, o.To})
	if err != nil {
		return nil, err
	}
	if base, ok := r.knownMergeBase(ids); ok {
		return r.diffTrees(ctx, o, base, to)
	}
	return r.diffFromBase(ctx, o, ids, to)
}

// diffFromBase compares with a merge base that is not known yet. git diff can find
// it, but does not print it, so Base or another process finds it at the same
// time.
func (r Repo) diffFromBase(ctx context.Context, o DiffOptions, ids []string, to OID) (*Diff, error) {
	args, err := o.args(append([]string{"--merge-base", "--end-of-options"}, ids...))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type found struct {
		base OID
		err  error
	}
	answer := make(chan found, 1)
	find := o.Base
	if find == nil {
		find = func(ctx context.Context) (OID, error) { return r.MergeBase(ctx, ids...) }
	}
	go func() {
		base, err := find(ctx)
		if err != nil {
			cancel() // there is nothing to compare
		}
		answer <- found{base, err}
	}()
	d, size, diffErr := r.runDiff(ctx, o, args)
	f := <-answer
	if f.err != nil {
		return nil, f.err
	}
	var failure *Error
	if errors.As(diffErr, &failure) && failure.Exit > 0 {
		return r.diffTrees(ctx, o, f.base, to) // there are several bases, and MergeBase chose
	}
	if diffErr != nil {
		return nil, diffErr
	}
	d.Base = f.base
	return d, r.keepDiff(o, d, size, f.base, to)
}

// diffTrees compares a commit or tree with a tree.
func (r Repo) diffTrees(ctx context.Context, o DiffOptions, base, to OID) (*Diff, error) {
	args, err := o.args([]string{"--end-of-options", string(base), string(to)})
	if err != nil {
		return nil, err
	}
	if v, ok := r.engine.cache.get(r.diffKey(o, args)); ok {
		return v.(*Diff), nil
	}
	d, size, err := r.runDiff(ctx, o, args)
	if err != nil {
		return nil, err
	}
	d.Base = base
	return d, r.keepDiff(o, d, size, base, to)
}

// keepDiff caches a comparison that is complete, under what it compares.
func (r Repo) keepDiff(o DiffOptions, d *Diff, size int, base, to OID) error {
	args, err := o.args([]string{"--end-of-options", string(base), string(to)})
	if err == nil && !d.TimedOut {
		r.engine.cache.put(r.diffKey(o, args), d, size)
	}
	return err
}

func (r Repo) diffKey(o DiffOptions, args []string) cacheKey {
	limits := fmt.Sprint(o.Unidiff, o.MaxFiles, o.MaxLines, o.MaxFileSize, o.MaxSize)
	return cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00") + "\x00" + limits}
}

// args are those of the command that compares what is named.
func (o DiffOptions) args(what []string) ([]string, error) {
	args := []string{"diff-tree", "-r", "--raw", "-p", "-z", "--find-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "--unified=" + strconv.Itoa(o.Context)}
	if o.IgnoreWhitespace {
		args = append(args, "--ignore-all-space")
	}
	args = append(append(args, what...), "--")
	for _, path := range o.Paths {
		path = strings.Trim(path, "/")
		if err := checkPath(path); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	return args, nil
}

// runDiff returns a comparison and about the bytes that it takes.
func (r Repo) runDiff(ctx context.Context, o DiffOptions, args []string) (*Diff, int, error) {
	p := diffParser{o: o, diff: &Diff{}}
	err := r.run(ctx, command{args: args, limit: o.Time}, p.read)
	if errors.Is(err, ErrTimeout) {
		p.diff.TimedOut, err = true, nil
	}
	if err != nil {
		return nil, 0, err
	}
	p.finish()
	return p.diff, p.size + 400*len(p.diff.Files), nil
}
