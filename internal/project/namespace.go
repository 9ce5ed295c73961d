package project

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// NamespaceFilter selects namespaces. Zero values match everything.
type NamespaceFilter struct {
	Search       string
	OwnedOnly    bool
	TopLevelOnly bool
}

// Namespaces lists the actor's own namespace and the groups that they are a member
// of. Administrators get all.
func (s *Service) Namespaces(ctx context.Context, by actor.Actor, f NamespaceFilter, p db.Paging) (db.Page[*Namespace], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Namespace]{}, err
	}
	page, err := listNamespaces(ctx, s.DB, by, f, s.today(), p)
	if err != nil {
		return page, fmt.Errorf("list namespaces: %w", err)
	}
	return page, nil
}

// Namespace returns a namespace to administrators, to its user, and to everyone
// who can see the group. NotFound.
func (s *Service) Namespace(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	n, err := s.findNamespaceRef(ctx, ref)
	if err != nil {
		return nil, err
	}
	if n.Kind == UserNamespace {
		if !by.Admin && !by.Is(*n.UserID) {
			return nil, errs.NotFound("Namespace")
		}
		return n, nil
	}
	if _, err := s.RequireGroup(ctx, by, RefTo(n.ID), NoAccess); err != nil {
		return nil, errs.NotFound("Namespace").Because(err)
	}
	return n, nil
}

// maxSuggestions is the maximum number of paths that are tried.
const maxSuggestions = 50

// NamespaceExists reports whether a path is taken, at the top level or in a group,
// and suggests free ones. Requires a signed-in user.
func (s *Service) NamespaceExists(ctx context.Context, by actor.Actor, path string, parentID *int64) (taken bool, suggests []string, err error) {
	if err := by.RequireUser(); err != nil {
		return false, nil, err
	}
	if taken, err = hasPath(ctx, s.DB, path, orZero(parentID)); err != nil || !taken {
		return false, []string{}, err
	}
	base := strings.TrimRight(path, "0123456789")
	for i := 1; i <= maxSuggestions; i++ {
		other := base + strconv.Itoa(i)
		used, err := hasPath(ctx, s.DB, other, orZero(parentID))
		if err != nil {
			return true, nil, err
		}
		if !used {
			return true, []string{other}, nil
		}
	}
	return true, []string{}, nil
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
