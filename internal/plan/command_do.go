package plan

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/plan/duration"
	"svc/internal/plan/quickaction"
	"svc/internal/project"
)

// This file implements the quick actions. Each adds its change to the outcome of
// the run and returns a sentence that describes it.

func doAssign(r *commandRun, args string) (string, error) {
	list, err := r.addRelated(Assignees, args)
	return "Assigned " + mentions(list) + ".", err
}

func doUnassign(r *commandRun, args string) (string, error) {
	list, err := r.removeRelated(Assignees, args)
	if len(list) == 0 {
		return "Removed all assignees.", err
	}
	return "Removed assignee " + mentions(list) + ".", err
}

func doReassign(r *commandRun, args string) (string, error) {
	r.setRelated(Assignees, []int64{})
	list, err := r.addRelated(Assignees, args)
	if err != nil {
		r.out.Assignees = nil
		delete(r.out.Changes, "assignee_ids")
	}
	return "Reassigned to " + mentions(list) + ".", err
}

func doAssignReviewer(r *commandRun, args string) (string, error) {
	list, err := r.addRelated(Reviewers, args)
	return "Requested a review from " + mentions(list) + ".", err
}

func doUnassignReviewer(r *commandRun, args string) (string, error) {
	list, err := r.removeRelated(Reviewers, args)
	if len(list) == 0 {
		return "Removed all reviewers.", err
	}
	return "Removed reviewer " + mentions(list) + ".", err
}

func doReassignReviewer(r *commandRun, args string) (string, error) {
	list, err := r.users(args)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", refusal("Failed to request a review because no user was specified.")
	}
	r.setRelated(Reviewers, ids(list))
	return "Replaced the reviewers with " + mentions(list) + ".", nil
}

func doLabel(r *commandRun, args string) (string, error) {
	list, err := r.labels("label", args)
	if err != nil {
		return "", err
	}
	r.out.Labels.Add = append(r.out.Labels.Add, labelNames(list)...)
	r.out.Changes["add_label_ids"] = LabelIDs(list)
	return "Added " + labelRefs(list) + ".", nil
}

func doUnlabel(r *commandRun, args string) (string, error) {
	if args == "" {
		r.out.Labels = Labelling{Names: &[]string{}}
		r.out.Changes["label_ids"] = []int64{}
		return "Removed all labels.", nil
	}
	list, err := r.labels("unlabel", args)
	if err != nil {
		return "", err
	}
	r.out.Labels.Remove = append(r.out.Labels.Remove, labelNames(list)...)
	r.out.Changes["remove_label_ids"] = LabelIDs(list)
	return "Removed " + labelRefs(list) + ".", nil
}

func doRelabel(r *commandRun, args string) (string, error) {
	list, err := r.labels("relabel", args)
	if err != nil {
		return "", err
	}
	found := labelNames(list)
	r.out.Labels = Labelling{Names: &found}
	r.out.Changes["label_ids"] = LabelIDs(list)
	return "Replaced all labels with " + labelRefs(list) + ".", nil
}

func doMilestone(r *commandRun, args string) (string, error) {
	title := strings.Trim(strings.TrimPrefix(args, "%"), `"`)
	id, err := findMilestoneTitled(r.ctx, r.s.DB, place{project: r.proj}, title)
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", refusal("Could not apply milestone command. The milestone was not found.")
	}
	r.out.Milestone, r.out.Changes["milestone_id"] = id, *id
	return "Set the milestone to %" + quoted(title) + ".", nil
}

func doRemoveMilestone(r *commandRun, _ string) (string, error) {
	var none int64
	r.out.Milestone, r.out.Changes["milestone_id"] = &none, nil
	return "Removed the milestone.", nil
}

func doClose(r *commandRun, _ string) (string, error) {
	if r.on.State != Opened {
		return "", refusal("Could not apply close command.")
	}
	r.out.Event, r.out.Changes["state_event"] = "close", "close"
	return "Closed this " + r.on.Kind.noun() + ".", nil
}

func doReopen(r *commandRun, _ string) (string, error) {
	if r.on.State != Closed {
		return "", refusal("Could not apply reopen command.")
	}
	r.out.Event, r.out.Changes["state_event"] = "reopen", "reopen"
	return "Reopened this " + r.on.Kind.noun() + ".", nil
}

