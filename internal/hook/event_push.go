package hook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/activity"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/wiki"
)

// maxRefs is the number of refs of a push up to which project and group hooks get events.
// A push of more refs is a migration; system hooks get one event about all refs.
const maxRefs = 50

// Pushed sends push and tag push events.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, p repo.Push) error {
	list, err := s.listening(ctx, tx, p.Project.ID)
	if err != nil || !wants(list, Push, TagPush, RepositoryUpdate) {
		return err
	}
	// The project in the push was read before the push; its default branch may be new.
	in, err := project.In(ctx, tx, p.Project.ID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	found, err := findUsersByID(ctx, tx, []int64{p.By.ID})
	if err != nil {
		return fmt.Errorf("hooks of a push: %w", err)
	}
	by := found[p.By.ID]
	if by == nil {
		by = &userRow{id: p.By.ID, name: p.By.Name, username: p.By.Username}
	}
	var events []occurrence
	for _, c := range p.Changes {
		name, isBranch := cutRef(c.Ref)
		if !isBranch && c.Ref != git.Tags+name {
			continue
		}
		if len(events) == maxRefs {
			break
		}
		o := s.pushEvent(in, by, c)
		if err := s.protect(ctx, tx, list, &o); err != nil {
			return fmt.Errorf("hooks of a push: %w", err)
		}
		events = append(events, o)
	}
	return s.emit(ctx, tx, list, append(events, s.updateEvent(in, by, p))...)
}

// protect determines whether the branch of an event is protected, if an integration
// filters by that.
func (s *Service) protect(ctx context.Context, q db.Q, list []listener, o *occurrence) (err error) {
	asks := slices.ContainsFunc(list, func(l listener) bool { return l.kind != Webhook && strings.HasSuffix(l.options.Branches, "protected") })
	if asks && o.chat.branch != "" && !o.chat.tag {
		o.chat.isProtected, err = repo.BranchProtected(ctx, q, o.projectID, o.chat.branch)
	}
	return err
}

// pusher are the fields of the user who pushed.
func (s *Service) pusher(o object, by *userRow) {
	o["user_id"], o["user_name"], o["user_username"] = by.id, by.name, by.username
	o["user_email"], o["user_avatar"] = by.publicEmail, s.avatarURL("user", by.id, by.avatar)
}

func (s *Service) pushEvent(in *project.Project, by *userRow, c repo.Change) occurrence {
	name, isBranch := cutRef(c.Ref)
	kind, trigger := "push", Push
	if !isBranch {
		kind, trigger = "tag_push", TagPush
	}
	payload := object{
		"object_kind": kind, "event_name": kind, "before": string(c.Old), "after": string(c.New), "ref": c.Ref, "ref_protected": false,
		"checkout_sha": any(string(c.New)), "message": nil, "project_id": in.ID, "project": s.projectObject(in), "commits": []any{}, "total_commits_count": 0,
		"push_options": object{}, "repository": object{
			"name": in.Name, "url": s.sshURL(in.FullPath), "description": in.Description, "homepage": s.webURL(in), "git_http_url": s.webURL(in) + ".git",
			"git_ssh_url": s.sshURL(in.FullPath), "visibility_level": visibilityLevels[in.Visibility],
		},
	}
	if c.New == git.ZeroOID {
		payload["checkout_sha"] = nil
	}
	s.pusher(payload, by)
	o := occurrence{
		projectID: in.ID, trigger: trigger, payload: payload, pending: pending{Push: &pushRange{Ref: c.Ref, Old: string(c.Old), New: string(c.New)}},
		chat: chatFacts{branch: name, isDefault: isBranch && name == in.DefaultBranch, tag: !isBranch},
	}
	if isBranch {
		o.branch = name
	}
	return o
}

// updateEvent is the event of all refs of a push for system hooks.
func (s *Service) updateEvent(in *project.Project, by *userRow, p repo.Push) occurrence {
	changes, refs := []any{}, []string{}
	for _, c := range p.Changes {
		changes, refs = append(changes, object{"before": string(c.Old), "after": string(c.New), "ref": c.Ref}), append(refs, c.Ref)
		if len(refs) == 1000 {
			break
		}
	}
	payload := object{
		"event_name": "repository_update", "project_id": in.ID, "project": s.projectObject(in), "changes": changes, "refs": refs,
	}
	s.pusher(payload, by)
	return occurrence{projectID: in.ID, trigger: RepositoryUpdate, payload: payload}
}

// PageChanged sends wiki page events.
func (s *Service) PageChanged(ctx context.Context, tx *db.Tx, c wiki.PageChange) error {
	if wikiActions[c.Done] == "" {
		return nil
	}
	if id := c.AuxRepo.ProjectID; id != nil {
		list, err := s.listening(ctx, tx, *id)
		if err != nil || !wants(list, WikiPages) {
			return err
		}
		in, err := project.In(ctx, tx, *id)
		if err != nil {
			return errs.IgnoreRefusal(err)
		}
		o, err := s.wikiEvent(ctx, tx, c, in)
		if err != nil {
			return err
		}
		return s.emit(ctx, tx, list, o)
	}
	o, err := s.wikiEvent(ctx, tx, c, nil)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	return s.emitInGroup(ctx, tx, *c.AuxRepo.NamespaceID, o)
}

// wikiActions are the actions of wiki page events.
var wikiActions = map[activity.Action]string{activity.Created: "create", activity.Updated: "update", activity.Destroyed: "delete"}

// wikiEvent is a change to a page of a project, or of a group if there is none.
func (s *Service) wikiEvent(ctx context.Context, q db.Q, c wiki.PageChange, in *project.Project) (occurrence, error) {
	user, err := s.userBy(ctx, q, c.By)
	if err != nil {
		return occurrence{}, err
	}
	payload := object{"object_kind": "wiki_page", "user": user}
	o := occurrence{trigger: WikiPages, payload: payload, pending: pending{Wiki: &wikiPage{
		ProjectID: c.AuxRepo.ProjectID, GroupID: c.AuxRepo.NamespaceID, SHA: c.SHA, Slug: c.Slug,
	}}}
	var base, path, branch string
	if in != nil {
		base, path, branch = s.webURL(in), in.FullPath, in.DefaultBranch
		payload["project"], o.projectID = s.projectObject(in), in.ID
	} else {
		g, err := project.GroupIn(ctx, q, *c.AuxRepo.NamespaceID)
		if err != nil {
			return o, err
		}
		base, path, branch = s.Site.URL+"/groups/"+g.FullPath, g.FullPath, "main"
	}
	page := base + "/-/wikis/" + c.Slug
	payload["object_attributes"] = object{
		"slug": c.Slug, "title": c.Title, "format": string(c.Format), "message": "", "content": "", "version_id": c.SHA, "action": wikiActions[c.Done],
		"url": page, "diff_url": page + "/diff?version_id=" + c.SHA,
	}
	payload["wiki"] = object{
		"web_url": base + "/-/wikis/home", "git_ssh_url": s.sshURL(path + ".wiki"), "git_http_url": s.Site.URL + "/" + path + ".wiki.git",
		"path_with_namespace": path + ".wiki", "default_branch": branch,
	}
	return o, nil
}
