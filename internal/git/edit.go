package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"svc/internal/git/object"
)

// ActionKind is the kind of an Action.
type ActionKind string

const (
	Create ActionKind = "create" // create a new file
	Modify ActionKind = "update" // change an existing file
	Delete ActionKind = "delete"
	Move   ActionKind = "move" // rename a file, optionally with new content
	Chmod  ActionKind = "chmod"
	// Submodule changes the commit of an existing submodule. Content is its ID.
	Submodule ActionKind = "submodule"
)

// Action changes one file.
type Action struct {
	Kind       ActionKind
	Path       string
	From       string // old path of Move
	Content    []byte // for Create and Modify, and for Move if HasContent is set
	HasContent bool
	Executable bool // for Chmod and Create
}

// CheckNewPath checks whether a file may be created at a path. In addition to the
// rules of checkPath, no component may be one that a client could take for its
// .git directory. It returns ErrBadPath.
func CheckNewPath(path string) error {
	if path == "" {
		return fmt.Errorf("%w: it is empty", ErrBadPath)
	}
	if err := checkPath(path); err != nil {
		return err
	}
	for part := range strings.SplitSeq(path, "/") {
		if len(part) > 255 || looksLikeGitDir(part) {
			return fmt.Errorf("%w: %.200q", ErrBadPath, path)
		}
	}
	return nil
}

