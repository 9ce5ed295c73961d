package hook

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// PlaceRecorded sends events about projects, groups and their members to system
// hooks, and some of them to group hooks.
func (s *Service) PlaceRecorded(ctx context.Context, tx *db.Tx, r project.Recorded) error {
	switch {
	case strings.HasPrefix(r.Kind, "member_"):
		return s.memberEvent(ctx, tx, r)
	case r.Entity.Type == audit.ProjectEntity:
		return s.projectEvent(ctx, tx, r)
	case r.Entity.Type == audit.GroupEntity:
		return s.groupEvent(ctx, tx, r)
	}
	return nil
}

// projectEvent sends what happened to a project.
func (s *Service) projectEvent(ctx context.Context, tx *db.Tx, r project.Recorded) error {
	name := "project_update"
	switch r.Kind {
	case "project_created":
		name = "project_create"
	case "project_destroyed":
		name = "project_destroy"
	case "project_path_updated":
		name = "project_rename"
	case "project_namespace_updated":
		name = "project_transfer"
	case "project_name_updated", "project_visibility_level_updated", "project_archived", "project_unarchived":
	default:
		return nil
	}
	p, err := findProjectRow(ctx, tx, r.Entity.ID)
	if err != nil {
		return fmt.Errorf("hooks of project %d: %w", r.Entity.ID, err)
	}
	if p == nil {
		return nil
	}
	list, err := findListeners(ctx, tx, 0, p.namespaceID)
	if err != nil || !wants(list, system, ProjectEvents) {
		return err
	}
	owners, err := findOwners(ctx, tx, p.id, p.namespaceID)
	if err != nil {
		return err
	}
	payload := object{
		"event_name": name, "created_at": iso(p.created), "updated_at": iso(p.updated), "name": p.name, "path": path.Base(r.Entity.Path),
		"path_with_namespace": r.Entity.Path, "project_id": p.id, "project_namespace_id": p.namespaceID, "owner_name": "", "owner_email": "",
		"owners": ownerObjects(owners), "project_visibility": p.visibility,
	}
	if len(owners) > 0 {
		payload["owner_name"], payload["owner_email"] = owners[0].name, ownerEmail(owners[0])
	}
	switch name {
	case "project_rename":
		payload["old_path_with_namespace"] = path.Join(path.Dir(r.Entity.Path), r.Detail.From)
	case "project_transfer":
		payload["old_path_with_namespace"] = path.Join(r.Detail.From, path.Base(r.Entity.Path))
		payload["path_with_namespace"] = p.path
	}
	if err := s.emit(ctx, tx, list, occurrence{trigger: system, payload: payload}); err != nil {
		return err
	}
	if name != "project_create" && name != "project_destroy" {
		return nil
	}
	return s.emit(ctx, tx, list, occurrence{trigger: ProjectEvents, payload: payload})
}

func ownerObjects(list []*userRow) []any {
	objects := []any{}
	for _, p := range list {
		objects = append(objects, object{"name": p.name, "email": ownerEmail(p)})
	}
	return objects
}

func ownerEmail(p *userRow) string {
	if p.publicEmail == "" {
		return redacted
	}
	return p.publicEmail
}

// groupEvent sends what happened to a group; that of a subgroup also to the hooks of
// the groups above.
func (s *Service) groupEvent(ctx context.Context, tx *db.Tx, r project.Recorded) error {
	name, ok := map[string]string{"group_created": "group_create", "group_destroyed": "group_destroy", "group_path_updated": "group_rename"}[r.Kind]
	if !ok {
		return nil
	}
	g, err := findGroupRow(ctx, tx, r.Entity.ID)
	if err != nil || g == nil {
		return err
	}
	list, err := findListeners(ctx, tx, 0, g.id)
	if err != nil || !wants(list, system, Subgroups) {
		return err
	}
	payload := object{
		"event_name": name, "created_at": iso(g.created), "updated_at": iso(g.updated), "name": g.name, "path": path.Base(r.Entity.Path), "full_path": r.Entity.Path,
		"group_id": g.id, "owner_name": nil, "owner_email": nil,
	}
	if name == "group_rename" {
		payload["old_path"], payload["old_full_path"] = r.Detail.From, path.Join(path.Dir(r.Entity.Path), r.Detail.From)
	}
	if err := s.emit(ctx, tx, list, occurrence{trigger: system, payload: payload}); err != nil {
		return err
	}
	if g.parentID == nil || name == "group_rename" {
		return nil
	}
	parent, err := findGroupRow(ctx, tx, *g.parentID)
	if err != nil || parent == nil {
		return err
	}
	above, err := findListeners(ctx, tx, 0, parent.id)
	if err != nil {
		return err
	}
	return s.emit(ctx, tx, above, occurrence{trigger: Subgroups, payload: object{
		"event_name": "sub" + name, "created_at": iso(g.created), "updated_at": iso(g.updated), "name": g.name, "path": path.Base(r.Entity.Path),
		"full_path": r.Entity.Path, "group_id": g.id, "parent_group_id": parent.id, "parent_name": parent.name, "parent_path": path.Base(parent.path),
		"parent_full_path": parent.path,
	}})
}

