package git

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// LogIDs is Log for commit IDs only, which need much less memory.
func (r Repo) LogIDs(ctx context.Context, o LogOptions) ([]OID, error) {
	args, fixed, err := r.logArgs(ctx, o)
	if err != nil {
		return nil, err
	}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")} // shares the cache with Log
	if v, ok := r.engine.cache.get(key); ok && fixed {
		return v.([]OID), nil
	}
	var ids []OID
	err = r.run(ctx, command{args: args}, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			ids = append(ids, id)
			return nil
		})
	})
	if err == nil && fixed && len(ids) <= maxLogCached {
		r.engine.cache.put(key, ids, 60*len(ids))
	}
	return ids, err
}

// Range lists the commits reachable from to but not from from, oldest first. It
// often finds their merge base as well and caches it for MergeBase.
func (r Repo) Range(ctx context.Context, from, to OID) ([]OID, error) {
	if from == to {
		return nil, nil
	}
	args := []string{"rev-list", "--reverse", "--boundary", "--end-of-options", string(to), "^" + string(from), "--"}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok {
		return v.([]OID), nil
	}
	var ids []OID
	forward := false
	err := r.run(ctx, command{args: args}, func(out io.Reader) error {
		return eachLine(out, func(line string) error {
			hex, outside := strings.CutPrefix(line, "-")
			id, ok := ParseOID(hex)
			switch {
			case !ok:
				return fmt.Errorf("git rev-list: line %.100q", line)
			case !outside:
				ids = append(ids, id)
			case id == from: // from is a parent of a listed commit
				forward = true
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	_, base := r.mergeBaseArgs([]string{string(from), string(to)})
	switch {
	case len(ids) == 0: // to is an ancestor of from
		r.engine.cache.put(base, to, 40)
	case forward:
		r.engine.cache.put(base, from, 40)
	}
	if len(ids) <= maxLogCached {
		r.engine.cache.put(key, ids, 60*len(ids))
	}
	return ids, nil
}