func doTitle(r *commandRun, args string) (string, error) {
	if args == "" {
		return "", refusal("Could not apply title command.")
	}
	r.out.Title, r.out.Changes["title"] = &args, args
	return "Changed the title to “" + args + "”.", nil
}

func doDue(r *commandRun, args string) (string, error) {
	day, ok := quickaction.ParseDate(args, r.s.Now())
	if !ok {
		return "", refusal("Failed to set due date because the date format is invalid.")
	}
	r.out.DueDate, r.out.Changes["due_date"] = &day, day
	return "Set the due date to " + day + ".", nil
}

func doRemoveDue(r *commandRun, _ string) (string, error) {
	none := ""
	r.out.DueDate, r.out.Changes["due_date"] = &none, nil
	return "Removed the due date.", nil
}

func doEstimate(r *commandRun, args string) (string, error) {
	seconds, ok := duration.Parse(args)
	if !ok || seconds < 0 {
		return "", refusal("Could not apply estimate command. The duration is invalid.")
	}
	r.out.Time.Estimate, r.out.Changes["time_estimate"] = &seconds, seconds
	return "Set the time estimate to " + choose(seconds == 0, "0h", duration.Format(seconds)) + ".", nil
}

func doRemoveEstimate(r *commandRun, _ string) (string, error) {
	var none int64
	r.out.Time.Estimate, r.out.Changes["time_estimate"] = &none, 0
	return "Removed the time estimate.", nil
}

func doSpend(r *commandRun, args string) (string, error) {
	spent := Spend{}
	if at := strings.LastIndexByte(args, ' '); at > 0 {
		if day, err := time.Parse(time.DateOnly, args[at+1:]); err == nil {
			spent.At, args = &day, args[:at]
		}
	}
	seconds, ok := duration.Parse(args)
	if spent.Seconds = seconds; !ok || seconds == 0 {
		return "", refusal("Could not apply spend command. The duration is invalid.")
	}
	if spent.At != nil && spent.At.After(r.s.Now()) {
		return "", refusal("Could not apply spend command. The date is in the future.")
	}
	total := r.on.TimeSpent + seconds
	for _, before := range r.out.Time.Spend {
		total += before.Seconds
	}
	if r.out.Time.Reset {
		total -= r.on.TimeSpent
	}
	if total < 0 {
		return "", refusal("Time to subtract exceeds the total time spent.")
	}
	r.out.Time.Spend = append(r.out.Time.Spend, spent)
	change := map[string]any{"duration": seconds, "user_id": r.by.ID}
	if spent.At != nil {
		change["spent_at"] = spent.At.Format(time.DateOnly)
	}
	r.out.Changes["spend_time"] = change
	if seconds < 0 {
		return "Subtracted " + duration.Format(-seconds) + " of spent time.", nil
	}
	return "Added " + duration.Format(seconds) + " of spent time.", nil
}

func doRemoveSpent(r *commandRun, _ string) (string, error) {
	r.out.Time.Reset, r.out.Time.Spend = true, nil
	r.out.Changes["spend_time"] = map[string]any{"duration": "reset", "user_id": r.by.ID}
	return "Removed the time spent.", nil
}

func doWeight(r *commandRun, args string) (string, error) {
	n, err := strconv.ParseInt(args, 10, 32)
	if err != nil || n < 0 {
		return "", refusal("Could not apply weight command. The weight must be a number of at least 0.")
	}
	r.out.SetWeight, r.out.Weight, r.out.Changes["weight"] = true, &n, n
	return "Set the weight to " + args + ".", nil
}

func doClearWeight(r *commandRun, _ string) (string, error) {
	r.out.SetWeight, r.out.Weight, r.out.Changes["weight"] = true, nil, nil
	return "Cleared the weight.", nil
}

func doConfidential(r *commandRun, _ string) (string, error) {
	yes := true
	r.out.Confidential, r.out.Changes["confidential"] = &yes, true
	return "Made this issue confidential.", nil
}

