package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// NewObject is an object that no ref leads to yet.
type NewObject struct {
	Info
	Path string // under which it was met first; empty for commits, tags and the tree of a commit
}

// newBatch is how many objects are asked about at a time.
const newBatch = 256

// NewObjects returns do every object that can be reached from ids and not from
// any ref of the repository, commits first. It takes two processes, however
// many objects there are, and holds a few at a time. An error of do ends it and
// is returned. It returns ErrNotFound for an id that is not there.
func (r Repo) NewObjects(ctx context.Context, ids []OID, do func(NewObject) error) error {
	return r.fresh(ctx, ids, []string{"rev-list", "--objects"}, func(batch []NewObject) error {
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

// NewCommits is NewObjects for commits alone, which costs much less.
func (r Repo) NewCommits(ctx context.Context, ids []OID, do func(*Commit) error) error {
	return r.fresh(ctx, ids, []string{"rev-list"}, func(batch []NewObject) error {
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

// NewPaths returns do the path of every file that a commit which can be reached
// from ids, and not from any ref, adds: also of a file whose content is known.
// A path may come more than once. It takes one process.
func (r Repo) NewPaths(ctx context.Context, ids []OID, do func(path string) error) error {
	return r.freshPaths(ctx, ids, "--diff-filter=A", do)
}

// ChangedPaths is NewPaths for every file that such a commit adds, changes or
// deletes.
func (r Repo) ChangedPaths(ctx context.Context, ids []OID, do func(path string) error) error {
	return r.freshPaths(ctx, ids, "--diff-filter=ACDMRT", do)
}

func (r Repo) freshPaths(ctx context.Context, ids []OID, filter string, do func(path string) error) error {
	in, err := startOf(ids)
	if err != nil || in == "" {
		return err
	}
	// Of a merge only the files that differ from all parents.
	args := []string{"log", "--format=", "--name-only", "-z", "--no-renames", filter, "--diff-merges=combined", "--root", "--stdin", "--not", "--all"}
	c := command{args: args, in: strings.NewReader(in), limit: r.engine.timeOf(writing)}
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

// stop carries an error of a caller through run.
type stop struct{ error }

// startOf writes ids for --stdin; it is empty without any.
func startOf(ids []OID) (string, error) {
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

func (r Repo) fresh(ctx context.Context, ids []OID, args []string, take func([]NewObject) error) error {
	in, err := startOf(ids)
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
	c := command{args: append(args, "--stdin", "--not", "--all"), in: strings.NewReader(in), limit: r.engine.timeOf(writing)}
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
