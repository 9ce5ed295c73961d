package git

import (
	"context"
	"fmt"

	"svc/internal/limit"
)

// Commit reads the commit that a revision leads to; tags are followed. The
// result must not be changed. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Commit(ctx context.Context, rev string) (*Commit, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	return r.commit(ctx, id)
}

// commit reads a commit by its id.
func (r Repo) commit(ctx context.Context, id OID) (*Commit, error) {
	list, err := r.commits(ctx, []OID{id})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Commits reads many commits by their ids, in that order. Their messages count
// as what the request of ctx reads: see limit.Answers.
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

// CommitsThere is Commits for ids of which some may not be there, or be those
// of something else: for them it gives nil.
func (r Repo) CommitsThere(ctx context.Context, ids []OID) ([]*Commit, error) {
	return r.readCommits(ctx, ids, true)
}

func (r Repo) commits(ctx context.Context, ids []OID) ([]*Commit, error) {
	return r.readCommits(ctx, ids, false)
}

func (r Repo) readCommits(ctx context.Context, ids []OID, leave bool) ([]*Commit, error) {
	list := make([]*Commit, len(ids))
	places := map[OID][]int{} // of those that are not known yet
	var wanted []OID
	scope := r.scope()
	for i, id := range ids {
		if v, ok := r.engine.cache.get(cacheKey{scope, kindCommit, string(id)}); ok {
			list[i] = v.(*Commit)
		} else {
			if places[id] == nil {
				wanted = append(wanted, id)
			}
			places[id] = append(places[id], i)
		}
	}
	if len(wanted) == 0 {
		return list, nil
	}
	err := r.withReader(ctx, func(p *reader) error {
		return p.readAll(wanted, TypeCommit, leave, func(o *Object) error {
			c, err := parseCommit(o.OID, o.Content)
			if err != nil {
				return fmt.Errorf("commit %s: %w: %w", o.OID, ErrCorrupt, err)
			}
			for _, i := range places[o.OID] {
				list[i] = c
			}
			r.engine.cache.put(cacheKey{scope, kindCommit, string(o.OID)}, c, 256+2*len(o.Content))
			r.engine.cache.put(cacheKey{scope, kindInfo, string(o.OID)}, o.Info, 0)
			return nil
		})
	})
	return list, err
}

// Tag reads an annotated tag by its id. It returns ErrNotFound when there is
// none, or the object is something else.
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
		if t, err = parseTag(id, o.Content); err != nil {
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
