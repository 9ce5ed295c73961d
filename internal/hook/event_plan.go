package hook

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/activity"
	"svc/internal/comment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/snippet"
)

// IssueSaved sends issue events. Events of confidential issues are sent only to hooks
// that have their trigger.
func (s *Service) IssueSaved(ctx context.Context, tx *db.Tx, e plan.IssueSaving) error {
	i := e.Issue
	list, err := s.listening(ctx, tx, i.ProjectID)
	if err != nil || !wants(list, Issues, ConfidentialIssue) {
		return err
	}
	o, err := s.issueEvent(ctx, tx, e)
	if err != nil {
		return fmt.Errorf("hooks of issue %d: %w", i.ID, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) issueEvent(ctx context.Context, q db.Q, e plan.IssueSaving) (occurrence, error) {
	i := e.Issue
	in, err := project.In(ctx, q, i.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	attributes, labels, assignees, err := s.issueObject(ctx, q, in, i)
	if err != nil {
		return occurrence{}, err
	}
	user, err := s.userBy(ctx, q, e.By)
	if err != nil {
		return occurrence{}, err
	}
	changes := object{}
	if e.Was != nil {
		if changes, err = s.issuableChanges(ctx, q, &e.Was.Issuable, &i.Issuable, labels); err != nil {
			return occurrence{}, err
		}
		put := differing(changes)
		put("confidential", e.Was.Confidential, i.Confidential)
		put("due_date", orNull(e.Was.DueDate), orNull(i.DueDate))
		put("weight", idOrNull(e.Was.Weight), idOrNull(i.Weight))
		put("type", e.Was.Type, i.Type)
		attributes["updated_by_id"] = e.By
		attributes["time_change"], attributes["human_time_change"] = i.TimeSpent-e.Was.TimeSpent, human(i.TimeSpent-e.Was.TimeSpent)
	}
	attributes["action"] = issuableAction(&i.Issuable, issuableOf(e.Was))
	kind, trigger := "issue", Issues
	if i.Confidential {
		kind, trigger = "confidential_issue", ConfidentialIssue
	}
	payload := object{
		"object_kind": "issue", "event_type": kind, "user": user, "project": s.projectObject(in), "repository": s.repositoryObject(in),
		"object_attributes": attributes, "labels": labels, "changes": changes,
	}
	if len(assignees) > 0 {
		payload["assignees"], payload["assignee"] = assignees, assignees[0]
	}
	return occurrence{projectID: in.ID, trigger: trigger, payload: payload, chat: chatFacts{labels: labelNames(labels)}}, nil
}

func issuableOf(i *plan.Issue) *plan.Issuable {
	if i == nil {
		return nil
	}
	return &i.Issuable
}

// issuableAction returns the action of a change to an issue or merge request.
func issuableAction(i, was *plan.Issuable) string {
	switch {
	case was == nil:
		return "open"
	case was.State == i.State:
		return "update"
	case i.State == plan.Closed:
		return "close"
	case i.State == plan.Opened:
		return "reopen"
	}
	return "merge"
}

// differing returns a function that adds a change unless both values are the same.
func differing(changes object) func(name string, previous, current any) {
	return func(name string, previous, current any) {
		if previous != current {
			changes[name] = changed(previous, current)
		}
	}
}

// issuableChanges are the changes that issues and merge requests share.
func (s *Service) issuableChanges(ctx context.Context, q db.Q, was, i *plan.Issuable, labels []any) (object, error) {
	changes := object{"updated_at": changed(zone(was.UpdatedAt), zone(i.UpdatedAt))}
	put := differing(changes)
	put("title", was.Title, i.Title)
	put("description", was.Description, i.Description)
	put("state_id", stateIDs[was.State], stateIDs[i.State])
	put("closed_at", zoneOrNull(was.ClosedAt), zoneOrNull(i.ClosedAt))
	put("milestone_id", idOrNull(was.MilestoneID), idOrNull(i.MilestoneID))
	put("time_estimate", was.TimeEstimate, i.TimeEstimate)
	put("total_time_spent", was.TimeSpent, i.TimeSpent)
	put("discussion_locked", was.IsLocked(), i.IsLocked())
	if r := i.Replanned; len(r.LabelsAdded)+len(r.LabelsRemoved) > 0 {
		current, err := plan.LabelsOf(ctx, q, i.Target())
		if err != nil {
			return nil, err
		}
		previous := slices.DeleteFunc(slices.Clone(current), func(l *plan.Label) bool {
			return slices.ContainsFunc(r.LabelsAdded, func(a *plan.Label) bool { return a.ID == l.ID })
		})
		changes["labels"] = changed(labelObjects(append(previous, r.LabelsRemoved...)), labels)
	}
	for _, a := range i.Replanned.Appointed {
		previous, err := s.userObjects(ctx, q, a.Before)
		if err != nil {
			return nil, err
		}
		current, err := s.userObjects(ctx, q, a.After)
		if err != nil {
			return nil, err
		}
		changes[string(a.As)] = changed(previous, current)
	}
	return changes, nil
}

// issueObject is an issue with its labels and assignees.
func (s *Service) issueObject(ctx context.Context, q db.Q, in *project.Project, i *plan.Issue) (o object, labels, assignees []any, err error) {
	found, err := plan.LabelsOf(ctx, q, i.Target())
	if err != nil {
		return nil, nil, nil, err
	}
	ids, err := plan.Related(ctx, q, i.Target(), plan.Assignees)
	if err != nil {
		return nil, nil, nil, err
	}
	if assignees, err = s.userObjects(ctx, q, ids); err != nil {
		return nil, nil, nil, err
	}
	labels = labelObjects(found)
	return object{
		"id": i.ID, "iid": i.IID, "project_id": i.ProjectID, "title": i.Title, "description": i.Description, "author_id": i.AuthorID,
		"assignee_ids": listOf(ids), "assignee_id": firstOf(ids), "milestone_id": idOrNull(i.MilestoneID), "state": string(i.State), "state_id": stateIDs[i.State],
		"confidential": i.Confidential, "discussion_locked": i.Locked, "due_date": orNull(i.DueDate), "weight": idOrNull(i.Weight),
		"moved_to_id": idOrNull(i.MovedToID), "duplicated_to_id": nil, "relative_position": i.Position, "closed_at": isoOrNull(i.ClosedAt),
		"created_at": iso(i.CreatedAt), "updated_at": iso(i.UpdatedAt), "updated_by_id": nil, "last_edited_at": nil, "last_edited_by_id": nil,
		"time_estimate": i.TimeEstimate, "total_time_spent": i.TimeSpent, "time_change": 0, "human_time_estimate": human(i.TimeEstimate),
		"human_total_time_spent": human(i.TimeSpent), "human_time_change": nil, "health_status": nil, "severity": "unknown", "type": i.Type,
		"labels": labels, "url": fmt.Sprintf("%s/-/issues/%d", s.webURL(in), i.IID),
	}, labels, assignees, nil
}

func labelNames(labels []any) []string {
	var names []string
	for _, l := range labels {
		if o, ok := l.(object); ok {
			names = append(names, fmt.Sprint(o["title"]))
		}
	}
	return names
}

func listOf(ids []int64) []int64 {
	if ids == nil {
		return []int64{}
	}
	return ids
}

func firstOf(ids []int64) any {
	if len(ids) == 0 {
		return nil
	}
	return ids[0]
}

// NoteSaved sends comment events. Internal notes and comments on confidential issues are
// sent only to hooks that have their trigger.
func (s *Service) NoteSaved(ctx context.Context, tx *db.Tx, e plan.NoteSaving) error {
	if e.Note.ProjectID == nil {
		return nil // of a personal snippet
	}
	list, err := s.listening(ctx, tx, *e.Note.ProjectID)
	if err != nil || !wants(list, Notes, ConfidentialNote) {
		return err
	}
	o, err := s.noteEvent(ctx, tx, e)
	if err != nil {
		return fmt.Errorf("hooks of note %d: %w", e.Note.ID, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) noteEvent(ctx context.Context, q db.Q, e plan.NoteSaving) (occurrence, error) {
	n := e.Note
	in, err := project.In(ctx, q, *n.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	user, err := s.userBy(ctx, q, e.By)
	if err != nil {
		return occurrence{}, err
	}
	attributes := s.noteObject(in, n)
	attributes["action"] = "create"
	if e.Update {
		attributes["action"] = "update"
	}
	payload := object{
		"object_kind": "note", "event_type": "note", "user": user, "project_id": in.ID, "project": s.projectObject(in), "repository": s.repositoryObject(in),
		"object_attributes": attributes,
	}
	o := occurrence{projectID: in.ID, trigger: Notes, payload: payload}
	confidential, err := s.noteTarget(ctx, q, in, n.On, &o)
	if err != nil {
		return o, err
	}
	if n.Internal || confidential {
		o.trigger, payload["event_type"] = ConfidentialNote, "confidential_note"
	}
	return o, nil
}

// noteTarget adds the target of a note or of a reaction to its event. It reports
// whether it is confidential.
func (s *Service) noteTarget(ctx context.Context, q db.Q, in *project.Project, on plan.Target, o *occurrence) (confidential bool, err error) {
	payload := o.payload
	switch on.Kind {
	case plan.IssueKind:
		i, err := plan.IssueIn(ctx, q, on.ID)
		if err != nil {
			return false, err
		}
		issue, labels, _, err := s.issueObject(ctx, q, in, i)
		payload["issue"], o.chat.labels = issue, labelNames(labels)
		return i.Confidential, err
	case plan.MergeKind:
		m, err := merge.RequestIn(ctx, q, on.ID)
		if err != nil {
			return false, err
		}
		request, _, err := s.requestObject(ctx, q, in, m)
		if err != nil {
			return false, err
		}
		labels, _ := request["labels"].([]any)
		payload["merge_request"], o.chat.labels = request, labelNames(labels)
		o.pending.Commits = map[string]string{"merge_request.last_commit": m.Head}
	case snippet.Kind:
		sn, err := findSnippet(ctx, q, on.ID)
		if err != nil {
			return false, err
		}
		name := "snippet"
		if payload["object_kind"] == "emoji" {
			name = "project_snippet"
		}
		if name == "snippet" {
			o.pending.Snippet = &snippetFile{ID: sn.id, Name: sn.file}
		}
		payload[name] = object{
			"id": sn.id, "title": sn.title, "description": sn.description, "author_id": sn.authorID, "project_id": in.ID, "created_at": zone(sn.created),
			"updated_at": zone(sn.updated), "file_name": sn.file, "type": "ProjectSnippet", "visibility_level": visibilityLevels[project.Visibility(sn.visibility)],
			"url": fmt.Sprintf("%s/-/snippets/%d", s.webURL(in), sn.id),
		}
	}
	return false, nil
}

// noteObject is a note.
func (s *Service) noteObject(in *project.Project, n *plan.Note) object {
	var position any
	if p := n.Position; p != nil {
		position = object{
			"base_sha": p.BaseSHA, "start_sha": p.StartSHA, "head_sha": p.HeadSHA, "old_path": p.OldPath, "new_path": p.NewPath, "position_type": string(p.Type),
			"old_line": idOrNull(p.OldLine), "new_line": idOrNull(p.NewLine), "line_range": nil,
		}
	}
	var code any
	if n.Position != nil {
		code = orNull(n.Position.Code)
	}
	return object{
		"id": n.ID, "note": n.Body, "description": n.Body, "noteable_type": string(n.On.Kind), "noteable_id": n.On.ID, "author_id": n.AuthorID, "project_id": in.ID,
		"created_at": zone(n.CreatedAt), "updated_at": zone(n.UpdatedAt), "updated_by_id": nil, "attachment": nil, "line_code": code, "commit_id": orNull(n.CommitSHA),
		"discussion_id": n.Discussion, "system": false, "st_diff": nil, "type": orNull(n.Type), "internal": n.Internal,
		"position": position, "original_position": position, "change_position": nil, "resolved_at": zoneOrNull(n.ResolvedAt), "resolved_by_id": idOrNull(n.ResolvedByID),
		"resolved_by_push": nil, "url": s.noteURL(in, n.On, n.OnIID) + fmt.Sprintf("#note_%d", n.ID),
	}
}

// noteURL returns the URL of the page of the target of a note.
func (s *Service) noteURL(in *project.Project, on plan.Target, iid int64) string {
	switch on.Kind {
	case plan.MergeKind:
		return fmt.Sprintf("%s/-/merge_requests/%d", s.webURL(in), iid)
	case snippet.Kind:
		return fmt.Sprintf("%s/-/snippets/%d", s.webURL(in), on.ID)
	}
	return fmt.Sprintf("%s/-/issues/%d", s.webURL(in), iid)
}

// Commented sends the event of a comment on a commit.
func (s *Service) Commented(ctx context.Context, tx *db.Tx, e comment.Created) error {
	list, err := s.listening(ctx, tx, e.ProjectID)
	if err != nil || !wants(list, Notes) {
		return err
	}
	o, err := s.commentEvent(ctx, tx, e)
	if err != nil {
		return fmt.Errorf("hooks of a comment on %s: %w", e.SHA, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) commentEvent(ctx context.Context, q db.Q, e comment.Created) (occurrence, error) {
	in, err := project.In(ctx, q, e.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	user, err := s.userBy(ctx, q, e.Comment.AuthorID)
	if err != nil {
		return occurrence{}, err
	}
	c := e.Comment
	page := s.webURL(in) + "/-/commit/" + e.SHA
	return occurrence{
		projectID: in.ID, trigger: Notes, pending: pending{Commits: map[string]string{"commit": e.SHA}},
		payload: object{
			"object_kind": "note", "event_type": "note", "user": user, "project_id": in.ID, "project": s.projectObject(in), "repository": s.repositoryObject(in),
			"object_attributes": object{
				"id": c.ID, "note": c.Note, "description": c.Note, "noteable_type": "Commit", "noteable_id": nil, "author_id": c.AuthorID, "project_id": in.ID,
				"created_at": zone(c.CreatedAt), "updated_at": zone(c.CreatedAt), "attachment": nil, "line_code": nil, "commit_id": e.SHA, "system": false,
				"st_diff": nil, "action": "create", "url": page + fmt.Sprintf("#note_%d", c.ID),
			},
			"commit": nil,
		},
	}, nil
}

// Awarded sends emoji events.
func (s *Service) Awarded(ctx context.Context, tx *db.Tx, e plan.Awarding) error {
	list, err := s.listening(ctx, tx, e.ProjectID)
	if err != nil || !wants(list, Emoji) {
		return err
	}
	o, err := s.emojiEvent(ctx, tx, e)
	if err != nil {
		return fmt.Errorf("hooks of a reaction: %w", err)
	}
	// Reactions have a single trigger, so those to confidential objects are not sent at all.
	if o.payload == nil {
		return nil
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) emojiEvent(ctx context.Context, q db.Q, e plan.Awarding) (occurrence, error) {
	in, err := project.In(ctx, q, e.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	user, err := s.userBy(ctx, q, e.Award.UserID)
	if err != nil {
		return occurrence{}, err
	}
	a, kind, action := e.Award, string(e.Award.On.Kind), "award"
	if e.Removed {
		action = "revoke"
	}
	page := s.noteURL(in, e.On.Target, e.On.IID)
	payload := object{
		"object_kind": "emoji", "event_type": action, "user": user, "project_id": in.ID, "project": s.projectObject(in),
		"object_attributes": object{
			"id": a.ID, "name": a.Name, "user_id": a.UserID, "awardable_type": kind, "awardable_id": a.On.ID, "created_at": zone(a.CreatedAt),
			"updated_at": zone(a.UpdatedAt), "action": action, "awarded_on_url": page,
		},
	}
	o := occurrence{projectID: in.ID, trigger: Emoji, payload: payload}
	confidential, err := s.noteTarget(ctx, q, in, e.On.Target, &o)
	if err != nil {
		return occurrence{}, err
	}
	if a.On.Kind == plan.NoteKind {
		n, err := plan.NoteIn(ctx, q, e.On.Target, a.On.ID)
		if err != nil {
			return occurrence{}, err
		}
		confidential = confidential || n.Internal
		payload["note"] = s.noteObject(in, n)
		setPath(payload, "object_attributes.awarded_on_url", page+fmt.Sprintf("#note_%d", n.ID))
	}
	if confidential {
		return occurrence{}, nil
	}
	return o, nil
}

// MilestoneSaved sends milestone events.
func (s *Service) MilestoneSaved(ctx context.Context, tx *db.Tx, e plan.MilestoneSaving) error {
	m := e.Milestone
	action, ok := map[activity.Action]string{
		activity.Created: "create", activity.Closed: "close", activity.Reopened: "reopen", activity.Destroyed: "delete",
	}[e.Done]
	if !ok {
		return nil
	}
	payload := object{"object_kind": "milestone", "event_type": "milestone", "action": action}
	attributes := object{
		"id": m.ID, "iid": m.IID, "title": m.Title, "description": orNull(m.Description), "state": string(m.State), "created_at": zone(m.CreatedAt),
		"updated_at": zone(m.UpdatedAt), "due_date": orNull(m.DueDate), "start_date": orNull(m.StartDate), "group_id": idOrNull(m.GroupID), "project_id": idOrNull(m.ProjectID),
	}
	payload["object_attributes"] = attributes
	if m.ProjectID == nil {
		return s.emitInGroup(ctx, tx, *m.GroupID, occurrence{trigger: Milestones, payload: payload})
	}
	list, err := s.listening(ctx, tx, *m.ProjectID)
	if err != nil || !wants(list, Milestones) {
		return err
	}
	in, err := project.In(ctx, tx, *m.ProjectID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	payload["project"] = s.projectObject(in)
	return s.emit(ctx, tx, list, occurrence{projectID: in.ID, trigger: Milestones, payload: payload})
}

// emitInGroup sends an event of a group, with the group in its payload.
func (s *Service) emitInGroup(ctx context.Context, tx *db.Tx, groupID int64, o occurrence) error {
	list, err := findListeners(ctx, tx, 0, groupID)
	if err != nil || len(wanting(list, o)) == 0 {
		return err
	}
	g, err := project.GroupIn(ctx, tx, groupID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	o.payload["group"] = groupObject(g)
	return s.emit(ctx, tx, list, o)
}

func groupObject(g *project.Namespace) object {
	return object{"group_id": g.ID, "group_name": g.Name, "group_path": g.Path, "full_path": g.FullPath}
}
