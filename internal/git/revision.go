package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// suffixes are the steps from one object to another that callers may ask for.
// What searches the history by text or reads reflogs is left out: it costs
// without bound, or means nothing here.
var suffixes = regexp.MustCompile(`^(?:~[0-9]{0,6}|\^[0-9]{0,3}|\^\{(?:|commit|tree|blob|tag|object)\})*$`)

// splitRevision takes "main~3^{tree}" apart. It returns ErrBadRevision.
func splitRevision(rev string) (base, suffix string, err error) {
	base = rev
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		base, suffix = rev[:i], rev[i:]
	}
	if len(rev) > refstore.MaxName || strings.HasPrefix(rev, "-") || base != "@" && !refstore.WellFormedOneLevel(base) || !suffixes.MatchString(suffix) {
		return "", "", fmt.Errorf("%w: %.100q", ErrBadRevision, rev)
	}
	return base, suffix, nil
}

// Resolve finds the object that a revision names: a full or short id, HEAD or
// @, a ref in full or in short, each with ~n, ^n and ^{type} behind it. A tag
// is not followed unless ^{} says so. Of a branch and a tag of the same name
// the branch is taken, unlike git: anyone who may create tags must not decide
// what the name of a branch means.
//
// Ranges, searches of the history (^{/text}, :/text), reflogs (@{1}) and paths
// (main:README) are refused. With a view the revision must lead there from a
// visible ref.
//
// It returns ErrBadRevision for what can be no revision and ErrNotFound.
func (r Repo) Resolve(ctx context.Context, rev string) (OID, Type, error) {
	info, err := r.resolve(ctx, rev, "")
	return info.OID, info.Type, err
}

// ResolveCommit is Resolve for a revision that leads to a commit: tags are
// followed. It returns ErrNotFound for one that leads to something else.
func (r Repo) ResolveCommit(ctx context.Context, rev string) (OID, error) {
	info, err := r.resolve(ctx, rev, TypeCommit)
	return info.OID, err
}

// ResolveTree is Resolve for a revision that leads to a tree: that of a
// commit, also behind a tag, or the tree itself.
func (r Repo) ResolveTree(ctx context.Context, rev string) (OID, error) {
	info, err := r.resolve(ctx, rev, TypeTree)
	return info.OID, err
}

func (r Repo) resolve(ctx context.Context, rev string, want Type) (Info, error) {
	base, suffix, err := splitRevision(rev)
	if err != nil {
		return Info{}, err
	}
	id, isID := ParseOID(base)
	if !isID {
		id, err = r.lookup(ctx, base)
		if errors.Is(err, ErrNotFound) && len(base) >= 4 && len(base) <= 40 && refstore.IsHex(base) {
			isID = true
			id, err = r.expand(ctx, base, suffix, want)
		}
		if err != nil {
			return Info{}, err
		}
	}
	if isID {
		if err := r.see(ctx, id); err != nil {
			return Info{}, err
		}
	}
	info, err := r.lead(ctx, id, isID, suffix, want)
	if err == nil {
		r.view.add(id, info.OID)
	}
	return info, err
}

// expand finds the object of a short id. Where a commit is wanted, other
// objects with the same beginning do not matter.
func (r Repo) expand(ctx context.Context, short, suffix string, want Type) (OID, error) {
	name := short
	if suffix != "" || want == TypeCommit || want == TypeTree {
		name += "^{commit}"
	}
	info, err := r.ask(ctx, name, false)
	if errors.Is(err, ErrNotFound) && name != short {
		info, err = r.ask(ctx, short, false) // a tree, perhaps
	}
	return info.OID, err
}

// lead goes from an object by the steps of a suffix to the wanted type.
func (r Repo) lead(ctx context.Context, id OID, named bool, suffix string, want Type) (Info, error) {
	if suffix == "" {
		// What a ref holds is most likely a commit, and is read at once.
		_, known := r.engine.cache.get(cacheKey{r.scope(), kindInfo, string(id)})
		if !named && !known && (want == TypeCommit || want == TypeTree) {
			if _, err := r.commit(ctx, id); err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrTooLarge) {
				return Info{}, err
			}
		}
		return r.peel(ctx, id, want)
	}
	name := string(id) + suffix
	if want != "" {
		name += "^{" + string(want) + "}"
	}
	return r.ask(ctx, name, true)
}

// peel follows an object to the wanted type. Most need no asking: a commit is
// itself, and its tree is in it.
func (r Repo) peel(ctx context.Context, id OID, want Type) (Info, error) {
	info, err := r.Info(ctx, id)
	if err != nil || want == "" || info.Type == want {
		return info, err
	}
	if info.Type == TypeCommit && want == TypeTree {
		c, err := r.commit(ctx, id)
		if err != nil {
			return Info{}, err
		}
		return Info{OID: c.TreeID, Type: TypeTree}, nil // the size is known once it is read
	}
	return r.ask(ctx, string(id)+"^{"+string(want)+"}", true)
}

// ask has git find an object by name. What is named from a full id is so
// forever.
func (r Repo) ask(ctx context.Context, name string, fixed bool) (Info, error) {
	key := cacheKey{r.scope(), kindPeel, name}
	if fixed {
		if v, ok := r.engine.cache.get(key); ok {
			return v.(Info), nil
		}
	}
	var info Info
	err := r.withReader(ctx, func(p *reader) (err error) {
		info, err = p.info(name)
		return err
	})
	if err == nil && fixed {
		r.engine.cache.put(key, info, 0)
	}
	return info, err
}
