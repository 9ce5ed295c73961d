package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// View defines which refs of a repository a reader can see.
type View struct {
	// Hide are the prefixes of refs that do not exist for the reader, including
	// objects reachable only from them.
	Hide []string
	// Internal are the prefixes of refs that the reader cannot name. Objects reachable
	// from them can be read.
	Internal []string
}

// view is the View of a handle with the IDs that are known to be visible, so that
// a handle checks each only once.
type view struct {
	View
	mu    sync.Mutex
	found map[OID]struct{}
}

// maxFound is the maximum number of remembered IDs.
const maxFound = 1000

func (v *view) add(ids ...OID) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.found == nil {
		v.found = make(map[OID]struct{}, len(ids))
	}
	for _, id := range ids {
		if id != "" && len(v.found) < maxFound {
			v.found[id] = struct{}{}
		}
	}
}

func (v *view) has(id OID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.found[id]
	return ok
}

// names reports whether the reader may name a ref. A nil view allows all.
func (v *view) names(ref string) bool {
	return v == nil || !below(ref, v.Hide) && !below(ref, v.Internal)
}

// namesAll reports whether the reader may name every ref below a prefix that ends
// with a slash.
func (v *view) namesAll(prefix string) bool {
	if v == nil {
		return true
	}
	related := func(hidden string) bool {
		hidden = strings.TrimSuffix(hidden, "/") + "/"
		return strings.HasPrefix(hidden, prefix) || strings.HasPrefix(prefix, hidden)
	}
	return !slices.ContainsFunc(v.Hide, related) && !slices.ContainsFunc(v.Internal, related)
}

// below reports whether a ref equals or is below one of the prefixes.
func below(ref string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		prefix = strings.TrimSuffix(prefix, "/")
		return strings.HasPrefix(ref, prefix) && (len(ref) == len(prefix) || ref[len(prefix)] == '/')
	})
}

// As returns the repository as a reader sees it. Revisions must refer to visible
// refs or to objects reachable from them; everything else is ErrNotFound.
// Resolving a branch or tag costs no more than without a view.
//
// Methods that take an OID do not check it: IDs from users must be resolved first.
func (r Repo) As(v View) Repo {
	r.view = &view{View: v}
	return r
}

// Whole returns the repository without a view, for IDs that do not come from
// users.
func (r Repo) Whole() Repo {
	r.view = nil
	return r
}

