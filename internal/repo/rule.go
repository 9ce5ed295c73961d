package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/project"
)

// pushOrigin is the origin of a push.
type pushOrigin int

const (
	overGit   pushOrigin = iota // git protocol
	overWeb                     // API or web interface
	overMerge                   // merge of a merge request, which has its own permission
)

// BranchCheck returns why an actor may not push a change to an existing protected
// branch that requires the approval of code owners; empty if they may. r has the
// new commits, which are not visible to others yet.
type BranchCheck func(ctx context.Context, by actor.Actor, in *project.Project, r git.Repo, c *git.RefChange) (string, error)

// OnBranchCheck registers a BranchCheck. It is called at start-up.
func (s *Service) OnBranchCheck(b BranchCheck) { s.branchChecks = append(s.branchChecks, b) }

// check applies the rules to each change of a push, and sets Refused to the
// message for the user. An error means that the rules could not be checked.
func (s *Service) check(ctx context.Context, by actor.Actor, p *project.Project, push *git.Push, from pushOrigin) error {
	g, err := s.guard(ctx, by, p)
	if err != nil {
		return err
	}
	restricted, branches := s.onlyCollaborates(by, p), []string(nil)
	if restricted {
		if branches, err = s.collaborationBranches(ctx, by, p); err != nil {
			return err
		}
	}
	for _, c := range push.Changes {
		if c.Refused == "" {
			c.Refused = refuseRef(p, c)
		}
		if c.Refused == "" && restricted {
			c.Refused = refuseOutsideCollaboration(branches, c)
		}
		if c.Refused == "" {
			if c.Refused, err = g.refuse(ctx, push.Repo, c, from); err != nil {
				return fmt.Errorf("rules for %s: %w", c.Ref, passing(err))
			}
		}
	}
	checks := s.pushRules
	if from != overMerge {
		checks = slices.Concat(checks, s.pushChecks)
	}
	for _, check := range checks {
		if err := check(ctx, by, p, push); err != nil {
			return fmt.Errorf("check push to project %d: %w", p.ID, passing(err))
		}
	}
	return nil
}

// pushLimits returns the maximum size of a push and of an object in it, in
// bytes; 0: no limit.
func (s *Service) pushLimits(ctx context.Context) (push, object int64, err error) {
	settings, err := s.Settings.Current(ctx)
	return int64(settings.MaxPushMegabytes) << 20, int64(settings.MaxObjectMegabytes) << 20, err
}

// lower returns the lower of two limits; 0 means no limit.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// refuseRef applies the rules that do not depend on the actor.
func refuseRef(p *project.Project, c *git.RefChange) string {
	branch, isBranch := strings.CutPrefix(c.Ref, git.Heads)
	tag, isTag := strings.CutPrefix(c.Ref, git.Tags)
	made, gone := c.Old == git.ZeroOID, c.New == git.ZeroOID
	name := branch
	if isTag {
		name = tag
	}
	switch {
	case strings.HasPrefix(c.Ref, NoteRefs):
		return ""
	case !isBranch && !isTag:
		return "Only branches, tags and notes can be pushed."
	case isBranch && gone && p.DefaultBranch != "" && branch == p.DefaultBranch:
		return "The default branch of a project cannot be deleted."
	case made && git.Ambiguous(name):
		return fmt.Sprintf("You cannot use the name '%s': git reads it as another ref.", name)
	case isBranch && made && git.LikeID(branch):
		return "You cannot create a branch with a 40-character hexadecimal branch name."
	case isTag && made && tag == p.DefaultBranch:
		return "You cannot use default branch name to create a tag"
	case isTag && made && git.LikeID(tag):
		return "You cannot create a tag with a SHA-1 or SHA-256 tag name."
	}
	return ""
}

// refuse applies the rules of protected refs.
func (g *guard) refuse(ctx context.Context, r git.Repo, c *git.RefChange, from pushOrigin) (string, error) {
	if tag, ok := strings.CutPrefix(c.Ref, git.Tags); ok {
		if why, err := g.refuseShadow(ctx, r, tag, c); err != nil || why != "" {
			return why, err
		}
		return g.refuseTag(ctx, g.tags.matching(tag), c, from)
	}
	if strings.HasPrefix(c.Ref, NoteRefs) {
		return "", nil
	}
	if g.project.DefaultBranch == "" {
		if why, err := g.refuseFirst(ctx); err != nil || why != "" {
			return why, err
		}
	}
	rules := g.branches.matching(strings.TrimPrefix(c.Ref, git.Heads))
	if len(rules) == 0 {
		return "", nil
	}
	switch {
	case c.New == git.ZeroOID:
		return g.refuseDeletion(from), nil
	case c.Old == git.ZeroOID:
		return g.refuseCreation(ctx, r, rules, c, from)
	}
	if !rules.allowForcePush() {
		forward, err := r.IsAncestor(ctx, string(c.Old), string(c.New))
		if err != nil && !errors.Is(err, git.ErrNotFound) {
			return "", err
		}
		if !forward {
			return "You are not allowed to force push code to a protected branch on this project.", nil
		}
	}
	action := PushTo
	if from == overMerge {
		action = MergeInto
	}
	may, err := g.may(ctx, rules, action)
	switch {
	case err != nil:
		return "", err
	case !may:
		return "You are not allowed to push code to protected branches on this project.", nil
	case from == overMerge: // the approvals were checked
		return "", nil
	}
	return g.refuseOwned(ctx, r, rules, c)
}

