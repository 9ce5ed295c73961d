package repo

import (
	"context"
	"errors"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo/changelog"
	"svc/internal/user"
)

// authors returns the authors of commits for the template, by lower-case email
// address.
func (s *Service) authors(ctx context.Context, by actor.Actor, p *project.Project, c *changelog.Config, commits []changelogCommit) (map[string]any, error) {
	var addresses []string
	for _, commit := range commits {
		addresses = append(addresses, strings.ToLower(commit.Author.Email))
	}
	slices.Sort(addresses)
	users, err := s.Users.FindByEmails(ctx, slices.Compact(addresses))
	if err != nil {
		return nil, err
	}
	groups, err := s.creditGroups(ctx, by, c)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for address, u := range users {
		contributor, err := s.outsider(ctx, p, u)
		if err != nil {
			return nil, err
		}
		credit := contributor
		for i := 0; i < len(groups) && !credit; i++ {
			level, err := s.Projects.GroupLevel(ctx, actor.Actor{ID: u.ID}, groups[i])
			if err != nil {
				return nil, err
			}
			credit = level > project.NoAccess
		}
		found[address] = map[string]any{"reference": "@" + u.Username, "contributor": contributor, "credit": credit}
	}
	return found, nil
}

// creditGroups returns the groups of the configuration that the actor can see.
func (s *Service) creditGroups(ctx context.Context, by actor.Actor, c *changelog.Config) ([]int64, error) {
	var ids []int64
	for _, path := range c.Groups {
		g, err := s.Projects.RequireGroup(ctx, by, project.Ref(path), project.NoAccess)
		moved, isMoved := errors.AsType[*project.Moved](err)
		switch {
		case isMoved:
			ids = append(ids, moved.ID)
		case errs.Is(err, errs.KindNotFound):
		case err != nil:
			return nil, err
		default:
			ids = append(ids, g.ID)
		}
	}
	return ids, nil
}

// outsider reports whether a user is not a member of a project.
func (s *Service) outsider(ctx context.Context, p *project.Project, u *user.User) (bool, error) {
	seen, err := s.Projects.Require(ctx, actor.Actor{ID: u.ID}, project.RefTo(p.ID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return seen.Access.Level() == project.NoAccess, nil
}
