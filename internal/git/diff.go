package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DiffOptions selects what is compared and limits the result. The default of a
// limit is given in its comment.
type DiffOptions struct {
	From string // revision; empty for the empty tree
	To   string
	// Straight compares From and To directly. Otherwise To is compared with the merge
	// base.
	Straight bool
	// Base finds the merge base, if the caller can do that more cheaply than with a
	// process; may be nil.
	Base func(context.Context) (OID, error)
	// Unidiff keeps the "---" and "+++" lines in the diffs.
	Unidiff          bool
	Paths            []string
	IgnoreWhitespace bool
	Context          int // lines of context; 3

	MaxFiles    int           // files with a diff: 1,000
	MaxLines    int           // lines of all diffs: 50,000
	MaxFileSize int           // bytes of one diff: 1 MiB
	MaxSize     int           // bytes of all diffs, after which no more are read: 16 MiB
	Time        time.Duration // time limit
}

// FileDiff is the diff of one file.
type FileDiff struct {
	OldPath, NewPath string // equal unless the file was renamed
	AMode, BMode     string // "0" if the file does not exist on that side
	OldID, NewID     OID
	New              bool
	Renamed          bool
	Deleted          bool
	Binary           bool
	// Diff is converted to valid UTF-8. It is empty if the file is binary, was only
	// renamed, or is TooLarge.
	Diff     string
	TooLarge bool // a limit was exceeded
	Added    int  // number of lines in Diff
	Removed  int
}

// Diff is a comparison of two revisions. It must not be modified.
type Diff struct {
	Base  OID // the commit or tree that To was compared with
	Files []FileDiff
	// Overflow reports that a limit was exceeded and diffs are missing.
	Overflow bool
	// Cut reports that more than maxDiffFiles files differ and that Files lacks
	// some of them. Overflow is set as well.
	Cut bool
	// TimedOut reports that git did not finish in time. Files or their diffs may be
	// missing.
	TimedOut bool
}

// maxDiffFiles is the maximum number of files in a comparison. If there are more,
// the list of files is cut and no diffs are read.
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

// Diff compares two revisions. If the time limit is exceeded, it returns a partial
// result with TimedOut set. It returns ErrBadRevision, ErrBadPath, and ErrNotFound
// if a revision does not exist or there is no merge base.
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

// diffFromBase compares with a merge base that is not known yet. git diff
// --merge-base does not print the merge base, so it is determined concurrently.
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
		return r.diffTrees(ctx, o, f.base, to) // there are several merge bases, of which MergeBase chose one
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

// keepDiff caches a complete comparison.
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

// args returns the git command that compares the given revisions.
func (o DiffOptions) args(revs []string) ([]string, error) {
	args := []string{"diff-tree", "-r", "--raw", "-p", "-z", "--find-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "--unified=" + strconv.Itoa(o.Context)}
	if o.IgnoreWhitespace {
		args = append(args, "--ignore-all-space")
	}
	args = append(append(args, revs...), "--")
	for _, path := range o.Paths {
		path = strings.Trim(path, "/")
		if err := checkPath(path); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	return args, nil
}

// runDiff returns a comparison and its approximate size in bytes.
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