// refuseFirst applies the protection of the default branch to the first push of
// users below Maintainers: the branch has no rule yet.
func (g *guard) refuseFirst(ctx context.Context) (string, error) {
	if g.by.ID == actor.SystemID || g.by.Deploy != nil || g.by.Admin || g.project.Access.Level() >= project.Maintainer {
		return "", nil
	}
	b, err := g.service.Projects.BranchProtection(ctx, g.service.DB, g.project.ID)
	if err != nil || b.DevelopersStart() {
		return "", err
	}
	return "You are not allowed to push the first commit of this project. Ask a maintainer to initialize the repository.", nil
}

// refuseOwned applies the approval of code owners to a direct push. Users, groups
// and deploy keys that a rule names are exempt; those that it allows by their role
// are not.
func (g *guard) refuseOwned(ctx context.Context, r git.Repo, rules protections, c *git.RefChange) (string, error) {
	if g.by.ID == actor.SystemID || !slices.ContainsFunc(rules, func(p *Protected) bool { return p.CodeOwnerApproval }) {
		return "", nil
	}
	for _, p := range rules {
		for _, a := range p.Of(PushTo) {
			if a.UserID == nil && a.GroupID == nil && a.DeployKeyID == nil {
				continue
			}
			if in, err := g.lets(ctx, a); err != nil || in {
				return "", err
			}
		}
	}
	for _, check := range g.service.branchChecks {
		if why, err := check(ctx, g.by, g.project, r, c); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// mayUnprotect reports whether the actor may delete protected refs.
func (g *guard) mayUnprotect() bool {
	return g.by.Deploy == nil && (g.by.Admin || g.project.Access.Level() >= project.Maintainer)
}

func (g *guard) refuseDeletion(from pushOrigin) string {
	switch {
	case !g.mayUnprotect():
		return "You are not allowed to delete protected branches from this project. Only a project maintainer or owner can delete a protected branch."
	case from == overGit:
		return "You can only delete protected branches using the web interface."
	}
	return ""
}

// refuseCreation applies the rules for new protected branches. An actor who may
// merge but not push may create one only from commits of an existing protected
// branch.
func (g *guard) refuseCreation(ctx context.Context, r git.Repo, rules protections, c *git.RefChange, from pushOrigin) (string, error) {
	if may, err := g.may(ctx, rules, PushTo); err != nil || may {
		return "", err
	}
	if may, err := g.may(ctx, rules, MergeInto); err != nil || !may {
		return "You are not allowed to create protected branches on this project.", err
	}
	containing, err := r.Contains(ctx, string(c.New), git.Heads, 0)
	if err != nil {
		return "", err
	}
	safe := false
	for _, name := range containing {
		safe = safe || len(g.branches.matching(strings.TrimPrefix(name, git.Heads))) > 0
	}
	switch {
	case !safe:
		return "You can only use an existing protected branch ref as the basis of a new protected branch.", nil
	case from == overGit:
		return "You can only create protected branches using the web interface and API.", nil
	}
	return "", nil
}

// refuseShadow refuses tags with the name of a protected branch. A name that
// matches only a pattern and has no branch is allowed.
func (g *guard) refuseShadow(ctx context.Context, r git.Repo, tag string, c *git.RefChange) (string, error) {
	rules := g.branches.matching(tag)
	if c.New == git.ZeroOID || len(rules) == 0 {
		return "", nil
	}
	named := slices.ContainsFunc(rules, func(p *Protected) bool { return p.Name == tag })
	if !named {
		_, err := r.Ref(ctx, git.Heads+tag)
		if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrBadRef) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("You cannot use the name of the protected branch '%s' for a tag.", tag), nil
}

func (g *guard) refuseTag(ctx context.Context, rules protections, c *git.RefChange, from pushOrigin) (string, error) {
	switch {
	case len(rules) == 0:
		return "", nil
	case c.Old != git.ZeroOID && c.New != git.ZeroOID:
		return "Protected tags cannot be updated.", nil
	case c.New == git.ZeroOID && !g.mayUnprotect():
		return "You are not allowed to delete protected tags from this project. Only a project maintainer or owner can delete a protected tag.", nil
	case c.New == git.ZeroOID && from == overGit:
		return "You can only delete protected tags using the web interface.", nil
	case c.New == git.ZeroOID:
		return "", nil
	}
	if may, err := g.may(ctx, rules, CreateRef); err != nil || may {
		return "", err
	}
	return "You are not allowed to create this tag as it is protected.", nil
}
