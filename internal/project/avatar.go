package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/picture"
)

// Avatar opens the avatar of a project or group that the actor can see. The caller
// must close it. NotFound if there is none.
func (s *Service) Avatar(ctx context.Context, by actor.Actor, place Place) (*blob.Object, error) {
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return nil, err
	}
	_, id := in.column()
	name := in.avatar()
	if name == "" {
		return nil, errs.NotFound("Avatar")
	}
	return s.avatars(place.Group).Open(ctx, id, name)
}

func (in source) avatar() string {
	if in.group != nil {
		return in.group.Avatar
	}
	return in.project.Avatar
}

// OpenAvatar opens the avatar of a project or group by its random name, without
// checking access. The caller must close it. NotFound unless the name is that of
// the current avatar.
func (s *Service) OpenAvatar(ctx context.Context, group bool, id int64, name string) (*blob.Object, error) {
	have, err := findAvatar(ctx, s.DB, group, id)
	if err != nil {
		return nil, db.NotFound(err, "Avatar")
	}
	if name == "" || have != name {
		return nil, errs.NotFound("Avatar")
	}
	return s.avatars(group).Open(ctx, id, name)
}

// avatars returns the store for the avatars of groups or projects.
func (s *Service) avatars(group bool) picture.Store {
	if group {
		return picture.Store{Blobs: s.Blobs, Owner: "group"}
	}
	return picture.Store{Blobs: s.Blobs, Owner: "project"}
}

// setAvatar sets the avatar of a project to a checked file, or removes it.
func (s *Service) setAvatar(ctx context.Context, by actor.Actor, id int64, f *picture.File, remove bool) error {
	return s.avatars(false).Replace(ctx, id, f, remove, func(name string) (was string, err error) {
		_, err = s.change(ctx, id, func(tx *db.Tx, p *Project) error {
			was, p.Avatar = p.Avatar, name
			return s.recordAvatar(ctx, tx, by, source{project: p}, was, name)
		})
		return was, err
	})
}

// setGroupAvatar is setAvatar for a group. It returns the updated group.
func (s *Service) setGroupAvatar(ctx context.Context, by actor.Actor, n *Namespace, f *picture.File, remove bool) (*Namespace, error) {
	err := s.avatars(true).Replace(ctx, n.ID, f, remove, func(name string) (was string, err error) {
		n, err = s.changeGroup(ctx, by, n.ID, func(tx *db.Tx, n *Namespace) error {
			was, n.Avatar = n.Avatar, name
			return s.recordAvatar(ctx, tx, by, source{group: n}, was, name)
		})
		return was, err
	})
	return n, err
}

func (s *Service) recordAvatar(ctx context.Context, tx *db.Tx, by actor.Actor, in source, was, name string) error {
	if was == name {
		return nil
	}
	return s.record(ctx, tx, by, in.kind("avatar_updated"), in.entity(), audit.Target{}, audit.Details{Change: "avatar", From: was, To: name})
}