// see returns ErrNotFound for an object that the reader cannot see.
func (r Repo) see(ctx context.Context, id OID) error {
	if r.view == nil || r.view.has(id) {
		return nil
	}
	whole := r.Whole()
	info, err := whole.Info(ctx, id)
	if err != nil {
		return err
	}
	if info.Type == TypeCommit {
		// Most requested commits are on the default branch.
		head, err := whole.lookup(ctx, "HEAD")
		if err == nil {
			var isAncestor bool
			if isAncestor, err = whole.IsAncestor(ctx, string(id), string(head)); isAncestor {
				r.view.add(id)
				return nil
			}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	tips, err := whole.tips(ctx, func(ref string) bool { return below(ref, r.view.Hide) })
	if err != nil {
		return err
	}
	left, err := whole.unreachable(ctx, []Info{info}, tips)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("object %s: no visible ref leads to it: %w", id, ErrNotFound)
	}
	r.view.add(id)
	return nil
}

// tips are the objects that refs point to.
type tips struct {
	ids  map[OID]bool
	tags []string // "<id> <name>" of each tag
	sum  string   // hash of the set
}

// tips returns the objects of the refs that are not hidden.
func (r Repo) tips(ctx context.Context, hidden func(ref string) bool) (*tips, error) {
	refs, err := r.Refs(ctx, RefOptions{plain: true})
	if err != nil {
		return nil, err
	}
	t := &tips{ids: make(map[OID]bool, len(refs))}
	for _, ref := range refs {
		if hidden(ref.Name) {
			continue
		}
		t.ids[ref.ID] = true
		if strings.HasPrefix(ref.Name, Tags) {
			t.tags = append(t.tags, string(ref.ID)+" "+ref.Name)
		}
	}
	sum := sha256.New()
	for _, id := range t.sorted() {
		_, _ = io.WriteString(sum, string(id))
	}
	t.sum = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}

func (t *tips) sorted() []OID {
	list := make([]OID, 0, len(t.ids))
	for id := range t.ids {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// unreachable returns the objects that are not reachable from any tip. The result
// for a set of tips never changes, so it is cached.
//
// Tags must be tips themselves. For commits, one walk stops where their history
// meets that of the tips. Blobs and trees are searched first in the newest trees,
// then in the whole history.
func (r Repo) unreachable(ctx context.Context, objects []Info, t *tips) (left []OID, err error) {
	key := func(id OID) cacheKey { return cacheKey{r.scope(), kindAnswer, "reach " + string(id) + t.sum} }
	var commits, parts []OID
	for _, o := range objects {
		if t.ids[o.OID] {
			continue
		}
		if v, ok := r.engine.cache.get(key(o.OID)); ok {
			if !v.(bool) {
				left = append(left, o.OID)
			}
			continue
		}
		switch o.Type {
		case TypeCommit:
			commits = append(commits, o.OID)
		case TypeTag:
			left = append(left, o.OID)
		default:
			parts = append(parts, o.OID)
		}
	}
	lost, err := r.lostCommits(ctx, commits, t)
	if err != nil {
		return nil, err
	}
	lostParts, err := r.lostParts(ctx, parts, t)
	if err != nil {
		return nil, err
	}
	lost = append(lost, lostParts...)
	isLost := setOf(lost)
	for _, id := range append(commits, parts...) {
		r.engine.cache.put(key(id), !isLost[id], 0)
	}
	return append(left, lost...), nil
}

// lostCommits returns the commits that are not reachable from a tip.
func (r Repo) lostCommits(ctx context.Context, ids []OID, t *tips) ([]OID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var in strings.Builder
	for _, id := range ids {
		in.WriteString(string(id) + "\n")
	}
	for _, id := range t.sorted() {
		in.WriteString("^" + string(id) + "\n")
	}
	wanted := setOf(ids)
	var lost []OID
	// --ignore-missing: a broken ref must not hide objects of other refs.
	args := []string{"rev-list", "--ignore-missing", "--stdin"}
	if len(ids) == 1 {
		args = append(args, "--max-count=1")
	}
	c := command{args: args, in: strings.NewReader(in.String())}
	err := r.run(ctx, c, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			if wanted[id] {
				lost = append(lost, id)
			}
			if len(lost) == len(ids) {
				return errEnough
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for commits in the history: %w", err)
	}
	return lost, nil
}

// lostParts returns the blobs and trees that are not reachable from a tip.
func (r Repo) lostParts(ctx context.Context, ids []OID, t *tips) ([]OID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var wanted, without, with strings.Builder
	for _, id := range ids {
		wanted.WriteString(string(id) + "\n")
	}
	for _, id := range t.sorted() {
		without.WriteString("^" + string(id) + "\n")
		with.WriteString(string(id) + "\n")
	}
	// With a bitmap, the first step finds everything. Without one it is cheap and
	// finds nothing; then the trees of the tips are searched, and finally the whole
	// history.
	left, err := r.listed(ctx, ids, wanted.String()+without.String(), "--use-bitmap-index")
	for _, walk := range []string{"--no-walk=unsorted", "--do-walk"} {
		if err != nil || len(left) == 0 {
			return nil, err
		}
		var found []OID
		if found, err = r.listed(ctx, left, with.String(), walk); err == nil {
			isFound := setOf(found)
			left = slices.DeleteFunc(left, func(id OID) bool { return isFound[id] })
		}
	}
	return left, err
}

func setOf(ids []OID) map[OID]bool {
	set := make(map[OID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// listed returns the IDs that rev-list prints for the input.
func (r Repo) listed(ctx context.Context, ids []OID, input, option string) ([]OID, error) {
	wanted := setOf(ids)
	var found []OID
	args := []string{"rev-list", "--objects", "--no-object-names", "--ignore-missing", option, "--stdin"}
	err := r.run(ctx, command{args: args, in: strings.NewReader(input)}, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			if wanted[id] {
				delete(wanted, id)
				found = append(found, id)
			}
			if len(wanted) == 0 {
				return errEnough
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for objects in the history: %w", err)
	}
	return found, nil
}