// looksLikeGitDir reports whether a file system of a client could map a name to
// ".git".
func looksLikeGitDir(part string) bool {
	folded := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // ignored by HFS+
			return -1
		}
		return unicode.ToLower(r)
	}, part)
	folded, _, _ = strings.Cut(folded, ":") // an NTFS alternate data stream
	folded, _, _ = strings.Cut(folded, `\`)
	folded = strings.TrimRight(folded, ". ")
	return folded == ".git" || folded == "git~1"
}

// node is an entry of a tree that is being edited. Trees are loaded on demand.
type node struct {
	Entry
	below   map[string]*node // entries of a loaded tree
	changed bool
}

// editor applies actions to a tree.
type editor struct {
	repo Repo
	new  *quarantine
	root *node
}

func (e *editor) load(ctx context.Context, n *node) error {
	if n.below != nil {
		return nil
	}
	entries, err := e.repo.entries(ctx, n.OID)
	if err != nil {
		return err
	}
	n.below = make(map[string]*node, len(entries))
	for _, entry := range entries {
		n.below[entry.Name] = &node{Entry: entry}
	}
	return nil
}

// find returns the node at a path, or nil.
func (e *editor) find(ctx context.Context, path string) (*node, error) {
	n := e.root
	for name := range strings.SplitSeq(path, "/") {
		if n.Type != TypeTree {
			return nil, nil
		}
		if err := e.load(ctx, n); err != nil {
			return nil, err
		}
		if n = n.below[name]; n == nil {
			return nil, nil
		}
	}
	return n, nil
}

// put creates or replaces a file and creates its parent directories. It returns
// ErrExists if the path is a directory or a parent is a file.
func (e *editor) put(ctx context.Context, path, mode string, id OID) error {
	dir := e.root
	parts := strings.Split(path, "/")
	for i, name := range parts {
		if err := e.load(ctx, dir); err != nil {
			return err
		}
		dir.changed = true
		next := dir.below[name]
		last := i == len(parts)-1
		switch {
		case last && next != nil && next.Type == TypeTree, !last && next != nil && next.Type != TypeTree:
			return fmt.Errorf("%.200q is in the way: %w", strings.Join(parts[:i+1], "/"), ErrExists)
		case last:
			kind := TypeBlob
			if mode == submoduleMode {
				kind = TypeCommit
			}
			dir.below[name] = &node{Entry: Entry{OID: id, Name: name, Type: kind, Mode: mode}, changed: true}
		case next == nil:
			next = &node{Entry: Entry{OID: EmptyTree, Name: name, Type: TypeTree, Mode: "040000"}, below: map[string]*node{}}
			dir.below[name] = next
		}
		dir = next
	}
	return nil
}

// remove deletes a file that exists, and the parent directories that become empty.
func (e *editor) remove(path string) {
	var above []*node
	at := e.root
	parts := strings.Split(path, "/")
	for _, name := range parts {
		at.changed = true
		above = append(above, at)
		at = at.below[name]
	}
	for i := len(parts) - 1; i >= 0; i-- {
		delete(above[i].below, parts[i])
		if len(above[i].below) > 0 {
			return
		}
	}
}

func (e *editor) apply(ctx context.Context, a Action) error {
	if err := CheckNewPath(a.Path); err != nil {
		return err
	}
	if a.Kind == Move {
		return e.move(ctx, a)
	}
	found, err := e.find(ctx, a.Path)
	if err != nil {
		return err
	}
	if a.Kind == Submodule {
		return e.setSubmodule(ctx, a, found)
	}
	if found != nil && found.Type != TypeBlob && a.Kind != Create {
		found = nil // not a file
	}
	switch a.Kind {
	case Create:
		if found != nil {
			return ErrExists
		}
	case Modify, Delete, Chmod:
		if found == nil {
			return ErrNotFound
		}
	default:
		return fmt.Errorf("unknown action: %w", ErrUnsupported)
	}
	switch a.Kind {
	case Create:
		mode := "100644"
		if a.Executable {
			mode = "100755"
		}
		return e.store(ctx, a.Path, mode, a.Content)
	case Modify:
		mode := found.Mode
		if mode == "120000" {
			mode = "100644" // replacing the content of a symbolic link makes it a regular file
		}
		return e.store(ctx, a.Path, mode, a.Content)
	case Delete:
		e.remove(a.Path)
	case Chmod:
		if found.Mode == "120000" {
			return ErrNotFound
		}
		mode := "100644"
		if a.Executable {
			mode = "100755"
		}
		return e.put(ctx, a.Path, mode, found.OID)
	}
	return nil
}

// submoduleMode is the mode of a submodule in a tree.
const submoduleMode = "160000"

// setSubmodule applies a Submodule action. found is the current entry or nil. It
// returns ErrNothing if the submodule already points to the commit.
func (e *editor) setSubmodule(ctx context.Context, a Action, found *node) error {
	to, ok := ParseOID(string(a.Content))
	switch {
	case !ok || to == ZeroOID:
		return fmt.Errorf("%w: %.100q is no commit", ErrUnsupported, a.Content)
	case found == nil || found.Type != TypeCommit:
		return ErrNotFound
	case found.OID == to:
		return ErrNothing
	}
	return e.put(ctx, a.Path, submoduleMode, to)
}

func (e *editor) move(ctx context.Context, a Action) error {
	if err := CheckNewPath(a.From); err != nil {
		return err
	}
	from, err := e.find(ctx, a.From)
	if err != nil {
		return err
	}
	if from == nil || from.Type != TypeBlob {
		return fmt.Errorf("from %.200q: %w", a.From, ErrNotFound)
	}
	e.remove(a.From) // removed first, because the new path may be that of its parent directory
	if found, err := e.find(ctx, a.Path); err != nil || found != nil {
		return errors.Join(err, errIf(found != nil, ErrExists))
	}
	if a.HasContent {
		return e.store(ctx, a.Path, from.Mode, a.Content)
	}
	return e.put(ctx, a.Path, from.Mode, from.OID)
}

func (e *editor) store(ctx context.Context, path, mode string, content []byte) error {
	id, err := e.new.write(TypeBlob, content)
	if err != nil {
		return err
	}
	return e.put(ctx, path, mode, id)
}

// save writes the changed trees and returns the ID of the root.
func (e *editor) save(n *node) (OID, error) {
	if !n.changed {
		return n.OID, nil
	}
	entries := make([]Entry, 0, len(n.below))
	for _, below := range n.below {
		if below.Type == TypeTree && below.changed {
			id, err := e.save(below)
			if err != nil {
				return "", err
			}
			below.OID = id
		}
		entries = append(entries, below.Entry)
	}
	content, err := object.EncodeTree(entries)
	if err != nil {
		return "", err
	}
	return e.new.write(TypeTree, content)
}
