package git

import (
	"context"
	"fmt"

	"svc/internal/git/object"
	"svc/internal/limit"
)

// Commit returns the commit that a revision refers to, following tags. The result
// must not be modified. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Commit(ctx context.Context, rev string) (*Commit, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	return r.commit(ctx, id)
}

func (r Repo) commit(ctx context.Context, id OID) (*Commit, error) {
	list, err := r.commits(ctx, []OID{id})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Commits returns commits by ID, in the given order. Their messages count towards
// the read limit of the request in ctx: see limit.Answers.
func (r Repo) Commits(ctx context.Context, ids []OID) ([]*Commit, error) {
	list, err := r.commits(ctx, ids)
	if err != nil {
		return nil, err
	}
	reads := limit.ReadsOf(ctx)
	for _, c := range list {
		if err := reads.Add(len(c.Message)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// CommitsThere is Commits with nil for IDs that do not exist or are not commits.
func (r Repo) CommitsThere(ctx context.Context, ids []OID) ([]*Commit, error) {
	return r.readCommits(ctx, ids, true)
}

func (r Repo) commits(ctx context.Context, ids []OID) ([]*Commit, error) {
	return r.readCommits(ctx, ids, false)
}

func (r Repo) readCommits(ctx context.Context, ids []OID, allowMissing bool) ([]*Commit, error) {
	list := make([]*Commit, len(ids))
	positions := map[OID][]int{} // positions of the commits that are not cached
	var missing []OID
	scope := r.scope()
	for i, id := range ids {
		if v, ok := r.engine.cache.get(cacheKey{scope, kindCommit, string(id)}); ok {
			list[i] = v.(*Commit)
		} else {
			if positions[id] == nil {
				missing = append(missing, id)
			}
			positions[id] = append(positions[id], i)
		}
	}
	if len(missing) == 0 {
		return list, nil
	}
	if allowMissing { // those that came to other nodes are not missing
		if _, err := r.refresh(ctx); err != nil {
			return nil, err
		}
	}
	err := r.withReader(ctx, func(p *reader) error {
		return p.readAll(missing, TypeCommit, allowMissing, func(o *Object) error {
			c, err := object.ParseCommit(o.OID, o.Content)
			if err != nil {
				return fmt.Errorf("commit %s: %w: %w", o.OID, ErrCorrupt, err)
			}
			for _, i := range positions[o.OID] {
				list[i] = c
			}
			r.engine.cache.put(cacheKey{scope, kindCommit, string(o.OID)}, c, 256+2*len(o.Content))
			r.engine.cache.put(cacheKey{scope, kindInfo, string(o.OID)}, o.Info, 0)
			return nil
		})
	})
	return list, err
}

// Tag returns an annotated tag by its ID. It returns ErrNotFound if the object
// does not exist or is not a tag.
func (r Repo) Tag(ctx context.Context, id OID) (*Tag, error) {
	key := cacheKey{r.scope(), kindTag, string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(*Tag), nil
	}
	var t *Tag
	size := 0
	err := r.withReader(ctx, func(p *reader) error {
		o, err := p.read(id, TypeTag)
		if err != nil {
			return err
		}
		size = len(o.Content)
		if t, err = object.ParseTag(id, o.Content); err != nil {
			return fmt.Errorf("tag %s: %w: %w", id, ErrCorrupt, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.engine.cache.put(key, t, 256+2*size)
	return t, nil
}
