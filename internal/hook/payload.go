package hook

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/plan/duration"
	"svc/internal/project"
)

// The formats of times in payloads, as documented for each kind.
func iso(t time.Time) string  { return t.UTC().Format("2006-01-02T15:04:05Z") }
func zone(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func isoOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return iso(*t)
}

func zoneOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return zone(*t)
}

// orNull is a text, or null if it is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// idOrNull is an ID, or null.
func idOrNull(id *int64) any {
	if id == nil {
		return nil
	}
	return *id
}

// redacted stands for an email address that is not public.
const redacted = "[REDACTED]"

// userRow is a user as payloads show it.
type userRow struct {
	id                                         int64
	username, name, avatar, publicEmail, email string
	state                                      string
	created, updated                           time.Time
}

func (s *Service) avatarURL(kind string, id int64, name string) any {
	if name == "" {
		return nil
	}
	return fmt.Sprintf("%s/uploads/-/system/%s/avatar/%d/%s", s.Site.URL, kind, id, url.PathEscape(name))
}

// userObject is a user as most payloads have them.
func (s *Service) userObject(p *userRow) any {
	if p == nil {
		return nil
	}
	return object{
		"id": p.id, "name": p.name, "username": p.username, "avatar_url": s.avatarURL("user", p.id, p.avatar), "email": cmp.Or(p.publicEmail, redacted),
	}
}

// userBy returns the user of an event; nil if there is none.
func (s *Service) userBy(ctx context.Context, q db.Q, id int64) (any, error) {
	if id <= 0 {
		return nil, nil
	}
	found, err := findUsersByID(ctx, q, []int64{id})
	return s.userObject(found[id]), err
}

func (s *Service) userObjects(ctx context.Context, q db.Q, ids []int64) ([]any, error) {
	list := []any{}
	if len(ids) == 0 {
		return list, nil
	}
	found, err := findUsersByID(ctx, q, ids)
	for _, id := range ids {
		if p := found[id]; p != nil {
			list = append(list, s.userObject(p))
		}
	}
	return list, err
}

var visibilityLevels = map[project.Visibility]int{project.Private: 0, project.Internal: 10, project.Public: 20}

func (s *Service) sshURL(path string) string {
	if s.Site.SSHPort == "" || s.Site.SSHPort == "22" {
		return "git@" + s.Site.Host + ":" + path + ".git"
	}
	u := url.URL{Scheme: "ssh", User: url.User("git"), Host: net.JoinHostPort(s.Site.Host, s.Site.SSHPort), Path: "/" + path + ".git"}
	return u.String()
}

func (s *Service) webURL(p *project.Project) string { return s.Site.URL + "/" + p.FullPath }

// projectObject is the project of an event.
func (s *Service) projectObject(p *project.Project) object {
	web, ssh, http := s.webURL(p), s.sshURL(p.FullPath), s.webURL(p)+".git"
	return object{
		"id": p.ID, "name": p.Name, "description": p.Description, "web_url": web, "avatar_url": s.avatarURL("project", p.ID, p.Avatar),
		"git_ssh_url": ssh, "git_http_url": http, "namespace": p.Namespace.Name, "visibility_level": visibilityLevels[p.Visibility],
		"path_with_namespace": p.FullPath, "default_branch": p.DefaultBranch, "ci_config_path": orNull(p.Settings.CIConfigPath),
		"homepage": web, "url": ssh, "ssh_url": ssh, "http_url": http,
	}
}

// repositoryObject returns the deprecated short form of a project.
func (s *Service) repositoryObject(p *project.Project) object {
	return object{"name": p.Name, "url": s.sshURL(p.FullPath), "description": p.Description, "homepage": s.webURL(p)}
}

func (s *Service) commitObject(p *project.Project, c *git.Commit) object {
	return object{
		"id": string(c.ID), "message": clip(c.Message, maxMessage), "title": clip(c.Title, maxLine), "timestamp": c.Author.When.Format(time.RFC3339),
		"url": s.webURL(p) + "/-/commit/" + string(c.ID), "author": object{"name": clip(c.Author.Name, maxLine), "email": clip(c.Author.Email, maxLine)},
	}
}

func labelObjects(list []*plan.Label) []any {
	objects := []any{}
	for _, l := range list {
		kind := "ProjectLabel"
		if l.GroupID != nil {
			kind = "GroupLabel"
		}
		objects = append(objects, object{
			"id": l.ID, "title": l.Name, "color": l.Color, "project_id": idOrNull(l.ProjectID), "created_at": iso(l.CreatedAt), "updated_at": iso(l.UpdatedAt),
			"template": false, "description": orNull(l.Description), "type": kind, "group_id": idOrNull(l.GroupID),
		})
	}
	return objects
}

// changed is an entry of the changes of an update.
func changed(previous, current any) object { return object{"previous": previous, "current": current} }

// cutRef returns the name of a branch or tag.
func cutRef(ref string) (name string, isBranch bool) {
	if name, ok := strings.CutPrefix(ref, git.Heads); ok {
		return name, true
	}
	return strings.TrimPrefix(ref, git.Tags), false
}

var stateIDs = map[plan.State]int{plan.Opened: 1, plan.Closed: 2, "merged": 3}

// human is a duration in words; null for none.
func human(seconds int64) any {
	if seconds == 0 {
		return nil
	}
	return duration.Format(seconds)
}
