package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// wanted is what a client can see of a repository.
type wanted struct {
	tips map[OID]bool
	tags []string // "<id> <name>" of each tag
}

// unknownWant is an object that a client must not have, or that is not there.
type unknownWant struct{ id OID }

func (u *unknownWant) Error() string { return "not our ref " + string(u.id) }

// checkWants lets a fetch have what the refs that the client sees lead to.
// Git itself gives any object to a client of version 2.
//
// Blobs and trees are given to anyone who knows their id, as a partial clone
// asks for them one by one: whoever knows the id was shown the tree that holds
// it, and to look for it in all of the history would cost more than the fetch.
// It returns an *unknownWant.
func (r Repo) checkWants(ctx context.Context, q *inquiry, o ServeOptions) (*wanted, error) {
	refs, err := r.Refs(ctx, RefOptions{plain: true})
	if err != nil {
		return nil, err
	}
	see := &wanted{tips: make(map[OID]bool, len(refs))}
	for _, ref := range refs {
		if o.hidden(ref.Name) {
			continue
		}
		see.tips[ref.ID] = true
		if strings.HasPrefix(ref.Name, Tags) {
			see.tags = append(see.tags, string(ref.ID)+" "+ref.Name)
		}
	}
	var others []OID
	for _, arg := range q.args {
		hex, ok := strings.CutPrefix(arg, "want ")
		if !ok {
			continue
		}
		id, ok := ParseOID(hex)
		if !ok {
			return nil, &unknownWant{OID(fmt.Sprintf("%.60q", hex))}
		}
		if see.tips[id] {
			continue
		}
		info, err := r.Info(ctx, id)
		if errors.Is(err, ErrNotFound) {
			return nil, &unknownWant{id}
		}
		if err != nil {
			return nil, err
		}
		if info.Type == TypeCommit || info.Type == TypeTag {
			others = append(others, id)
		}
	}
	return see, r.checkReachable(ctx, others, see.tips)
}

// checkReachable returns an *unknownWant for an id that can not be reached
// from the tips.
func (r Repo) checkReachable(ctx context.Context, ids []OID, tips map[OID]bool) error {
	if len(ids) == 0 {
		return nil
	}
	var in strings.Builder
	for _, id := range ids {
		in.WriteString(string(id) + "\n")
	}
	for tip := range tips {
		in.WriteString("^" + string(tip) + "\n")
	}
	var left OID
	c := command{args: []string{"rev-list", "--max-count=1", "--stdin"}, in: strings.NewReader(in.String())}
	err := r.run(ctx, c, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			left = id
			return errEnough
		})
	})
	if err == nil && left != "" {
		// It may be an ancestor of what was asked for; to the client it is
		// the same.
		return &unknownWant{ids[0]}
	}
	return err
}
