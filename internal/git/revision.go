package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// suffixes matches the allowed suffixes of a revision. Text searches and reflogs
// are not supported: they are expensive or meaningless here.
var suffixes = regexp.MustCompile(`^(?:~[0-9]{0,6}|\^[0-9]{0,3}|\^\{(?:|commit|tree|blob|tag|object)\})*$`)

// splitRevision splits "main~3^{tree}" into base and suffix. It returns
// ErrBadRevision.
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

// Resolve returns the object that a revision refers to: a full or abbreviated ID,
// HEAD, @, or a full or short ref name, each optionally followed by ~n, ^n and
// ^{type}. Tags are followed only with ^{}. If a branch and a tag have the same
// name, the branch is used, unlike in git: users who may create tags must not be
// able to redefine branch names.
//
// Ranges, text searches (^{/text}, :/text), reflogs (@{1}) and paths (main:README)
// are refused. With a view the object must be reachable from a visible ref.
//
// It returns ErrBadRevision for invalid syntax, and ErrNotFound.
func (r Repo) Resolve(ctx context.Context, rev string) (OID, Type, error) {
	info, err := r.resolve(ctx, rev, "")
	return info.OID, info.Type, err
}

// ResolveCommit is Resolve for commits; tags are followed. It returns ErrNotFound
// if the revision does not refer to a commit.
func (r Repo) ResolveCommit(ctx context.Context, rev string) (OID, error) {
	info, err := r.resolve(ctx, rev, TypeCommit)
	return info.OID, err
}

// ResolveTree is Resolve for trees; tags and commits are followed.
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
	info, err := r.applySuffix(ctx, id, isID, suffix, want)
	if err == nil {
		r.view.add(id, info.OID)
	}
	return info, err
}

// expand resolves an abbreviated ID. If a commit is wanted, other objects with the
// same prefix do not make it ambiguous.
func (r Repo) expand(ctx context.Context, short, suffix string, want Type) (OID, error) {
	name := short
	if suffix != "" || want == TypeCommit || want == TypeTree {
		name += "^{commit}"
	}
	info, err := r.ask(ctx, name, false)
	if errors.Is(err, ErrNotFound) && name != short {
		info, err = r.ask(ctx, short, false) // it may be a tree
	}
	return info.OID, err
}

// applySuffix follows the suffix from an object to the wanted type.
func (r Repo) applySuffix(ctx context.Context, id OID, isID bool, suffix string, want Type) (Info, error) {
	if suffix == "" {
		// Most refs point to commits, so the commit is read at once.
		_, known := r.engine.cache.get(cacheKey{r.scope(), kindInfo, string(id)})
		if !isID && !known && (want == TypeCommit || want == TypeTree) {
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

// peel follows an object to the wanted type. For commits and their trees the
// cached commit is enough.
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
		return Info{OID: c.TreeID, Type: TypeTree}, nil // the size is not needed here
	}
	return r.ask(ctx, string(id)+"^{"+string(want)+"}", true)
}

// ask resolves a name with git. fixed means that the result never changes, because
// the name starts with a full ID.
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
