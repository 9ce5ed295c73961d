package repo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Collaboration returns the branches of a project to which an actor may push
// although they may not push to the project: source branches of merge requests
// that allow commits from members who can merge.
type Collaboration func(ctx context.Context, by actor.Actor, in *project.Project) ([]string, error)

// OnCollaboration registers a Collaboration. It is called at start-up.
func (s *Service) OnCollaboration(l Collaboration) { s.collaborations = append(s.collaborations, l) }

// writeSome is write, but also accepts actors who may push to some branches only.
// check refuses changes to other branches.
func (s *Service) writeSome(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, git.Repo, error) {
	p, r, err := s.write(ctx, by, ref)
	if !errs.Is(err, errs.KindForbidden) || by.Anonymous() {
		return p, r, err
	}
	refused := err
	if p, r, err = s.read(ctx, by, ref); err != nil {
		return nil, git.Repo{}, err
	}
	if !s.onlyCollaborates(by, p) || p.Writable() != nil {
		return nil, git.Repo{}, refused
	}
	branches, err := s.collaborationBranches(ctx, by, p)
	if err == nil && len(branches) == 0 {
		err = refused
	}
	return p, r.Whole(), err
}

// onlyCollaborates reports whether an actor who can read a project may push at
// most to its collaboration branches.
func (s *Service) onlyCollaborates(by actor.Actor, p *project.Project) bool {
	return by.Deploy == nil && by.ID != actor.SystemID && !by.Admin && p.Access.Level() < project.Developer
}

func (s *Service) collaborationBranches(ctx context.Context, by actor.Actor, p *project.Project) ([]string, error) {
	var all []string
	for _, l := range s.collaborations {
		branches, err := l(ctx, by, p)
		if err != nil {
			return nil, fmt.Errorf("collaboration branches of project %d: %w", p.ID, err)
		}
		all = append(all, branches...)
	}
	return all, nil
}

// refuseOutsideCollaboration refuses all changes except new commits on
// collaboration branches.
func refuseOutsideCollaboration(branches []string, c *git.RefChange) string {
	name, isBranch := strings.CutPrefix(c.Ref, git.Heads)
	if isBranch && c.Old != git.ZeroOID && c.New != git.ZeroOID && slices.Contains(branches, name) {
		return ""
	}
	return "You are not allowed to push code to this project."
}
