package git

import (
	"context"
	"io"
	"strings"
)

// LogIDs is Log without the commits themselves, for more of them than memory
// should hold: an id is a fraction of a commit.
func (r Repo) LogIDs(ctx context.Context, o LogOptions) ([]OID, error) {
	args, fixed, err := r.logArgs(ctx, o)
	if err != nil {
		return nil, err
	}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")} // what Log knows is known here
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
