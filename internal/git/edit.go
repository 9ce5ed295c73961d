package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ActionKind is what an Action does.
type ActionKind string

// The kinds of actions.
const (
	Create ActionKind = "create" // a file that is not there
	Modify ActionKind = "update" // a file that is there
	Delete ActionKind = "delete"
	Move   ActionKind = "move" // with new content, if there is any
	Chmod  ActionKind = "chmod"
	// Submodule points a submodule that is there to another commit: its ID is Content.
	Submodule ActionKind = "submodule"
)

// Action changes one file.
type Action struct {
	Kind       ActionKind
	Path       string
	From       string // where Move takes it from
	Content    []byte // of Create and Modify, and of Move when HasContent
	HasContent bool
	Executable bool // of Chmod, and of Create
}

// CheckNewPath says whether a file may be made under the path: beside being
// relative and without dots, no part may be one that a client takes for its
// own .git directory. It returns ErrBadPath.
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

// looksLikeGitDir knows the ways in which file systems of clients fold names
// into ".git".
func looksLikeGitDir(part string) bool {
	folded := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // left out by HFS+
			return -1
		}
		return unicode.ToLower(r)
	}, part)
	folded, _, _ = strings.Cut(folded, ":") // a stream of NTFS
	folded, _, _ = strings.Cut(folded, `\`)
	folded = strings.TrimRight(folded, ". ")
	return folded == ".git" || folded == "git~1"
}

// node is a name in a tree that is being changed. Trees are read when
// something below them is asked for.
type node struct {
	Entry
	below   map[string]*node // of a tree that was read
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

// find returns the node of a path, or nil.
func (e *editor) find(ctx context.Context, path string) (*node, error) {
	at := e.root
	for name := range strings.SplitSeq(path, "/") {
		if at.Type != TypeTree {
			return nil, nil
		}
		if err := e.load(ctx, at); err != nil {
			return nil, err
		}
		if at = at.below[name]; at == nil {
			return nil, nil
		}
	}
	return at, nil
}

// put makes or replaces a file, with the directories that it needs. It
// returns ErrExists when a directory of its name, or a file of the name of one
// of its directories, is in the way.
func (e *editor) put(ctx context.Context, path, mode string, id OID) error {
	at := e.root
	parts := strings.Split(path, "/")
	for i, name := range parts {
		if err := e.load(ctx, at); err != nil {
			return err
		}
		at.changed = true
		next := at.below[name]
		last := i == len(parts)-1
		switch {
		case last && next != nil && next.Type == TypeTree, !last && next != nil && next.Type != TypeTree:
			return fmt.Errorf("%.200q is in the way: %w", strings.Join(parts[:i+1], "/"), ErrExists)
		case last:
			kind := TypeBlob
			if mode == submoduleMode {
				kind = TypeCommit
			}
			at.below[name] = &node{Entry: Entry{OID: id, Name: name, Type: kind, Mode: mode}, changed: true}
		case next == nil:
			next = &node{Entry: Entry{OID: EmptyTree, Name: name, Type: TypeTree, Mode: "040000"}, below: map[string]*node{}}
			at.below[name] = next
		}
		at = next
	}
	return nil
}

// remove drops a file that find gave, and the directories that it leaves
// empty.
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
		return e.point(ctx, a, found)
	}
	if found != nil && found.Type != TypeBlob && a.Kind != Create {
		found = nil // a directory or a submodule is no file
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
			mode = "100644" // text that is written over a link is a file
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

// point applies Submodule to the entry of its path, which may be nil. It returns
// ErrNothing if it is at that commit already.
func (e *editor) point(ctx context.Context, a Action, found *node) error {
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
	e.remove(a.From) // first: the new name may be that of its directory
	if found, err := e.find(ctx, a.Path); err != nil || found != nil {
		return errors.Join(err, onlyIf(found != nil, ErrExists))
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

// save writes the trees that changed and gives the id of the root.
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
	content, err := encodeTree(entries)
	if err != nil {
		return "", err
	}
	return e.new.write(TypeTree, content)
}
