package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/limit"
	"svc/internal/merge"
	"svc/internal/outbound"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/wiki"
)

// LogFilter selects deliveries by the status of their responses: one status, or
// those from Status up to Upper. The zero value selects all.
type LogFilter struct{ Status, Upper int }

// Deliveries lists the delivery log of a webhook, newest first, for those who manage
// the webhook. A failed delivery that will be retried is listed with its last result.
// NotFound; Forbidden.
func (s *Service) Deliveries(ctx context.Context, by actor.Actor, at At, id int64, f LogFilter, p db.Paging) (*Hook, db.Page[*Delivery], error) {
	h, err := s.Get(ctx, by, at, id)
	if err != nil {
		return nil, db.Page[*Delivery]{}, err
	}
	page, err := listDeliveries(ctx, s.DB, h.ID, f, p)
	if err != nil {
		return nil, page, fmt.Errorf("list deliveries of hook %d: %w", id, err)
	}
	return h, page, nil
}

// Delivery returns a delivery of the log of a webhook, for those who manage the
// webhook. NotFound; Forbidden.
func (s *Service) Delivery(ctx context.Context, by actor.Actor, at At, hookID, id int64) (*Hook, *Delivery, error) {
	h, err := s.Get(ctx, by, at, hookID)
	if err != nil {
		return nil, nil, err
	}
	d, err := findDelivery(ctx, s.DB, h.ID, id)
	if err != nil || d.waiting && d.DeliveredAt == nil {
		return nil, nil, db.NotFound(orNoRows(err), "Hook event")
	}
	return h, d, nil
}

func orNoRows(err error) error {
	if err != nil {
		return err
	}
	return db.ErrNoRows
}

// tests limits test deliveries and resends per hook, because they are sent immediately.
var tests = limit.Rate{Name: "hook_tests", Requests: 5, Period: time.Minute}

// allowTest refuses too many test deliveries.
func (s *Service) allowTest(h *Hook) error {
	if d := s.limits.Allow(fmt.Sprint(h.ID), tests); !d.OK {
		return limit.Refused{Decision: d}
	}
	return nil
}

// Resend sends a delivery of the log again, at once, for those who manage the
// webhook. It returns the new delivery. NotFound; Forbidden; Unprocessable if the
// webhook has another URL now; limit.Refused.
func (s *Service) Resend(ctx context.Context, by actor.Actor, at At, hookID, id int64) (*Delivery, error) {
	if _, err := s.at(ctx, by, at, true); err != nil {
		return nil, err
	}
	h, d, err := s.Delivery(ctx, by, at, hookID, id)
	if err != nil {
		return nil, err
	}
	if d.URL != "" && d.URL != h.URL {
		return nil, errs.Unprocessable("The hook URL has changed, and this log entry cannot be retried")
	}
	if err := s.allowTest(h); err != nil {
		return nil, err
	}
	again := &Delivery{HookID: h.ID, eventID: d.eventID, Key: d.Key, Trigger: d.Trigger, CreatedAt: s.Now()}
	if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return insertDelivery(ctx, tx, again) }); err != nil {
		return nil, fmt.Errorf("resend delivery %d: %w", id, err)
	}
	return again, s.sendNow(ctx, h, again)
}

// sendNow sends a delivery outside of the order of the hook.
func (s *Service) sendNow(ctx context.Context, h *Hook, d *Delivery) error {
	policy, err := s.policy(ctx, h)
	if err != nil {
		return err
	}
	sender := outbound.NewSender(policy, !h.VerifyTLS, requestTime)
	defer sender.Close()
	if err := s.complete(ctx, d); err != nil {
		return err
	}
	if err := s.send(ctx, sender, h, d); err != nil {
		return err
	}
	now := s.Now()
	d.DeliveredAt = &now
	ctx = context.WithoutCancel(ctx)
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveDelivery(ctx, tx, d); err != nil {
			return err
		}
		if err := countLogged(ctx, tx, h.ID, 1); err != nil || !d.OK() {
			return err
		}
		// A hook whose receiver accepts a request is enabled again.
		if err := resetState(ctx, tx, h.ID); err != nil {
			return err
		}
		return setDisabled(ctx, tx, h.ID, false)
	})
}

