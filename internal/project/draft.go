package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/picture"
)

// Draft is a group with its subgroups, or a project, that is being imported. It is
// hidden from all users until the import is complete.
type Draft struct {
	ID      int64
	Project bool   // it is a project, see BeginProject
	Path    string // path relative to the top-level draft; empty for the draft itself and for a project

	full, name string // temporary full path and full name, until ShowDraft
	depth      int
}

// CheckGroup returns the error that CreateGroup would return. Forbidden; NotFound;
// Invalid.
func (s *Service) CheckGroup(ctx context.Context, by actor.Actor, g NewGroup) error {
	if err := s.mayCreateGroup(ctx, by, g.ParentID); err != nil {
		return err
	}
	wrong := errs.Fields{}
	checkPath(wrong, g.Path, g.ParentID == nil)
	checkName(wrong, g.Name)
	if err := wrong.Err(); err != nil {
		return err
	}
	n := &Namespace{Path: g.Path, Name: g.Name}
	var parent *Namespace
	if g.ParentID != nil {
		var err error
		if parent, err = findNamespace(ctx, s.DB, *g.ParentID); err != nil {
			return err
		}
	}
	if err := n.putBelow(parent, nil); err != nil {
		return err
	}
	return requireFree(ctx, s.DB, n.FullPath)
}

// DraftGroup has the fields of a group in a draft.
type DraftGroup struct {
	Path        string // relative to the top-level draft, for which it is empty
	Name        string
	Description string
	CreatedAt   time.Time
	Settings    GroupSettings
}

// DraftSettings returns the default settings of a group, for tests of imports.
func DraftSettings() GroupSettings { return defaultGroupSettings() }

// BeginDraft creates the top-level group of a draft. ShowDraft sets its name and
// parent. The caller must have called CheckGroup. Invalid.
func (s *Service) BeginDraft(ctx context.Context, tx *db.Tx, by actor.Actor, mark string, g DraftGroup) (*Draft, error) {
	// checkPath does not allow this path, so it cannot conflict with other groups.
	g.Path, g.Name = "-import-"+mark, "Import"
	return s.addDraft(ctx, tx, by, nil, &Draft{}, g)
}

// AddDraft creates a subgroup of a group in a draft. Invalid.
func (s *Service) AddDraft(ctx context.Context, tx *db.Tx, by actor.Actor, above *Draft, g DraftGroup) (*Draft, error) {
	d := &Draft{Path: g.Path, depth: above.depth + 1}
	parent := above.Path
	if parent != "" {
		parent += "/"
	}
	last, ok := strings.CutPrefix(g.Path, parent)
	if !ok {
		return nil, errs.Invalid("%.100q is not below %.100q", g.Path, above.Path)
	}
	g.Path = last
	wrong := errs.Fields{}
	checkPath(wrong, g.Path, false)
	checkName(wrong, g.Name)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return s.addDraft(ctx, tx, by, above, d, g)
}

