package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// Transfer moves a project to another namespace. Requires Owner, and permission to
// create projects in the namespace. Invalid if the path is taken there, or the
// project would be more visible than its new group.
func (s *Service) Transfer(ctx context.Context, by actor.Actor, ref, to Ref) (*Project, error) {
	found, err := s.Require(ctx, by, ref, Owner)
	if err != nil {
		return nil, err
	}
	into, err := s.findNamespaceRef(ctx, to)
	if err != nil {
		return nil, err
	}
	if into.ID == found.NamespaceID {
		return nil, errs.Invalid("Project is already in this namespace.")
	}
	if _, err := s.placeFor(ctx, by, &into.ID); err != nil {
		return nil, err
	}
	_, err = s.change(ctx, found.ID, func(tx *db.Tx, p *Project) error {
		if err := s.underLimit(ctx, tx, into); err != nil {
			return err
		}
		from, fromID := p.Namespace.FullPath, p.NamespaceID
		p.NamespaceID = into.ID
		if into.UserID != nil {
			// As for a new project, the owner of the namespace is a member.
			if err := saveOwner(ctx, tx, p.ID, *into.UserID, s.Now()); err != nil {
				return err
			}
		}
		if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectMoved, ProjectID: p.ID, UserID: by.ID, Name: p.Name, From: p.FullPath}); err != nil {
			return err
		}
		if err := s.Events.Transferred.Publish(ctx, tx, Transferred{Project: p, From: &fromID}); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "project_namespace_updated", p.Entity(), audit.Target{}, audit.Details{Change: "namespace", From: from, To: into.FullPath})
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, by, RefTo(found.ID))
}

// Adopt moves a project into a group and returns the group. Requires an
// administrator. The errors are those of Transfer.
func (s *Service) Adopt(ctx context.Context, by actor.Actor, group, ref Ref) (*Namespace, error) {
	into, err := s.RequireGroup(ctx, by, group, NoAccess)
	if err != nil {
		return nil, err
	}
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	if _, err := s.Transfer(ctx, by, ref, RefTo(into.ID)); err != nil {
		return nil, err
	}
	return s.Group(ctx, by, RefTo(into.ID))
}

func (s *Service) findNamespaceRef(ctx context.Context, ref Ref) (*Namespace, error) {
	if id, ok := ref.id(); ok {
		return findNamespace(ctx, s.DB, id)
	}
	return findNamespaceByPath(ctx, s.DB, string(ref))
}

// TransferGroup moves a group below another one, or to the top level if parentID
// is nil. Requires Owner, and permission to create groups there.
func (s *Service) TransferGroup(ctx context.Context, by actor.Actor, ref Ref, parentID *int64) (*Namespace, error) {
	found, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return nil, err
	}
	if err := s.mayCreateGroup(ctx, by, parentID); err != nil {
		return nil, err
	}
	return s.changeGroup(ctx, by, found.ID, func(tx *db.Tx, n *Namespace) error {
		if same(n.ParentID, parentID) {
			return errs.Invalid("Transfer failed: Group is already associated to the parent group.")
		}
		if err := s.mayHold(ctx, tx, n.ID, parentID); err != nil {
			return err
		}
		if err := leaveTree(ctx, tx, n.ID); err != nil {
			return err
		}
		if parentID != nil {
			if err := joinTree(ctx, tx, *parentID, n.ID); err != nil {
				return err
			}
		} else {
			wrong := errs.Fields{}
			checkPath(wrong, n.Path, true)
			if err := wrong.Err(); err != nil {
				return err
			}
		}
		from := n.ParentID
		n.ParentID = parentID
		if err := s.Events.Transferred.Publish(ctx, tx, Transferred{Group: n, From: from}); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "group_transferred", n.Entity(), audit.Target{}, audit.Details{Change: "namespace", From: n.FullPath})
	})
}

func same(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// mayHold returns an error if the new parent is in the group itself, or the groups
// would be nested too deeply.
func (s *Service) mayHold(ctx context.Context, tx *db.Tx, id int64, parentID *int64) error {
	if parentID == nil {
		return nil
	}
	inside, err := isBelow(ctx, tx, *parentID, id)
	if err != nil {
		return err
	}
	if inside {
		return errs.Invalid("Transfer failed: Cannot transfer group to one of its subgroup.")
	}
	depth, err := depthBelow(ctx, tx, id, *parentID)
	if err != nil {
		return err
	}
	if depth+2 > maxDepth {
		return errs.Invalid("Transfer failed: The tree of groups would become too deep.")
	}
	return nil
}

// UserRenamed updates the paths of the projects of a renamed user.
func (s *Service) UserRenamed(ctx context.Context, tx *db.Tx, r user.Renaming) error {
	if err := keepPaths(ctx, tx, r.NamespaceID, s.Now()); err != nil {
		return err
	}
	if err := moveProjects(ctx, tx, r.NamespaceID, r.From, r.To); err != nil {
		return err
	}
	return s.publishMoved(ctx, tx, 0, r.NamespaceID, r.From, r.To)
}