// TriggerNames returns the triggers that Test accepts for a level.
func TriggerNames(l Level) []TriggerInfo {
	return slices.DeleteFunc(TriggersOf(l), func(t TriggerInfo) bool {
		return slices.Contains([]Trigger{ConfidentialNote, Subgroups, Members, ProjectEvents, RepositoryUpdate}, t.Trigger)
	})
}

// Test sends an event with data of the project to a webhook at once, for those who
// manage the webhook. A group hook gets data of the newest project of the group.
// NotFound; Forbidden; Unprocessable if the project lacks the data, or the receiver
// does not accept the request; limit.Refused.
func (s *Service) Test(ctx context.Context, by actor.Actor, at At, id int64, trigger Trigger) (*Delivery, error) {
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	h, err := s.get(ctx, s.DB, in, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(TriggerNames(in.level()), func(t TriggerInfo) bool { return t.Trigger == trigger }) {
		return nil, errs.Invalid("trigger does not have a valid value")
	}
	if err := s.allowTest(h); err != nil {
		return nil, err
	}
	o, err := s.sample(ctx, by, in, trigger)
	if err != nil {
		return nil, err
	}
	return s.sendSample(ctx, h, o)
}

// TestIntegration sends a push event, or a plain message if the project has no pushes, to
// an active integration at once. The errors are those of Test.
func (s *Service) TestIntegration(ctx context.Context, by actor.Actor, at At, kind Kind) (*Delivery, error) {
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	h, err := s.integration(ctx, s.DB, in, kind)
	if err != nil {
		return nil, err
	}
	if err := s.allowTest(h); err != nil {
		return nil, err
	}
	trigger := Push
	if info, err := Info(kind); err != nil {
		return nil, err
	} else if len(info.Triggers) == 0 {
		return nil, errs.Invalid("This integration sends no messages.")
	} else if !slices.Contains(info.Triggers, Push) {
		trigger = info.Triggers[0]
	}
	o, err := s.sample(ctx, by, in, trigger)
	if err != nil {
		return nil, err
	}
	return s.sendSample(ctx, h, o)
}

// TestSystem sends a fixed event to a system hook at once, and returns its payload.
// The errors are those of Test.
func (s *Service) TestSystem(ctx context.Context, by actor.Actor, id int64) (*Delivery, error) {
	in, err := s.at(ctx, by, At{System: true}, true)
	if err != nil {
		return nil, err
	}
	h, err := s.get(ctx, s.DB, in, id)
	if err != nil {
		return nil, err
	}
	if err := s.allowTest(h); err != nil {
		return nil, err
	}
	return s.sendSample(ctx, h, occurrence{trigger: system, payload: object{
		"event_name": "project_create", "name": "Ruby", "path": "ruby", "project_id": 1, "owner_name": "Someone", "owner_email": "example@example.org",
	}})
}

// sendSample stores an event for one hook and delivers it.
func (s *Service) sendSample(ctx context.Context, h *Hook, o occurrence) (*Delivery, error) {
	payload, err := json.Marshal(o.payload)
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(o.pending)
	if err != nil {
		return nil, err
	}
	e := &captured{uuid: newUUID(), trigger: o.trigger, header: o.trigger.info().Header, payload: payload, pending: string(rest), at: s.Now()}
	if o.projectID != 0 {
		e.projectID = &o.projectID
	}
	d := &Delivery{HookID: h.ID, Key: newUUID(), Trigger: o.trigger, CreatedAt: e.at}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertEvent(ctx, tx, e); err != nil {
			return err
		}
		d.eventID = e.id
		return insertDelivery(ctx, tx, d)
	})
	if err != nil {
		return nil, fmt.Errorf("store test event: %w", err)
	}
	if err := s.sendNow(ctx, h, d); err != nil {
		return nil, err
	}
	if !d.OK() {
		return d, d.refuse()
	}
	return d, nil
}

