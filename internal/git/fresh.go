package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// NewObject is an object that is not reachable from a ref yet.
type NewObject struct {
	Info
	Path string // the first path at which it was found; empty for commits, tags and root trees
}

// newBatch is the number of objects in a batch.
const newBatch = 256

// NewObjects calls do for every object that is reachable from ids but not from a
// ref, commits first. It takes two processes and holds one batch in memory. It
// stops at and returns an error of do. It returns ErrNotFound if an ID does not
// exist.
func (r Repo) NewObjects(ctx context.Context, ids []OID, do func(NewObject) error) error {
	return r.eachNew(ctx, ids, []string{"rev-list", "--objects"}, func(batch []NewObject) error {
		err := r.withReader(ctx, func(p *reader) error {
			for i := range batch {
				var err error
				if batch[i].Info, err = p.info(string(batch[i].OID)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, o := range batch {
			if err := do(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// NewCommits is NewObjects for commits only, which is much cheaper.
func (r Repo) NewCommits(ctx context.Context, ids []OID, do func(*Commit) error) error {
	return r.eachNew(ctx, ids, []string{"rev-list"}, func(batch []NewObject) error {
		list := make([]OID, len(batch))
		for i, o := range batch {
			list[i] = o.OID
		}
		commits, err := r.commits(ctx, list)
		if err != nil {
			return err
		}
		for _, c := range commits {
			if err := do(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// NewPaths calls do for every path that is added by a commit reachable from ids
// but not from a ref. A path may be reported more than once. It takes one process.
func (r Repo) NewPaths(ctx context.Context, ids []OID, do func(path string) error) error {
	return r.eachNewPath(ctx, ids, "--diff-filter=A", do)
}

// ChangedPaths is NewPaths for paths that are added, changed or deleted.
func (r Repo) ChangedPaths(ctx context.Context, ids []OID, do func(path string) error) error {
	return r.eachNewPath(ctx, ids, "--diff-filter=ACDMRT", do)
}

func (r Repo) eachNewPath(ctx context.Context, ids []OID, filter string, do func(path string) error) error {
	in, err := revInput(ids)
	if err != nil || in == "" {
		return err
	}
	// For merges, only the files that differ from all parents.
	args := []string{"log", "--format=", "--name-only", "-z", "--no-renames", filter, "--diff-merges=combined", "--root", "--stdin", "--not", "--all"}
	c := command{args: args, in: strings.NewReader(in), limit: r.engine.timeLimit(writing)}
	err = r.run(ctx, c, func(out io.Reader) error {
		names := bufio.NewReaderSize(out, 64<<10)
		for {
			name, err := names.ReadString(0)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if name = strings.TrimPrefix(name[:len(name)-1], "\n"); name == "" {
				continue
			}
			if err := do(name); err != nil {
				return stop{err}
			}
		}
	})
	if s, ok := errors.AsType[stop](err); ok {
		return s.error
	}
	return err
}

// stop wraps an error of a callback in run.
type stop struct{ error }

// revInput formats IDs for --stdin. It is empty if there are none.
func revInput(ids []OID) (string, error) {
	var in strings.Builder
	for _, id := range ids {
		if _, ok := ParseOID(string(id)); !ok {
			return "", fmt.Errorf("new objects from %.50q: %w", id, ErrBadRevision)
		}
		if id != ZeroOID {
			in.WriteString(string(id) + "\n")
		}
	}
	return in.String(), nil
}

func (r Repo) eachNew(ctx context.Context, ids []OID, args []string, take func([]NewObject) error) error {
	in, err := revInput(ids)
	if err != nil || in == "" {
		return err
	}
	batch := make([]NewObject, 0, newBatch)
	flush := func() error {
		if err := take(batch); err != nil {
			return stop{err}
		}
		batch = batch[:0]
		return nil
	}
	c := command{args: append(args, "--stdin", "--not", "--all"), in: strings.NewReader(in), limit: r.engine.timeLimit(writing)}
	err = r.run(ctx, c, func(out io.Reader) error {
		err := eachLine(out, func(line string) error {
			hex, path, _ := strings.Cut(line, " ")
			id, ok := ParseOID(hex)
			if !ok {
				return fmt.Errorf("git rev-list: line %.100q", line)
			}
			batch = append(batch, NewObject{Info: Info{OID: id}, Path: path})
			if len(batch) < newBatch {
				return nil
			}
			return flush()
		})
		if err == nil && len(batch) > 0 {
			err = flush()
		}
		return err
	})
	if s, ok := errors.AsType[stop](err); ok {
		return s.error
	}
	return err
}
