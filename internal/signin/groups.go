package signin

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// applyGroups sets what follows from the groups of a person at the provider: the
// rights of administrators and auditors, and memberships.
func (s *Service) applyGroups(ctx context.Context, c *Provider, u *user.User, p *person) error {
	var change user.Fields
	if len(c.AdminGroups) > 0 && u.Admin != p.inAny(c.AdminGroups) {
		admin := !u.Admin
		keep := false
		if !admin {
			other, err := s.Users.OtherAdmin(ctx, u.ID)
			if err != nil {
				return err
			}
			keep = !other
		}
		if keep {
			s.Log.WarnContext(ctx, "the last administrator keeps their rights", "provider", c.Name, "user", u.Username)
		} else {
			change.Admin = &admin
		}
	}
	if len(c.AuditorGroups) > 0 && u.Auditor != p.inAny(c.AuditorGroups) {
		auditor := !u.Auditor
		change.Auditor = &auditor
	}
	if change.Admin != nil || change.Auditor != nil {
		if _, err := s.Users.Update(ctx, actor.System(), u.ID, user.Change{Fields: change}); err != nil {
			return fmt.Errorf("rights of the groups: %w", err)
		}
	}
	return s.syncMembers(ctx, c, u, p)
}

// syncMembers gives a user the memberships that follow from their groups, and takes
// those away that followed from groups that they have left. A membership that another
// member gave is not lowered or removed, unless the provider raised it before.
func (s *Service) syncMembers(ctx context.Context, c *Provider, u *user.User, p *person) error {
	want := make(map[int64]project.Level)
	paths := make(map[int64]project.Ref)
	for _, m := range c.GroupSync {
		g, err := s.Projects.Group(ctx, actor.System(), project.Ref(m.Group))
		if moved, ok := errors.AsType[*project.Moved](err); ok {
			// The members of a group that was renamed are not removed from it.
			s.Log.WarnContext(ctx, "the group of group_sync has moved", "provider", c.Name, "group", m.Group, "path", moved.Path)
			g, err = s.Projects.Group(ctx, actor.System(), project.RefTo(moved.ID))
		}
		if isRefusal(err) {
			s.Log.WarnContext(ctx, "the group of group_sync cannot be used", "provider", c.Name, "group", m.Group, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		paths[g.ID] = project.Ref(fmt.Sprint(g.ID))
		if p.inAny([]string{m.Claim}) {
			want[g.ID] = max(want[g.ID], m.Level)
		}
	}
	given, err := listMemberships(ctx, s.DB, u.ID, c.Name)
	if err != nil {
		return err
	}
	for id, level := range want {
		if err := s.giveRole(ctx, c, u, project.Place{Ref: paths[id], Group: true}, id, level, given[id]); err != nil {
			return err
		}
	}
	for id := range given {
		if want[id] != 0 {
			continue
		}
		place := project.Place{Ref: project.Ref(fmt.Sprint(id)), Group: true}
		err := s.Projects.RemoveMember(ctx, actor.System(), place, u.ID, true)
		if isRefusal(err) && !errs.Is(err, errs.KindNotFound) {
			s.Log.WarnContext(ctx, "a membership cannot be removed", "provider", c.Name, "user", u.Username, "group", id, "error", err)
			continue
		}
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if err := deleteMembership(ctx, s.DB, u.ID, c.Name, id); err != nil {
			return err
		}
	}
	return nil
}

// giveRole adds a user to a group, or changes their role. synced says that the
// membership came from the provider before.
func (s *Service) giveRole(ctx context.Context, c *Provider, u *user.User, place project.Place, id int64, level project.Level, synced bool) error {
	by := actor.System()
	m, err := s.Projects.Member(ctx, by, place, u.ID, false)
	switch {
	case errs.Is(err, errs.KindNotFound):
		_, err = s.Projects.AddMember(ctx, by, place, project.NewMember{UserID: u.ID, Level: level})
	case err != nil:
	case m.Level == level, !synced && m.Level > level:
		return nil
	default:
		_, err = s.Projects.UpdateMember(ctx, by, place, u.ID, project.MemberChange{Level: &level})
	}
	if isRefusal(err) {
		s.Log.WarnContext(ctx, "a membership cannot be set", "provider", c.Name, "user", u.Username, "group", string(place.Ref), "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	return saveMembership(ctx, s.DB, u.ID, c.Name, id)
}

// isRefusal reports whether an error is a rule that refused, and not an outage.
func isRefusal(err error) bool {
	e, ok := errs.As(err)
	return ok && e.Kind != errs.KindUnavailable
}
