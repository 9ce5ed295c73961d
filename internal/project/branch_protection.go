package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/db"
)

// BranchProtection is the protection of the default branch of new projects.
type BranchProtection struct {
	Push, Merge       []Level // allowed roles; NoAccess means no one
	ForcePush         bool
	InitialPush       bool // Developers may make the first push
	CodeOwnerApproval bool
}

// The values of the deprecated parameter default_branch_protection.
const (
	NoProtection      = 0
	PartialProtection = 1 // Developers may push
	FullProtection    = 2
	PushProtection    = 3 // Developers may merge
	LaterProtection   = 4 // full protection after the first push
)

// ProtectionOf returns the protection of a deprecated level.
func ProtectionOf(level int) BranchProtection {
	b := BranchProtection{Push: []Level{Maintainer}, Merge: []Level{Maintainer}}
	switch level {
	case NoProtection:
		b.Push, b.Merge, b.ForcePush = []Level{Developer}, []Level{Developer}, true
	case PartialProtection:
		b.Push = []Level{Developer}
	case PushProtection:
		b.Merge = []Level{Developer}
	case LaterProtection:
		b.InitialPush = true
	}
	return b
}

// Level returns the deprecated level that is closest to the protection.
func (b BranchProtection) Level() int {
	push, merge := slices.Contains(b.Push, Developer), slices.Contains(b.Merge, Developer)
	switch {
	case b.None():
		return NoProtection
	case push:
		return PartialProtection
	case merge:
		return PushProtection
	case b.InitialPush:
		return LaterProtection
	}
	return FullProtection
}

// None reports whether the branch is not protected.
func (b BranchProtection) None() bool {
	return b.ForcePush && slices.Contains(b.Push, Developer) && slices.Contains(b.Merge, Developer)
}

// DevelopersStart reports whether Developers may make the first push.
func (b BranchProtection) DevelopersStart() bool {
	return b.InitialPush || slices.Contains(b.Push, Developer)
}

// Protection returns the protection that a group has set, or the default.
func (n *Namespace) Protection() BranchProtection {
	if n.Settings.BranchProtection != nil {
		return *n.Settings.BranchProtection
	}
	return ProtectionOf(FullProtection)
}

// BranchProtection returns the protection of the default branch of a new project:
// that of the nearest group that has set one, or that of the instance.
func (s *Service) BranchProtection(ctx context.Context, q db.Q, projectID int64) (BranchProtection, error) {
	p, err := findProject(ctx, q, projectID)
	if err != nil {
		return BranchProtection{}, err
	}
	above, err := findAbove(ctx, q, p.NamespaceID)
	if err != nil {
		return BranchProtection{}, fmt.Errorf("groups of project %d: %w", projectID, err)
	}
	for _, n := range above {
		if n.Settings.BranchProtection != nil {
			return *n.Settings.BranchProtection, nil
		}
	}
	settings, err := s.Settings.Current(ctx)
	return ProtectionOf(settings.BranchProtection), err
}
