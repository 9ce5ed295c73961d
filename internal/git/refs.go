package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The places of refs.
const (
	Heads = "refs/heads/"
	Tags  = "refs/tags/"
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
	names, packed, err := r.refNames(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Order == ByNameDown {
		names = slices.Clone(names)
		slices.Reverse(names)
	}
	if o.Order == OldestFirst || o.Order == NewestFirst {
		return r.refsByTime(ctx, o, names, packed)
	}
	var list []Ref
	for _, name := range names {
		if o.After != "" && (o.Order == ByName && name <= o.After || o.Order == ByNameDown && name >= o.After) {
			continue
		}
		if o.Limit > 0 && len(list) == o.Limit {
			break
		}
		list, err = r.addRef(ctx, list, name, packed, o.plain)
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
	id, err := r.lookup(name)
	if err != nil {
		return Ref{}, err
	}
	ref, err := r.led(ctx, name, id)
	r.view.add(ref.ID, ref.Target)
	return ref, err
}

// RefsNamed reads refs by their full names, which RefNames gave, in that order.
// It looks for all files before it reads packed-refs once: a ref that is packed
// meanwhile is found there. Refs that are gone, or whose object is missing, are
// left out.
func (r Repo) RefsNamed(ctx context.Context, names []string) ([]Ref, error) {
	ids := make([]OID, len(names))
	all := true
	for i, name := range names {
		id, err := r.followLoose(name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		ids[i] = id
		all = all && id != ""
	}
	if !all {
		packed, err := r.packed()
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			if at, ok := packed.find(name); ok && ids[i] == "" {
				ids[i] = packed.refs[at].id
			}
		}
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
func (r Repo) HasRef(name string) (bool, error) {
	if err := CheckRef(name); err != nil {
		return false, err
	}
	_, err := r.lookup(name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// refNames returns the names below a place in order, which must not be changed.
// Loose refs are looked for first: one that is packed meanwhile is then found in the
// packed ones.
func (r Repo) refNames(ctx context.Context, o RefOptions) ([]string, *packedRefs, error) {
	dir := strings.TrimSuffix(o.Place, "/")
	if !wellFormedOneLevel(dir) {
		return nil, nil, fmt.Errorf("%w: %.100q", ErrBadRef, o.Place)
	}
	all := o.Match == nil && r.view.namesAll(o.Place)
	wanted := func(name string) bool {
		return all || r.view.names(name) && (o.Match == nil || o.Match(name[len(o.Place):]))
	}
	var loose []string
	err := r.looseNames(ctx, dir, func(name string) {
		if wanted(name) {
			loose = append(loose, name)
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list refs: %w", err)
	}
	packed, err := r.packed()
	if err != nil {
		return nil, nil, err
	}
	names := packed.below(o.Place)
	if !all {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !wanted(name) })
	}
	slices.Sort(loose)
	names = mergeNames(names, loose)
	if len(names) == 0 {
		if err := r.exists(); err != nil {
			return nil, nil, err
		}
	}
	return names, packed, nil
}

// mergeNames merges two sorted lists, of which the first is the longer one most of
// the time. It changes neither.
func mergeNames(packed, loose []string) []string {
	if len(loose) == 0 {
		return packed
	}
	names := make([]string, 0, len(packed)+len(loose))
	for _, name := range loose {
		at, found := slices.BinarySearch(packed, name)
		names = append(append(names, packed[:at]...), name)
		if found {
			at++
		}
		packed = packed[at:]
	}
	return append(names, packed...)
}

func (r Repo) looseNames(ctx context.Context, dir string, add func(string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(r.path, filepath.FromSlash(dir)))
	if err != nil {
		if notAFile(err) {
			return nil // it went meanwhile, or there never was one
		}
		return err
	}
	for _, f := range files {
		name := dir + "/" + f.Name()
		switch {
		case !wellFormed(name): // a lock, or the work of a stranger
		case f.IsDir():
			if err := r.looseNames(ctx, name, add); err != nil {
				return err
			}
		case f.Type() == 0:
			add(name)
		}
	}
	return nil
}

// addRef reads a ref that was listed. One that went meanwhile is left out.
func (r Repo) addRef(ctx context.Context, list []Ref, name string, packed *packedRefs, plain bool) ([]Ref, error) {
	text, err := os.ReadFile(filepath.Join(r.path, filepath.FromSlash(name)))
	if i, ok := packed.find(name); ok && notAFile(err) && (packed.peeled || packed.refs[i].peeled != "") {
		p := packed.refs[i]
		ref := Ref{Name: name, ID: p.id, Target: p.id}
		if p.peeled != "" {
			ref.Tag, ref.Target = p.id, p.peeled
		}
		return append(list, ref), nil
	}
	var id OID
	if err == nil {
		target := ""
		if id, target, err = parseRef(name, text); target != "" {
			id, err = r.follow(target)
		}
	} else {
		id, err = r.follow(name)
	}
	var ref Ref
	switch {
	case err == nil && plain:
		ref = Ref{Name: name, ID: id}
	case err == nil:
		ref, err = r.led(ctx, name, id)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) && id == "" {
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

func (r Repo) refsByTime(ctx context.Context, o RefOptions, names []string, packed *packedRefs) ([]Ref, error) {
	type dated struct {
		Ref
		when time.Time
	}
	var all []dated
	var list []Ref
	for _, name := range names {
		var err error
		if list, err = r.addRef(ctx, list[:0], name, packed, false); err != nil {
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
func (r Repo) DefaultBranch() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.path, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNoRepository, r.path)
	}
	if err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	_, target, err := parseRef("HEAD", text)
	branch, ok := strings.CutPrefix(target, Heads)
	if err != nil || !ok {
		return "", fmt.Errorf("HEAD is %.100q: %w", text, ErrCorrupt)
	}
	return branch, nil
}
