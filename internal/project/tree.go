package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/blob"
)

// Branch is a group in a tree of groups.
type Branch struct {
	ID   int64
	Path string // path relative to the top of the tree; empty for the top itself
}

// Tree returns a group and its descendants, parents first. Requires Owner.
// NotFound; Forbidden.
func (s *Service) Tree(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, []Branch, error) {
	top, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return nil, nil, err
	}
	list, err := findTree(ctx, s.DB, top.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("groups below group %d: %w", top.ID, err)
	}
	for i := range list {
		list[i].Path = strings.TrimPrefix(strings.TrimPrefix(list[i].Path, top.FullPath), "/")
	}
	slices.SortFunc(list, func(a, b Branch) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return top, list, nil
}

// Leaf returns the group of a Branch that Tree returned. NotFound if it was deleted
// since.
func (s *Service) Leaf(ctx context.Context, b Branch) (*Namespace, error) {
	return findNamespace(ctx, s.DB, b.ID)
}

// EachMember calls f for the direct members of a group, in the order in which they
// joined, without bot users. The group must be from Tree, which checks permissions.
func (s *Service) EachMember(ctx context.Context, n *Namespace, f func(*Member) error) error {
	if err := eachMember(ctx, s.DB, source{group: n}, s.today(), f); err != nil {
		return fmt.Errorf("members of group %d: %w", n.ID, err)
	}
	return nil
}

// EachProjectMember is EachMember for a project. The caller must check that the
// actor is a Maintainer.
func (s *Service) EachProjectMember(ctx context.Context, p *Project, f func(*Member) error) error {
	if err := eachMember(ctx, s.DB, source{project: p}, s.today(), f); err != nil {
		return fmt.Errorf("members of project %d: %w", p.ID, err)
	}
	return nil
}

// CountMembers counts the members that EachMember returns, for a group and its
// descendants.
func (s *Service) CountMembers(ctx context.Context, n *Namespace) (int64, error) {
	count, err := countMembers(ctx, s.DB, n.ID, s.today())
	if err != nil {
		return 0, fmt.Errorf("members below group %d: %w", n.ID, err)
	}
	return count, nil
}

// Picture opens the avatar of a group, which must be from Tree. The caller must
// close it. NotFound if there is none.
func (s *Service) Picture(ctx context.Context, n *Namespace) (*blob.Object, error) {
	return s.avatars(true).Open(ctx, n.ID, n.Avatar)
}

// ProjectPicture is Picture for a project. The caller must check that the actor is a
// Maintainer.
func (s *Service) ProjectPicture(ctx context.Context, p *Project) (*blob.Object, error) {
	return s.avatars(false).Open(ctx, p.ID, p.Avatar)
}