func (s *Service) addDraft(ctx context.Context, tx *db.Tx, by actor.Actor, above, d *Draft, g DraftGroup) (*Draft, error) {
	wrong := errs.Fields{}
	checkDescription(wrong, g.Description, 500)
	g.Settings.check(wrong)
	if !g.Settings.WikiAccessLevel.ofWiki() {
		wrong.Set("wiki_access_level", "is not included in the list")
	}
	if d.depth >= maxDepth {
		wrong.Set("parent_id", "has too deep level of nesting")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	n := &Namespace{
		Kind: GroupNamespace, Path: g.Path, Name: g.Name, FullPath: g.Path, FullName: g.Name, Description: g.Description, Visibility: Private,
		Settings: g.Settings, CreatedBy: &by.ID, CreatedAt: g.CreatedAt, UpdatedAt: s.Now(),
	}
	if above != nil {
		n.ParentID, n.FullPath, n.FullName = &above.ID, above.full+"/"+g.Path, above.name+" / "+g.Name
	}
	if err := insertGroup(ctx, tx, n); err != nil {
		return nil, err
	}
	if err := hideGroup(ctx, tx, n); err != nil {
		return nil, err
	}
	d.ID, d.full, d.name = n.ID, n.FullPath, n.FullName
	return d, nil
}

func (f Feature) ofWiki() bool { return f == Disabled || f == MembersOnly || f == Enabled }

// PaintDraft sets the avatar of a group or project in a draft. Invalid if the file
// is not an image.
func (s *Service) PaintDraft(ctx context.Context, d *Draft, f *picture.File) error {
	if err := f.Check(); err != nil {
		return err
	}
	return s.avatars(!d.Project).Replace(ctx, d.ID, f, false, func(name string) (string, error) {
		if d.Project {
			return "", saveDraftProjectAvatar(ctx, s.DB, d.ID, name)
		}
		return "", saveDraftAvatar(ctx, s.DB, d.ID, name)
	})
}

// AddDraftMembers adds members to a group or project in a draft. Invalid; Conflict.
func (s *Service) AddDraftMembers(ctx context.Context, tx *db.Tx, d *Draft, list []*Member) error {
	in := source{group: &Namespace{ID: d.ID}}
	if d.Project {
		in = source{project: &Project{ID: d.ID}}
	}
	for _, m := range list {
		if !m.Level.Valid() {
			return errs.InvalidField("access_level", "is not included in the list")
		}
		if err := insertMember(ctx, tx, in, m); err != nil {
			return err
		}
	}
	return nil
}

// ShowDraft sets the name and parent of a draft and makes it visible: private at the
// top level, otherwise with the visibility of the parent, or that of g if it is
// narrower. The actor becomes an Owner. Permissions in the parent are checked again.
// NotFound; Forbidden; Invalid.
func (s *Service) ShowDraft(ctx context.Context, tx *db.Tx, by actor.Actor, d *Draft, g NewGroup, message string) (*Namespace, error) {
	wrong := errs.Fields{}
	checkPath(wrong, g.Path, g.ParentID == nil)
	checkName(wrong, g.Name)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	n, err := findDraft(ctx, tx, d.ID)
	if err != nil {
		return nil, err
	}
	was := *n
	parent, err := s.above(ctx, tx, g.ParentID)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		have, err := s.groupLevel(ctx, tx, by, parent.ID)
		if err != nil {
			return nil, err
		}
		if err := parent.mayHoldGroupOf(by, have); err != nil {
			return nil, err
		}
	}
	n.Path, n.Name, n.Visibility, n.UpdatedAt = g.Path, g.Name, Private, s.Now()
	if err := n.putBelow(parent, nil); err != nil {
		return nil, err
	}
	if g.Visibility != nil && g.Visibility.width() < n.Visibility.width() {
		n.Visibility = *g.Visibility
	}
	depth, err := draftDepth(ctx, tx, n.ID)
	if err != nil {
		return nil, err
	}
	if strings.Count(n.FullPath, "/")+depth >= maxDepth {
		return nil, errs.InvalidField("parent_id", "has too deep level of nesting")
	}
	if err := requireFree(ctx, tx, n.FullPath); err != nil {
		return nil, err
	}
	if err := s.placeDraft(ctx, tx, &was, n); err != nil {
		return nil, err
	}
	if by.ID > 0 {
		if err := saveGroupOwner(ctx, tx, &Member{UserID: by.ID, CreatedAt: s.Now()}, n.ID); err != nil {
			return nil, err
		}
	}
	return n, s.record(ctx, tx, by, "group_imported", n.Entity(), audit.Target{}, audit.Details{Add: "group", Message: message})
}

func (s *Service) placeDraft(ctx context.Context, tx *db.Tx, was, n *Namespace) error {
	if err := showDraft(ctx, tx, n); err != nil {
		return err
	}
	if n.ParentID != nil {
		if err := joinTree(ctx, tx, *n.ParentID, n.ID); err != nil {
			return err
		}
	}
	if err := moveBelow(ctx, tx, n.ID, was.FullPath, n.FullPath, was.FullName, n.FullName); err != nil {
		return err
	}
	if err := inheritRules(ctx, tx, n.ID); err != nil {
		return err
	}
	return dropRedirect(ctx, tx, n.FullPath)
}

// DropDraft deletes a draft and everything in it, in the background.
func (s *Service) DropDraft(ctx context.Context, tx *db.Tx, id int64) error {
	_, err := findDraft(ctx, tx, id)
	if errors.Is(err, db.ErrNoRows) {
		return nil // deleted already
	}
	if err == nil {
		err = s.Queue.Add(ctx, tx, deleteGroupWork{id})
	}
	if err != nil {
		return fmt.Errorf("drop draft %d: %w", id, err)
	}
	return nil
}
