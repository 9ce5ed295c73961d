package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// LogOrder is the order of commits.
type LogOrder int

const (
	ByTime     LogOrder = iota // by committer date, newest first
	Topo                       // --topo-order: children before parents, without interleaving branches
	DateTopo                   // --date-order: children before parents, otherwise by committer date
	AuthorTopo                 // --author-date-order: children before parents, otherwise by author date
)

// LogOptions selects commits.
type LogOptions struct {
	From        []string // start revisions
	Not         []string // excludes commits reachable from these
	All         bool     // starts from all visible refs
	Paths       []string // only commits that changed one of these
	Follow      bool     // follows renames of the only path
	Since       time.Time
	Until       time.Time
	Author      string // substring of the author's name or email
	Message     string // substring of the message
	FirstParent bool
	NoMerges    bool
	Order       LogOrder
	Skip        int
	Limit       int // 0 means no limit
}

// maxLogCached is the maximum number of IDs of a cached log.
const maxLogCached = 10_000

// Log returns the selected commits. The result is cached by commit IDs, so a
// repeated call needs no process. It returns ErrBadRevision, ErrBadPath and
// ErrNotFound.
func (r Repo) Log(ctx context.Context, o LogOptions) ([]*Commit, error) {
	args, fixed, err := r.logArgs(ctx, o)
	if err != nil {
		return nil, err
	}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok && fixed {
		return r.Commits(ctx, v.([]OID))
	}
	var ids []OID
	err = r.run(ctx, command{args: args}, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			ids = append(ids, id)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if fixed && len(ids) <= maxLogCached {
		r.engine.cache.put(key, ids, 60*len(ids))
	}
	return r.Commits(ctx, ids)
}

// Walk is Log as an iterator, for large results. The process runs until the loop
// ends, so the loop must not wait for a client.
func (r Repo) Walk(ctx context.Context, o LogOptions) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		args, _, err := r.logArgs(ctx, o)
		if err != nil {
			yield(nil, err)
			return
		}
		batch := make([]OID, 0, 128)
		flush := func() error {
			list, err := r.commits(ctx, batch)
			if err != nil {
				return err
			}
			batch = batch[:0]
			for _, c := range list {
				if !yield(c, nil) {
					return errEnough
				}
			}
			return nil
		}
		done := false
		err = r.run(ctx, command{args: args}, func(out io.Reader) error {
			err := eachID(out, func(id OID) error {
				if batch = append(batch, id); len(batch) < cap(batch) {
					return nil
				}
				return flush()
			})
			if err == nil {
				err = flush()
			}
			done = err == errEnough
			return err
		})
		if err != nil && !done {
			yield(nil, err)
		}
	}
}

// Count returns the number of commits, up to Limit.
func (r Repo) Count(ctx context.Context, o LogOptions) (int, error) {
	o.Order = ByTime
	args, fixed, err := r.logArgs(ctx, o)
	if err != nil {
		return 0, err
	}
	if o.Follow { // rev-list does not support --follow, and log does not support --count
		n := 0
		err := r.run(ctx, command{args: args}, func(out io.Reader) error {
			return eachID(out, func(OID) error { n++; return nil })
		})
		return n, err
	}
	args = append([]string{args[0], "--count"}, args[1:]...)
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok && fixed {
		return v.(int), nil
	}
	out, err := r.output(ctx, command{args: args})
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0, fmt.Errorf("git rev-list: output %.50q: %w", out, err)
	}
	if fixed {
		r.engine.cache.put(key, n, 0)
	}
	return n, nil
}

// logArgs returns the git command that lists the IDs. fixed reports that its
// result never changes.
func (r Repo) logArgs(ctx context.Context, o LogOptions) (args []string, fixed bool, err error) {
	if o.Follow && len(o.Paths) == 1 {
		args = []string{"log", "--format=%H", "--follow"}
	} else {
		args = []string{"rev-list"}
	}
	args = append(args, o.flags()...)
	if o.All {
		// Internal refs are excluded.
		args = append(args, "--exclude=refs/svc/*", "--exclude=refs/merge-requests/*", "--all")
	}
	args = append(args, "--end-of-options")
	if len(o.From) == 0 && !o.All {
		return nil, false, fmt.Errorf("log from nowhere: %w", ErrBadRevision)
	}
	for _, rev := range o.From {
		id, err := r.ResolveCommit(ctx, rev)
		if err != nil {
			return nil, false, err
		}
		args = append(args, string(id))
	}
	for _, rev := range o.Not {
		id, err := r.ResolveCommit(ctx, rev)
		if err != nil {
			return nil, false, err
		}
		args = append(args, "^"+string(id))
	}
	args = append(args, "--")
	for _, path := range o.Paths {
		path = strings.Trim(path, "/")
		if err := checkPath(path); err != nil {
			return nil, false, err
		}
		if path != "" {
			args = append(args, path)
		}
	}
	return args, !o.All, nil
}

func (o LogOptions) flags() []string {
	var f []string
	set := func(on bool, flag string) {
		if on {
			f = append(f, flag)
		}
	}
	set(o.Limit > 0, "--max-count="+strconv.Itoa(o.Limit))
	set(o.Skip > 0, "--skip="+strconv.Itoa(o.Skip))
	set(!o.Since.IsZero(), "--max-age="+strconv.FormatInt(o.Since.Unix(), 10))
	set(!o.Until.IsZero(), "--min-age="+strconv.FormatInt(o.Until.Unix(), 10))
	set(o.Author != "" || o.Message != "", "--fixed-strings")
	set(o.Author != "" || o.Message != "", "--regexp-ignore-case")
	set(o.Author != "", "--author="+strings.ReplaceAll(o.Author, "\x00", ""))
	set(o.Message != "", "--grep="+strings.ReplaceAll(o.Message, "\x00", ""))
	set(o.FirstParent, "--first-parent")
	set(o.NoMerges, "--no-merges")
	set(o.Order == Topo, "--topo-order")
	set(o.Order == DateTopo, "--date-order")
	set(o.Order == AuthorTopo, "--author-date-order")
	return f
}

// eachID parses a list of IDs, one per line.
func eachID(out io.Reader, do func(OID) error) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "" {
			continue // log --follow prints empty lines
		}
		id, ok := ParseOID(lines.Text())
		if !ok {
			return fmt.Errorf("git printed %.100q instead of an object ID", lines.Text())
		}
		if err := do(id); err != nil {
			return err
		}
	}
	return lines.Err()
}
