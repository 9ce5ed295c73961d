package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// unknownWant is the error for an object that does not exist or that the client
// cannot see.
type unknownWant struct{ id OID }

func (u *unknownWant) Error() string { return "not our ref " + string(u.id) }

// checkWants checks that the wanted objects of a fetch are reachable from visible
// refs. Git itself gives any object to a client of protocol version 2. The same
// rule applies to blobs and trees that a partial clone requests by ID. It returns
// an *unknownWant.
func (r Repo) checkWants(ctx context.Context, q *inquiry, o ServeOptions) (*tips, error) {
	visible, err := r.tips(ctx, o.hidden)
	if err != nil {
		return nil, err
	}
	var others []Info
	asked := map[OID]bool{}
	for _, arg := range q.args {
		hex, ok := strings.CutPrefix(arg, "want ")
		if !ok {
			continue
		}
		id, ok := ParseOID(hex)
		if !ok {
			return nil, &unknownWant{OID(fmt.Sprintf("%.60q", hex))}
		}
		if visible.ids[id] || asked[id] {
			continue
		}
		asked[id] = true
		info, err := r.Info(ctx, id)
		if errors.Is(err, ErrNotFound) {
			return nil, &unknownWant{id}
		}
		if err != nil {
			return nil, err
		}
		others = append(others, info)
	}
	lost, err := r.unreachable(ctx, others, visible)
	if err == nil && len(lost) > 0 {
		err = &unknownWant{lost[0]}
	}
	return visible, err
}
