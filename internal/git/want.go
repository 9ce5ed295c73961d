package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// unknownWant is an object that a client must not have, or that is not there.
type unknownWant struct{ id OID }

func (u *unknownWant) Error() string { return "not our ref " + string(u.id) }

// checkWants lets a fetch have what the refs that the client sees lead to.
// Git itself gives any object to a client of version 2. A partial clone asks
// for files and directories by their ids, which are held to the same rule. It
// returns an *unknownWant.
func (r Repo) checkWants(ctx context.Context, q *inquiry, o ServeOptions) (*tips, error) {
	visible, err := r.tips(ctx, o.hidden)
	if err != nil {
		return nil, err
	}
	var others []Info
	for _, arg := range q.args {
		hex, ok := strings.CutPrefix(arg, "want ")
		if !ok {
			continue
		}
		id, ok := ParseOID(hex)
		if !ok {
			return nil, &unknownWant{OID(fmt.Sprintf("%.60q", hex))}
		}
		if visible.ids[id] {
			continue
		}
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