// sample builds a test event from data of a project.
func (s *Service) sample(ctx context.Context, by actor.Actor, in owner, trigger Trigger) (occurrence, error) {
	p := in.project
	if p == nil {
		var groupID int64
		if in.group != nil {
			groupID = in.group.ID
		}
		id, err := newestProject(ctx, s.DB, groupID)
		if err != nil {
			return occurrence{}, err
		}
		if id == 0 {
			return occurrence{}, errs.Unprocessable("Ensure there is at least one project")
		}
		if p, err = project.In(ctx, s.DB, id); err != nil {
			return occurrence{}, err
		}
	}
	o, err := s.sampleOf(ctx, by, p, trigger)
	if errs.Is(err, errs.KindNotFound) {
		return o, errs.Unprocessable("Ensure the project has %s.", missingSample[trigger])
	}
	return o, err
}

// missingSample describes what a project lacks for a test of a trigger.
var missingSample = map[Trigger]string{
	Push: "at least one commit", TagPush: "at least one tag", Issues: "at least one issue", ConfidentialIssue: "at least one issue", Notes: "at least one comment",
	MergeRequests: "at least one merge request", Jobs: "CI/CD jobs", Pipelines: "CI/CD pipelines", WikiPages: "a wiki page", Deployments: "at least one deployment",
	Releases: "at least one release", Milestones: "at least one milestone", Emoji: "at least one comment", FeatureFlags: "at least one feature flag",
}

func (s *Service) sampleOf(ctx context.Context, by actor.Actor, p *project.Project, trigger Trigger) (occurrence, error) {
	newest := func(rows string) (int64, error) { return newestIn(ctx, s.DB, rows, p.ID) }
	switch trigger {
	case Push, TagPush:
		return s.samplePush(ctx, by, p, trigger)
	case Issues, ConfidentialIssue:
		rows := "public issues"
		if trigger == ConfidentialIssue {
			rows = "issues"
		}
		id, err := newest(rows)
		if err != nil {
			return occurrence{}, err
		}
		i, err := plan.IssueIn(ctx, s.DB, id)
		if err != nil {
			return occurrence{}, err
		}
		return s.issueEvent(ctx, s.DB, plan.IssueSaving{Issue: i, By: by.ID})
	case Notes, Emoji:
		return s.sampleNote(ctx, by, p, trigger)
	case WikiPages:
		return s.sampleWikiPage(ctx, by, p)
	case FeatureFlags:
		f, err := newestFlag(ctx, s.DB, p.ID)
		if err != nil {
			return occurrence{}, err
		}
		return s.flagEvent(ctx, s.DB, p.ID, by.ID, f)
	case MergeRequests:
		id, err := newest("merge_requests")
		if err != nil {
			return occurrence{}, err
		}
		m, err := merge.RequestIn(ctx, s.DB, id)
		if err != nil {
			return occurrence{}, err
		}
		return s.mergeEvent(ctx, s.DB, merge.Change{Request: m, Kind: merge.Created, By: by.ID}, "open")
	case Jobs:
		id, err := newest("jobs")
		if err != nil {
			return occurrence{}, err
		}
		return s.jobEvent(ctx, s.DB, id)
	case Pipelines:
		id, err := newest("pipelines")
		if err != nil {
			return occurrence{}, err
		}
		found, err := ci.PipelineIn(ctx, s.DB, id)
		if err != nil {
			return occurrence{}, err
		}
		return s.pipelineEvent(ctx, s.DB, found)
	case Deployments:
		id, err := newest("deployments")
		if err != nil {
			return occurrence{}, err
		}
		return s.sampleDeployment(ctx, id, p.ID)
	case Milestones:
		return s.sampleMilestone(ctx, p)
	case Releases:
		r, err := newestRelease(ctx, s.DB, p.ID)
		if err != nil {
			return occurrence{}, err
		}
		return s.releaseEvent(ctx, s.DB, p.ID, r, "create")
	case AccessTokens:
		return s.sampleToken(p), nil
	}
	return occurrence{}, errs.NotFound("")
}