func doType(r *commandRun, args string) (string, error) {
	kind := strings.ReplaceAll(strings.ToLower(args), " ", "_")
	switch kind {
	case "issue", "incident", "task", "test_case":
	default:
		return "", refusal("Could not apply type command. The type is invalid.")
	}
	r.out.Type, r.out.Changes["issue_type"] = &kind, kind
	return "Changed the type to " + kind + ".", nil
}

func doPromote(r *commandRun, _ string) (string, error) { return doType(r, "incident") }

func doLock(locked bool) func(*commandRun, string) (string, error) {
	return func(r *commandRun, _ string) (string, error) {
		r.out.Locked, r.out.Changes["discussion_locked"] = &locked, locked
		return choose(locked, "Locked", "Unlocked") + " the discussion.", nil
	}
}

func doDraft(draft bool) func(*commandRun, string) (string, error) {
	return func(r *commandRun, _ string) (string, error) {
		r.out.Draft, r.out.Changes["wip_event"] = &draft, choose(draft, "draft", "ready")
		return "Marked this merge request as " + choose(draft, "draft", "ready") + ".", nil
	}
}

func doTargetBranch(r *commandRun, args string) (string, error) {
	if args == "" {
		return "", refusal("Could not apply target_branch command.")
	}
	r.out.TargetBranch, r.out.Changes["target_branch"] = &args, args
	return "Set the target branch to " + args + ".", nil
}

func doSubscribe(subscribe bool) func(*commandRun, string) (string, error) {
	return func(r *commandRun, _ string) (string, error) {
		r.out.inTx = append(r.out.inTx, func(ctx context.Context, tx *db.Tx, i *Issuable) error {
			_, err := saveSubscription(ctx, tx, i.Target(), r.by.ID, subscribe, r.s.Now())
			return err
		})
		r.out.Changes["subscription_event"] = choose(subscribe, "subscribe", "unsubscribe")
		return choose(subscribe, "Subscribed to", "Unsubscribed from") + " notifications.", nil
	}
}

// doLink links the issue to the issues in the arguments.
func doLink(kind LinkKind) func(*commandRun, string) (string, error) {
	return func(r *commandRun, args string) (string, error) {
		var named []string
		for _, text := range quickaction.Names(args, 0) {
			proj, other, err := r.issueAt(text)
			if err != nil {
				return "", err
			}
			if err := r.link(proj, other, kind); err != nil {
				return "", err
			}
			named = append(named, text)
		}
		if len(named) == 0 {
			return "", refusal("Could not apply the command. No issue was specified.")
		}
		return strings.ToUpper(linkText(kind)[:1]) + linkText(kind)[1:] + " " + strings.Join(named, ", ") + ".", nil
	}
}

func (r *commandRun) link(proj *project.Project, other *Issue, kind LinkKind) error {
	for _, p := range []*project.Project{r.proj, proj} {
		if p.Change(r.by, project.IssuePart, project.Guest) != nil {
			return refusal("You may not link issues of " + p.FullPath + ".")
		}
	}
	if other.ID == r.on.ID {
		return refusal("An issue cannot be linked to itself.")
	}
	r.out.inTx = append(r.out.inTx, func(ctx context.Context, tx *db.Tx, _ *Issuable) error {
		_, err := r.s.addLink(ctx, tx, r.by, r.on.Issue, other, kind, true)
		return err
	})
	return nil
}

// doUnlink removes the links with the issues in the arguments.
func doUnlink(r *commandRun, args string) (string, error) {
	links, err := r.s.IssueLinks(r.ctx, r.by, project.RefTo(r.proj.ID), r.on.IID)
	if err != nil {
		return "", err
	}
	var named []string
	for _, text := range quickaction.Names(args, 0) {
		_, other, err := r.issueAt(text)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(links, func(l *Link) bool { return l.Target.ID == other.ID })
		if at < 0 {
			return "", refusal("This issue has no link with " + text + ".")
		}
		id := links[at].ID
		r.out.after = append(r.out.after, func(ctx context.Context, i *Issuable) (string, error) {
			_, err := r.s.UnlinkIssues(ctx, r.by, project.RefTo(i.ProjectID), i.IID, id)
			return "Removed the link with " + text + ".", err
		})
		named = append(named, text)
	}
	if len(named) == 0 {
		return "", refusal("Could not apply the command. No issue was specified.")
	}
	return "", nil
}