// memberEvent sends what happened to a membership.
func (s *Service) memberEvent(ctx context.Context, tx *db.Tx, r project.Recorded) error {
	verb, ok := map[string]string{"member_created": "add_to", "member_updated": "update_for", "member_destroyed": "remove_from", "member_expired": "remove_from"}[r.Kind]
	if !ok {
		return nil
	}
	found, err := findUsersByID(ctx, tx, []int64{r.Target.ID})
	if err != nil {
		return fmt.Errorf("hooks of a membership: %w", err)
	}
	u := found[r.Target.ID]
	if u == nil {
		return nil
	}
	access := r.Detail.To
	if access == "" {
		access = r.Detail.From
	}
	m, err := findMembership(ctx, tx, r.Entity, u.id)
	if err != nil {
		return err
	}
	created, updated, expires := s.Now(), s.Now(), any(nil)
	if m != nil {
		created = m.created
		if m.expires != "" {
			expires = m.expires + "T00:00:00Z"
		}
	}
	payload := object{
		"created_at": iso(created), "updated_at": iso(updated), "user_id": u.id, "user_name": u.name, "user_username": u.username, "user_email": ownerEmail(u),
		"expires_at": expires,
	}
	if r.Entity.Type == audit.ProjectEntity {
		p, err := findProjectRow(ctx, tx, r.Entity.ID)
		if err != nil || p == nil {
			return err
		}
		list, err := s.listening(ctx, tx, p.id)
		if err != nil {
			return err
		}
		payload["event_name"], payload["access_level"] = "user_"+verb+"_team", access
		payload["project_id"], payload["project_name"], payload["project_path"] = p.id, p.name, path.Base(p.path)
		payload["project_path_with_namespace"], payload["project_visibility"] = p.path, p.visibility
		return s.emit(ctx, tx, list, occurrence{trigger: system, payload: payload})
	}
	g, err := findGroupRow(ctx, tx, r.Entity.ID)
	if err != nil || g == nil {
		return err
	}
	list, err := findListeners(ctx, tx, 0, g.id)
	if err != nil {
		return err
	}
	payload["group_id"], payload["group_name"], payload["group_path"], payload["group_plan"] = g.id, g.name, path.Base(g.path), nil
	payload["group_access"] = access
	payload["event_name"] = "user_" + verb + "_group"
	return s.emitBoth(ctx, tx, list, payload)
}

// emitBoth sends a member event to system hooks and to group hooks.
func (s *Service) emitBoth(ctx context.Context, tx *db.Tx, list []listener, payload object) error {
	if err := s.emit(ctx, tx, list, occurrence{trigger: system, payload: payload}); err != nil {
		return err
	}
	return s.emit(ctx, tx, list, occurrence{trigger: Members, payload: payload})
}

// UserRecorded sends events about users and their keys to system hooks.
func (s *Service) UserRecorded(ctx context.Context, tx *db.Tx, r user.Recorded) error {
	name, ok := map[string]string{
		"user_created": "user_create", "user_destroyed": "user_destroy", "user_deleted": "user_destroy", "user_username_updated": "user_rename",
		user.FailedLogin: "user_failed_login", "add_ssh_key": "key_create", "remove_ssh_key": "key_destroy",
	}[r.Kind]
	if !ok && strings.Contains(r.Kind, "destroy") && r.Detail.Remove == "user" {
		name, ok = "user_destroy", true
	}
	if !ok {
		return nil
	}
	list, err := s.systemListeners(ctx, tx)
	if err != nil || !wants(list, system) {
		return err
	}
	u := r.User
	if r.Target.Type == "Key" {
		key, err := findKey(ctx, tx, r.Target.ID)
		if err != nil {
			return err
		}
		return s.emit(ctx, tx, list, occurrence{trigger: system, payload: object{
			"event_name": name, "created_at": iso(s.Now()), "updated_at": iso(s.Now()), "username": u.Username, "key": key, "id": r.Target.ID,
		}})
	}
	payload := object{
		"event_name": name, "created_at": iso(u.CreatedAt), "updated_at": iso(s.Now()), "name": u.Name, "username": u.Username, "email": u.Email, "user_id": u.ID,
	}
	switch name {
	case "user_rename":
		payload["old_username"] = r.Detail.From
	case "user_failed_login":
		payload["state"] = string(u.State)
	}
	return s.emit(ctx, tx, list, occurrence{trigger: system, payload: payload})
}

// systemListeners returns the system hooks.
func (s *Service) systemListeners(ctx context.Context, q db.Q) ([]listener, error) {
	return s.listeners.Get(0, func() ([]listener, bool, error) {
		list, err := findListeners(ctx, q, 0, 0)
		return list, true, err
	})
}

// projectRow, groupRow and memberRow are rows as system events show them, including
// rows that are being deleted.
type projectRow struct {
	id, namespaceID        int64
	name, path, visibility string
	created, updated       time.Time
}

type groupRow struct {
	id               int64
	parentID         *int64
	name, path       string
	created, updated time.Time
}

type memberRow struct {
	created time.Time
	expires string
}
