package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Conflict is a file with a merge conflict.
type Conflict struct {
	Path    string
	Ours    Entry  // our version; the OID is empty if the file does not exist
	Theirs  Entry  // their version
	Merged  OID    // blob with conflict markers; empty if there is none
	Content []byte // content of Merged, unless it is larger than the limit
	Size    int64  // size of Merged
}

// Conflicts returns the conflicts of a merge of two commits, with the content of
// files of at most maxSize bytes. Conflict markers are labeled with the commit
// IDs. It returns ErrNotFound.
func (r Repo) Conflicts(ctx context.Context, ours, theirs OID, maxSize int64) (list []Conflict, err error) {
	q, err := r.newQuarantine(ctx)
	if err != nil {
		return nil, err
	}
	defer q.discard()
	defer q.cause(ctx, &err)
	tree, list, err := q.mergeConflicts(ctx, ours, theirs)
	if err != nil {
		return nil, err
	}
	view := q.view()
	for i := range list {
		c := &list[i]
		if c.Ours.OID == "" || c.Theirs.OID == "" {
			continue
		}
		e, err := view.entry(ctx, tree, c.Path)
		if errors.Is(err, ErrNotFound) || err == nil && e.Type != TypeBlob {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := view.Info(ctx, e.OID)
		if err != nil {
			return nil, err
		}
		if c.Merged, c.Size = e.OID, info.Size; info.Size > min(maxSize, MaxObject) {
			continue
		}
		o, err := view.Object(ctx, e.OID)
		if err != nil {
			return nil, err
		}
		c.Content = o.Content
	}
	return list, nil
}

// MergeResolved is Merge with the resolved content of the files that have
// conflicts. It returns a *MergeConflict if the content of such a file is missing.
func (r Repo) MergeResolved(ctx context.Context, o MergeOptions, files map[string][]byte) (*Commit, error) {
	ids, err := r.resolveAll(ctx, []string{o.Ours, o.Theirs})
	if err != nil {
		return nil, err
	}
	ours, theirs := OID(ids[0]), OID(ids[1])
	commit := &Commit{ParentIDs: []OID{ours, theirs}, Author: o.Author, Committer: o.Committer, Message: o.Message}
	return r.commitWith(ctx, commit, (*quarantine).hasSpecial, func(q *quarantine) (OID, error) {
		tree, list, err := q.mergeConflicts(ctx, ours, theirs)
		if err != nil {
			return "", err
		}
		e := editor{repo: q.view(), new: q, root: &node{Entry: Entry{OID: tree, Type: TypeTree}}}
		for _, c := range list {
			content, ok := files[c.Path]
			if !ok || c.Ours.OID == "" || c.Theirs.OID == "" {
				return "", &MergeConflict{Paths: []string{c.Path}}
			}
			if err := e.apply(ctx, Action{Kind: Modify, Path: c.Path, Content: content, HasContent: true}); err != nil {
				return "", fmt.Errorf("resolve %.200q: %w", c.Path, err)
			}
		}
		return e.save(e.root)
	})
}

// mergeConflicts merges two commits into a tree whose conflicting files have
// conflict markers, and lists these files.
func (q *quarantine) mergeConflicts(ctx context.Context, ours, theirs OID) (OID, []Conflict, error) {
	const limit = 4 << 20
	args := []string{"merge-tree", "--write-tree", "-z", "--no-messages", string(ours), string(theirs)}
	var out strings.Builder
	err := q.repo.run(ctx, command{work: writing, args: args, env: q.env()}, func(p io.Reader) error {
		_, err := io.Copy(&out, io.LimitReader(p, limit))
		return err
	})
	var failure *Error
	if err != nil && (!errors.As(err, &failure) || failure.Exit != 1) {
		return "", nil, err
	}
	if out.Len() >= limit {
		return "", nil, fmt.Errorf("git merge-tree: more than %d bytes", limit)
	}
	records := strings.Split(out.String(), "\x00")
	tree, ok := ParseOID(records[0])
	if !ok {
		return "", nil, fmt.Errorf("git merge-tree: output %.100q", records[0])
	}
	var list []Conflict
	for _, line := range records[1:] {
		if line == "" {
			continue
		}
		info, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 {
			return "", nil, fmt.Errorf("git merge-tree: output %.100q", line)
		}
		if len(list) == 0 || list[len(list)-1].Path != path {
			list = append(list, Conflict{Path: path})
		}
		e := Entry{OID: OID(fields[1]), Name: path, Mode: fields[0], Type: TypeBlob}
		switch fields[2] {
		case "2":
			list[len(list)-1].Ours = e
		case "3":
			list[len(list)-1].Theirs = e
		}
	}
	return tree, list, nil
}