func doDuplicate(r *commandRun, args string) (string, error) {
	proj, other, err := r.issueAt(args)
	if err != nil {
		return "", err
	}
	if err := r.link(proj, other, RelatesTo); err != nil {
		return "", err
	}
	r.out.inTx = append(r.out.inTx, func(ctx context.Context, tx *db.Tx, i *Issuable) error {
		if err := r.s.AddSystemNote(ctx, tx, r.by, i.Target(), i.IID, i.ProjectID, "marked this issue as a duplicate of "+nameFor(r.on.Issue, other)); err != nil {
			return err
		}
		return r.s.AddSystemNote(ctx, tx, r.by, other.Target(), other.IID, other.ProjectID, "marked "+nameFor(other, r.on.Issue)+" as a duplicate of this issue")
	})
	if r.on.State == Opened {
		r.out.Event, r.out.Changes["state_event"] = "close", "close"
	}
	return "Closed this issue as a duplicate of " + args + ".", nil
}

func doCopyMetadata(r *commandRun, args string) (string, error) {
	from, err := r.source(args)
	if err != nil {
		return "", err
	}
	found, err := findLabelsOf(r.ctx, r.s.DB, from.Kind, []int64{from.ID})
	if err != nil {
		return "", err
	}
	r.out.Labels.Add = append(r.out.Labels.Add, labelNames(found[from.ID])...)
	r.out.Changes["add_label_ids"] = LabelIDs(found[from.ID])
	if from.MilestoneID != nil {
		r.out.Milestone, r.out.Changes["milestone_id"] = from.MilestoneID, *from.MilestoneID
	}
	return "Copied labels and milestone from " + args + ".", nil
}

// source returns the issue or merge request of the project to copy metadata from.
func (r *commandRun) source(text string) (*Issuable, error) {
	if number, ok := strings.CutPrefix(text, "!"); ok {
		iid, err := strconv.ParseInt(number, 10, 64)
		if err == nil && r.proj.MayRead(r.by, project.MergePart) {
			found, err := findMetadata(r.ctx, r.s.DB, MergeKind, r.proj.ID, iid)
			if err == nil || !hiddenError(db.NotFound(err, "")) {
				return found, err
			}
		}
		return nil, refusal("Could not find " + text + ".")
	}
	proj, i, err := r.issueAt(text)
	if err != nil {
		return nil, err
	}
	if proj.ID != r.proj.ID {
		return nil, refusal("Metadata can only be copied within the project.")
	}
	return &i.Issuable, nil
}

func doMove(r *commandRun, args string) (string, error) {
	return r.copyTo(args, "move", func(ctx context.Context, i *Issuable, to int64) (*Issue, error) {
		return r.s.MoveIssue(ctx, r.by, project.RefTo(i.ProjectID), i.IID, to)
	})
}

func doClone(r *commandRun, args string) (string, error) {
	notes := false
	if rest, ok := strings.CutSuffix(args, "--with_notes"); ok {
		args, notes = strings.TrimSpace(rest), true
	}
	if args == "" {
		args = r.proj.FullPath
	}
	return r.copyTo(args, "clone", func(ctx context.Context, i *Issuable, to int64) (*Issue, error) {
		return r.s.CloneIssue(ctx, r.by, project.RefTo(i.ProjectID), i.IID, to, notes)
	})
}

func (r *commandRun) copyTo(path, verb string, do func(ctx context.Context, i *Issuable, to int64) (*Issue, error)) (string, error) {
	to, err := r.s.Projects.RequireView(r.ctx, r.by, project.Ref(path), project.IssuePart)
	if hiddenError(err) {
		return "", refusal("Failed to " + verb + " this issue because target project doesn't exist.")
	}
	if err != nil {
		return "", err
	}
	r.out.after = append(r.out.after, func(ctx context.Context, i *Issuable) (string, error) {
		copied, err := do(ctx, i, to.ID)
		if err != nil {
			return "", err
		}
		return choose(verb == "move", "Moved", "Cloned") + " this issue to " + to.FullPath + "#" + strconv.FormatInt(copied.IID, 10) + ".", nil
	})
	return "", nil
}
