package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/git/refstore"
)

// Prefixes of refs.
const (
	Heads = refstore.Heads
	Tags  = refstore.Tags
)

type Ref struct {
	Name   string // full name
	ID     OID    // the object it points to
	Tag    OID    // the annotated tag it points to, or empty
	Target OID    // the object after following tags
}

// Short returns the name of a branch or tag without its prefix.
func (r Ref) Short() string {
	for _, prefix := range []string{Heads, Tags} {
		if s, ok := strings.CutPrefix(r.Name, prefix); ok {
			return s
		}
	}
	return r.Name
}

// RefOrder is the order of refs.
type RefOrder int

// The orders. The time is that of the tag or commit. Refs with the same time are
// sorted by name. Refs to other objects come last.
const (
	ByName RefOrder = iota
	ByNameDown
	OldestFirst
	NewestFirst
)

// RefOptions selects refs.
type RefOptions struct {
	Place string // Heads, Tags or another prefix that ends with a slash; empty means refs/
	// Match gets the name without the prefix; nil matches all.
	Match func(string) bool
	Order RefOrder
	After string // full name of the ref to start after; it must exist if the order is by time
	Limit int    // 0 means no limit

	plain bool // do not read the objects: Tag and Target stay empty
}

// Refs lists refs. By name, a page costs no more than listing the names; by time,
// every matching commit is read. Refs to missing objects are skipped, as in git.
// It returns ErrNotFound if the order is by time and After does not exist.
func (r Repo) Refs(ctx context.Context, o RefOptions) ([]Ref, error) {
	if o.Place == "" {
		o.Place = "refs/"
	}
	found, err := r.list(ctx, o)
	if err != nil {
		return nil, err
	}
	names := found.Names
	if o.Order == ByNameDown {
		names = slices.Clone(names)
		slices.Reverse(names)
	}
	if o.Order == OldestFirst || o.Order == NewestFirst {
		return r.refsByTime(ctx, o, found)
	}
	var list []Ref
	for _, name := range names {
		if o.After != "" && (o.Order == ByName && name <= o.After || o.Order == ByNameDown && name >= o.After) {
			continue
		}
		if o.Limit > 0 && len(list) == o.Limit {
			break
		}
		list, err = r.addRef(ctx, list, name, found, o.plain)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Ref returns a ref by its full name. It returns ErrNotFound and ErrBadRef.
func (r Repo) Ref(ctx context.Context, name string) (Ref, error) {
	if err := CheckRef(name); err != nil {
		return Ref{}, err
	}
	id, err := r.lookup(ctx, name)
	if err != nil {
		return Ref{}, err
	}
	ref, err := r.peelRef(ctx, name, id)
	r.view.add(ref.ID, ref.Target)
	return ref, err
}

// RefsNamed returns refs by full names from RefNames, in the given order. Refs
// that do not exist any more, or whose object is missing, are skipped.
func (r Repo) RefsNamed(ctx context.Context, names []string) ([]Ref, error) {
	ids, err := r.refs.All(ctx, names)
	if err != nil {
		return nil, err
	}
	// Most refs are commits, which are read in one batch.
	if _, err := r.readCommits(ctx, slices.DeleteFunc(slices.Clone(ids), func(id OID) bool { return id == "" }), true); err != nil {
		return nil, err
	}
	list := make([]Ref, 0, len(names))
	for i, name := range names {
		if ids[i] == "" {
			continue
		}
		ref, err := r.peelRef(ctx, name, ids[i])
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.view.add(ref.ID, ref.Target)
		list = append(list, ref)
	}
	return list, nil
}

// HasRef reports whether a ref exists. It takes no process. It returns ErrBadRef
// and ErrNoRepository.
func (r Repo) HasRef(ctx context.Context, name string) (bool, error) {
	if err := CheckRef(name); err != nil {
		return false, err
	}
	_, err := r.lookup(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// lookup resolves a full or short name that passed WellFormedOneLevel. Branches
// take precedence over tags, and both over other refs. Refs that the view hides do
// not exist. It returns ErrNotFound.
func (r Repo) lookup(ctx context.Context, name string) (OID, error) {
	names := []string{Heads, Tags, "refs/", "refs/remotes/"}
	switch {
	case name == "@" || name == "HEAD":
		name, names = "HEAD", []string{""}
	case strings.HasPrefix(name, "refs/"):
		names = []string{""}
	}
	for i := range names {
		names[i] += name
	}
	if r.view != nil {
		names = slices.DeleteFunc(names, func(full string) bool { return !r.view.names(full) })
	}
	// refs/remotes/ is hardly ever used, so it is looked up last.
	for _, batch := range [][]string{names[:min(len(names), 3)], names[min(len(names), 3):]} {
		if id, err := r.refs.First(ctx, batch); !errors.Is(err, ErrNotFound) {
			return id, err
		}
	}
	if err := r.refs.Exists(ctx); err != nil {
		return "", err
	}
	return "", fmt.Errorf("ref %.100q: %w", name, ErrNotFound)
}

// follow resolves a full ref name, following symbolic refs.
func (r Repo) follow(ctx context.Context, name string) (OID, error) {
	return r.refs.First(ctx, []string{name})
}

// list returns the names of the selected refs, sorted.
func (r Repo) list(ctx context.Context, o RefOptions) (refstore.Listing, error) {
	if !refstore.WellFormedOneLevel(strings.TrimSuffix(o.Place, "/")) {
		return refstore.Listing{}, fmt.Errorf("%w: %.100q", ErrBadRef, o.Place)
	}
	if o.Match == nil && r.view.namesAll(o.Place) {
		return r.refs.List(ctx, o.Place, nil)
	}
	return r.refs.List(ctx, o.Place, func(name string) bool {
		return r.view.names(name) && (o.Match == nil || o.Match(name[len(o.Place):]))
	})
}

// addRef reads a listed ref. A ref that was deleted in the meantime is skipped.
func (r Repo) addRef(ctx context.Context, list []Ref, name string, in refstore.Listing, plain bool) ([]Ref, error) {
	at, err := in.Read(name)
	ref := Ref{Name: name, ID: at.ID}
	switch {
	case err != nil:
	case at.Known && at.Peeled != "":
		ref.Tag, ref.Target = at.ID, at.Peeled
	case at.Known:
		ref.Target = at.ID
	case !plain:
		ref, err = r.peelRef(ctx, name, at.ID)
	}
	if errors.Is(err, ErrNotFound) {
		return list, nil
	}
	return append(list, ref), err
}

// peelRef determines the target of a ref.
func (r Repo) peelRef(ctx context.Context, name string, id OID) (Ref, error) {
	info, err := r.Info(ctx, id)
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Name: name, ID: id, Target: id}
	if info.Type == TypeTag {
		end, err := r.ask(ctx, string(id)+"^{}", true)
		if err != nil {
			return Ref{}, err
		}
		ref.Tag, ref.Target = id, end.OID
	}
	return ref, nil
}

func (r Repo) refsByTime(ctx context.Context, o RefOptions, found refstore.Listing) ([]Ref, error) {
	type dated struct {
		Ref
		when time.Time
	}
	var all []dated
	var list []Ref
	for _, name := range found.Names {
		var err error
		if list, err = r.addRef(ctx, list[:0], name, found, false); err != nil {
			return nil, err
		}
		for _, ref := range list {
			when, err := r.refTime(ctx, ref)
			if err != nil {
				return nil, err
			}
			all = append(all, dated{ref, when})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int {
		switch {
		case a.when.IsZero() || b.when.IsZero():
			return b.when.Compare(a.when)
		case o.Order == NewestFirst:
			return b.when.Compare(a.when)
		}
		return a.when.Compare(b.when)
	})
	if o.After != "" {
		at := slices.IndexFunc(all, func(d dated) bool { return d.Name == o.After })
		if at < 0 {
			return nil, fmt.Errorf("ref %.100q: %w", o.After, ErrNotFound)
		}
		all = all[at+1:]
	}
	if o.Limit > 0 && len(all) > o.Limit {
		all = all[:o.Limit]
	}
	page := make([]Ref, len(all))
	for i, d := range all {
		page[i] = d.Ref
	}
	return page, nil
}

// refTime returns the time of the tag or commit of a ref, or the zero time for
// other objects.
func (r Repo) refTime(ctx context.Context, ref Ref) (time.Time, error) {
	if ref.Tag != "" {
		t, err := r.Tag(ctx, ref.Tag)
		if err != nil {
			return time.Time{}, err
		}
		if !t.Tagger.When.IsZero() {
			return t.Tagger.When, nil
		}
	}
	c, err := r.commit(ctx, ref.Target)
	if errors.Is(err, ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return c.Committer.When, nil
}

// DefaultBranch returns the branch that HEAD refers to, which need not exist.
func (r Repo) DefaultBranch(ctx context.Context) (string, error) { return r.refs.Head(ctx) }
