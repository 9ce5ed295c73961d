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

// The places of refs.
const (
	Heads = refstore.Heads
	Tags  = refstore.Tags
)

// Ref is a ref that leads to an object.
type Ref struct {
	Name   string // in full
	ID     OID    // what it holds
	Tag    OID    // the annotated tag that it holds, or empty
	Target OID    // what it leads to when tags are followed
}

// Short is the name of a branch or tag as users know it.
func (r Ref) Short() string {
	for _, place := range []string{Heads, Tags} {
		if s, ok := strings.CutPrefix(r.Name, place); ok {
			return s
		}
	}
	return r.Name
}

// RefOrder is how refs are sorted.
type RefOrder int

// The orders. Time is that of the tag, or of the commit; refs of one time
// are in the order of their names, as are those that lead to something else,
// which come last.
const (
	ByName RefOrder = iota
	ByNameDown
	OldestFirst
	NewestFirst
)

// RefOptions says which refs are wanted.
type RefOptions struct {
	Place string // Heads, Tags or another that ends with a slash; empty is refs/
	// Match is asked about the name behind the place; nil takes all.
	Match func(string) bool
	Order RefOrder
	After string // begin behind the ref of this full name; it need not exist, but by time it must
	Limit int    // the most refs; 0 is all

	plain bool // do not look where they lead: Tag and Target stay empty
}

// Refs lists refs. A page by name costs no more than looking at the names; one
// by time has to know every commit that is matched. A ref whose object is
// missing is left out, as git does: one that is broken must not hide the
// others. It returns ErrNotFound when After is needed for a place in time and
// is not there.
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

// Ref reads one ref by its full name. It returns ErrNotFound and ErrBadRef.
func (r Repo) Ref(ctx context.Context, name string) (Ref, error) {
	if err := CheckRef(name); err != nil {
		return Ref{}, err
	}
	id, err := r.lookup(ctx, name)
	if err != nil {
		return Ref{}, err
	}
	ref, err := r.led(ctx, name, id)
	r.view.add(ref.ID, ref.Target)
	return ref, err
}

// RefsNamed reads refs by their full names, which RefNames gave, in that order.
// Refs that are gone, or whose object is missing, are left out.
func (r Repo) RefsNamed(ctx context.Context, names []string) ([]Ref, error) {
	ids, err := r.refs.All(ctx, names)
	if err != nil {
		return nil, err
	}
	// Most are commits, which are read together.
	if _, err := r.readCommits(ctx, slices.DeleteFunc(slices.Clone(ids), func(id OID) bool { return id == "" }), true); err != nil {
		return nil, err
	}
	list := make([]Ref, 0, len(names))
	for i, name := range names {
		if ids[i] == "" {
			continue
		}
		ref, err := r.led(ctx, name, ids[i])
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

// HasRef reports whether there is a ref of the full name, whatever it holds. It
// takes no process. It returns ErrBadRef and ErrNoRepository.
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

// lookup finds the id of a ref by a name that passed WellFormedOneLevel: in
// full or in short, a branch before a tag and both before all else. Refs that
// the reader cannot name are not there. It returns ErrNotFound.
func (r Repo) lookup(ctx context.Context, name string) (OID, error) {
	places := []string{Heads, Tags, "refs/", "refs/remotes/"}
	switch {
	case name == "@" || name == "HEAD":
		name, places = "HEAD", []string{""}
	case strings.HasPrefix(name, "refs/"):
		places = []string{""}
	}
	for i := range places {
		places[i] += name
	}
	if r.view != nil {
		places = slices.DeleteFunc(places, func(full string) bool { return !r.view.names(full) })
	}
	// No one pushes to the last one, so it is not asked for until it must be.
	for _, some := range [][]string{places[:min(len(places), 3)], places[min(len(places), 3):]} {
		if id, err := r.refs.First(ctx, some); !errors.Is(err, ErrNotFound) {
			return id, err
		}
	}
	if err := r.refs.Exists(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("ref %.100q: %w", name, ErrNotFound)
}

// follow finds the id of a ref by its full name, through symbolic refs.
func (r Repo) follow(ctx context.Context, name string) (OID, error) {
	return r.refs.First(ctx, []string{name})
}

// list returns the refs that are wanted, in the order of their names.
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

// addRef reads a ref that was listed. One that went meanwhile is left out.
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
		ref, err = r.led(ctx, name, at.ID)
	}
	if errors.Is(err, ErrNotFound) {
		return list, nil
	}
	return append(list, ref), err
}

// led finds out what a ref leads to.
func (r Repo) led(ctx context.Context, name string, id OID) (Ref, error) {
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

// refTime is when the tag or commit of a ref was made; zero for a ref that
// leads to something else.
func (r Repo) refTime(ctx context.Context, ref Ref) (time.Time, error) {
	if ref.Tag != "" {
		t, err := r.Tag(ctx, ref.Tag)
		if err != nil || !t.Tagger.When.IsZero() {
			return t.taggedAt(), err
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

func (t *Tag) taggedAt() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Tagger.When
}

// DefaultBranch is the branch that HEAD names, whether it exists or not.
func (r Repo) DefaultBranch(ctx context.Context) (string, error) { return r.refs.Head(ctx) }
