package featureflag

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// UserList is a named list of user IDs of an application. Strategies of several
// flags can use it.
type UserList struct {
	ID        int64
	ProjectID int64
	IID       int64
	Name      string
	UserIDs   string // separated by commas
	CreatedAt time.Time
	UpdatedAt time.Time
}

const maxLists = 1000 // of a project

// UserLists returns the user lists of a project whose name contains a text.
// Developers and above. NotFound, Forbidden.
func (s *Service) UserLists(ctx context.Context, by actor.Actor, ref project.Ref, search string, p db.Paging) (db.Page[*UserList], error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return db.Page[*UserList]{}, err
	}
	page, err := listUserLists(ctx, s.DB, in.ID, search, p)
	if err != nil {
		return page, fmt.Errorf("list feature flag user lists: %w", err)
	}
	return page, nil
}

// UserList returns a list. Developers and above. NotFound, Forbidden.
func (s *Service) UserList(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*UserList, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	l, err := findUserList(ctx, s.DB, in.ID, iid)
	return l, db.NotFound(err, "")
}

// UserListChange lists changes to a user list; nil keeps the current value.
type UserListChange struct{ Name, UserIDs *string }

func (l *UserList) apply(c UserListChange) error {
	patch.Set(&l.Name, c.Name)
	patch.Set(&l.UserIDs, c.UserIDs)
	wrong := errs.Fields{}
	switch n := utf8.RuneCountInString(l.Name); {
	case n == 0:
		wrong.Set("name", "can't be blank")
	case n > maxEnvironment:
		wrong.Set("name", "is too long (maximum is %d characters)", maxEnvironment)
	}
	if problem := checkUserIDs(l.UserIDs); problem != "" {
		wrong.Set("user_xids", "%s", "user_xids "+problem)
	}
	return wrong.Err()
}

// CreateUserList adds a list. Developers and above. NotFound, Forbidden, Invalid.
func (s *Service) CreateUserList(ctx context.Context, by actor.Actor, ref project.Ref, c UserListChange) (*UserList, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	l := &UserList{ProjectID: in.ID, CreatedAt: s.Now(), UpdatedAt: s.Now()}
	if err := l.apply(c); err != nil {
		return nil, err
	}
	err = s.change(ctx, in, func(tx *db.Tx) error {
		if l.IID, err = number(ctx, tx, "feature_flag_user_lists", in.ID, maxLists, "user lists"); err != nil {
			return err
		}
		if err := insertUserList(ctx, tx, l); err != nil {
			return taken(err)
		}
		return s.record(ctx, tx, by, in, "feature_flag_user_list_created", l.target(), audit.Details{Add: "feature_flag_user_list"})
	})
	if err != nil {
		return nil, fmt.Errorf("create feature flag user list: %w", err)
	}
	return l, nil
}

// UpdateUserList changes a list. Developers and above. NotFound, Forbidden,
// Invalid.
func (s *Service) UpdateUserList(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, c UserListChange) (*UserList, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	var l *UserList
	err = s.grow(ctx, in, func(tx *db.Tx) error {
		if l, err = findUserList(ctx, tx, in.ID, iid); err != nil {
			return db.NotFound(err, "")
		}
		if err := l.apply(c); err != nil {
			return err
		}
		l.UpdatedAt = s.Now()
		if err := updateUserList(ctx, tx, l); err != nil {
			return taken(err)
		}
		return s.record(ctx, tx, by, in, "feature_flag_user_list_updated", l.target(), audit.Details{Change: "feature_flag_user_list"})
	})
	if err != nil {
		return nil, fmt.Errorf("update feature flag user list: %w", err)
	}
	return l, nil
}

// DeleteUserList removes a list. Developers and above. NotFound, Forbidden;
// Conflict if a strategy uses it.
func (s *Service) DeleteUserList(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) error {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.change(ctx, in, func(tx *db.Tx) error {
		l, err := findUserList(ctx, tx, in.ID, iid)
		if err != nil {
			return db.NotFound(err, "")
		}
		used, err := userListUsed(ctx, tx, l.ID)
		if err != nil {
			return err
		}
		if used {
			return errs.Conflict("User list is associated with a strategy")
		}
		if err := deleteUserList(ctx, tx, l.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, "feature_flag_user_list_deleted", l.target(), audit.Details{Remove: "feature_flag_user_list"})
	})
	if err != nil {
		return fmt.Errorf("delete feature flag user list: %w", err)
	}
	return nil
}

func (l *UserList) target() audit.Target {
	return audit.Target{Type: "Operations::FeatureFlags::UserList", ID: l.ID, Details: l.Name}
}
