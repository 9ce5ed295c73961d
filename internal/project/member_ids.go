package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// MemberIDs returns the IDs of all members of a project or group: direct,
// inherited or invited with a group. It is used for notifications. NotFound.
func (s *Service) MemberIDs(ctx context.Context, place Place) ([]int64, error) {
	return s.MembersFrom(ctx, place, NoAccess)
}

// MembersFrom returns the IDs of members with at least a level.
func (s *Service) MembersFrom(ctx context.Context, place Place, level Level) ([]int64, error) {
	by := actor.System()
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return nil, err
	}
	sql, args := s.grants(by, in, nil)
	ids, err := findGranted(ctx, s.DB, sql, args, level)
	if err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	return ids, nil
}

// MaySendMail reports whether emails are enabled for a project and its ancestor
// groups.
func (s *Service) MaySendMail(ctx context.Context, p *Project) (bool, error) {
	if !p.Settings.EmailsEnabled {
		return false, nil
	}
	above, err := findAbove(ctx, s.DB, p.NamespaceID)
	if err != nil {
		return false, fmt.Errorf("groups above project %d: %w", p.ID, err)
	}
	for _, n := range above {
		if n.Kind == GroupNamespace && !n.Settings.EmailsEnabled {
			return false, nil
		}
	}
	return true, nil
}