// sampleNote is the newest comment of a project, or a reaction to it.
func (s *Service) sampleNote(ctx context.Context, by actor.Actor, p *project.Project, trigger Trigger) (occurrence, error) {
	n, err := newestNote(ctx, s.DB, p.ID)
	if err != nil {
		return occurrence{}, err
	}
	note, err := plan.NoteIn(ctx, s.DB, n.on, n.id)
	if err != nil {
		return occurrence{}, err
	}
	if trigger == Notes {
		return s.noteEvent(ctx, s.DB, plan.NoteSaving{Note: note, By: by.ID})
	}
	return s.emojiEvent(ctx, s.DB, plan.Awarding{
		Award:     &plan.Award{Name: "thumbsup", UserID: by.ID, On: plan.Target{Kind: plan.NoteKind, ID: note.ID}, CreatedAt: s.Now(), UpdatedAt: s.Now()},
		ProjectID: p.ID, On: plan.Noteable{Target: n.on, IID: note.OnIID},
	})
}

// sampleWikiPage is the first page of a wiki, as if it were created now.
func (s *Service) sampleWikiPage(ctx context.Context, by actor.Actor, p *project.Project) (occurrence, error) {
	_, page, err := s.Wikis.Pages(ctx, actor.System(), project.Place{Ref: project.RefTo(p.ID)}, false, db.Paging{Limit: 1})
	if err != nil {
		return occurrence{}, err
	}
	if len(page.Items) == 0 {
		return occurrence{}, errs.NotFound("")
	}
	a, err := s.Repos.WikiOf(ctx, &p.ID, nil)
	if err != nil {
		return occurrence{}, err
	}
	if a == nil {
		return occurrence{}, errs.NotFound("")
	}
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		return occurrence{}, err
	}
	c, err := r.Commit(ctx, "HEAD")
	if err != nil {
		return occurrence{}, repo.Missing(err, "Commit")
	}
	return s.wikiEvent(ctx, s.DB, wiki.PageChange{Page: *page.Items[0], AuxRepo: a, Done: activity.Created, By: by.ID, SHA: string(c.ID)}, p)
}

// samplePush is the push of the newest commit of the default branch, or of a tag.
func (s *Service) samplePush(ctx context.Context, by actor.Actor, p *project.Project, trigger Trigger) (occurrence, error) {
	found, err := findUsersByID(ctx, s.DB, []int64{by.ID})
	if err != nil {
		return occurrence{}, err
	}
	who := found[by.ID]
	if who == nil {
		who = &userRow{id: by.ID, name: by.Name, username: by.Username}
	}
	if trigger == TagPush {
		_, tags, err := s.Repos.Tags(ctx, actor.System(), project.RefTo(p.ID), repo.RefFilter{}, db.Paging{Limit: 1})
		if err != nil {
			return occurrence{}, err
		}
		if len(tags.Items) == 0 {
			return occurrence{}, errs.NotFound("")
		}
		return s.pushEvent(p, who, repo.Change{Ref: git.Tags + tags.Items[0].Name, Old: git.ZeroOID, New: tags.Items[0].Commit.ID}), nil
	}
	if p.DefaultBranch == "" {
		return occurrence{}, errs.NotFound("")
	}
	c, err := s.commit(ctx, p, git.Heads+p.DefaultBranch)
	if err != nil {
		return occurrence{}, err
	}
	if c == nil {
		return occurrence{}, errs.NotFound("")
	}
	change := repo.Change{Ref: git.Heads + p.DefaultBranch, Old: git.ZeroOID, New: c.ID}
	if len(c.ParentIDs) > 0 {
		change.Old = c.ParentIDs[0]
	}
	return s.pushEvent(p, who, change), nil
}
