package notify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/user"
)

// Reason is the reason why a user is notified of an event. It is in the text and in
// a header of the email.
type Reason string

// The reasons, the most specific ones first.
const (
	OwnActivity     Reason = "own_activity"
	Assigned        Reason = "assigned"
	ReviewRequested Reason = "review_requested"
	WasMentioned    Reason = "mentioned"
	Subscribed      Reason = "subscribed"
	Participated    Reason = "participated"
	Watched         Reason = "watching"
)

// reasons returns all reasons, the most specific ones first.
func reasons() []Reason {
	return []Reason{OwnActivity, Assigned, ReviewRequested, WasMentioned, Subscribed, Participated, Watched}
}

// explanation returns the text of the reason in the email, after "because".
func (r Reason) explanation() string {
	switch r {
	case OwnActivity:
		return "you chose to be notified of your own activity"
	case Assigned:
		return "you were assigned"
	case ReviewRequested:
		return "your review was requested"
	case WasMentioned:
		return "you were mentioned"
	case Subscribed:
		return "you are subscribed"
	case Participated:
		return "you are a participant"
	}
	return "of your notification settings for the project"
}

// RecipientWork is the background job that finds the recipients of an event.
type RecipientWork struct {
	EventID int64 `json:"act_id"`
}

// Kind implements queue.Work.
func (RecipientWork) Kind() string { return "notify.address" }

// FindRecipients finds the recipients of an event and adds the event to an email to
// each recipient.
func (s *Service) FindRecipients(ctx context.Context, w RecipientWork) error {
	e, err := findEvent(ctx, s.DB, w.EventID)
	if err != nil {
		return fmt.Errorf("find event %d: %w", w.EventID, err)
	}
	if e == nil || s.sources[e.TargetKind] == nil {
		return nil
	}
	chosen, err := s.recipients(ctx, e)
	if err != nil {
		return fmt.Errorf("recipients of event %d: %w", e.ID, err)
	}
	for _, id := range slices.Sorted(maps.Keys(chosen)) {
		// One transaction per recipient: a long transaction would block other
		// writers.
		if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addToEmail(ctx, tx, e, id, chosen[id]) }); err != nil {
			return fmt.Errorf("notify user %d of event %d: %w", id, e.ID, err)
		}
	}
	return nil
}

// addToEmail adds an event to the waiting email about its target. If there is none,
// it creates one and schedules its delivery.
func (s *Service) addToEmail(ctx context.Context, tx *db.Tx, e *Event, userID int64, reason Reason) error {
	if has, err := hasItem(ctx, tx, e.ID, userID); err != nil || has {
		return err
	}
	id, made, err := openEmail(ctx, tx, userID, e, s.Now())
	if err != nil {
		return err
	}
	if err := insertItem(ctx, tx, e.ID, userID, id, reason); err != nil || !made {
		return err
	}
	return s.Queue.Add(ctx, tx, Delivery{EmailID: id}, queue.In(mail.Lane), queue.Tries(tries), queue.Delay(s.Delay))
}

// tries is the number of delivery attempts: they last about a day while the mail
// server is unreachable.
const tries = 14

// link is a relation of a user to an event, with the reason of notifications.
type link struct {
	relation relation
	reason   Reason
}

// recipients returns the users to notify of an event, with the reason, according
// to their settings. Permissions are checked when the email is rendered.
func (s *Service) recipients(ctx context.Context, e *Event) (map[int64]Reason, error) {
	r, err := s.sources[e.TargetKind].Recipients(ctx, e)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil // the target was deleted
	}
	if err != nil {
		return nil, err
	}
	links := map[int64][]link{}
	add := func(w relation, reason Reason, ids ...int64) {
		for _, id := range ids {
			links[id] = append(links[id], link{w, reason})
		}
	}
	add(byParticipation, Participated, r.Participants...)
	add(byParticipation, Assigned, r.Assignees...)
	add(byParticipation, ReviewRequested, r.Reviewers...)
	add(bySubscription, Subscribed, r.Subscribers...)
	for _, id := range r.Affected { // as direct as a mention
		reason := Participated
		if slices.Contains(r.Assignees, id) {
			reason = Assigned
		} else if slices.Contains(r.Reviewers, id) {
			reason = ReviewRequested
		}
		add(byMention, reason, id)
	}
	add(byWatching, Watched, r.BySettings...)
	names, err := s.mentionedUsers(ctx, e, r)
	if err != nil {
		return nil, err
	}
	add(byMention, WasMentioned, names...)
	if err := s.addMembers(ctx, e, r, add); err != nil {
		return nil, err
	}
	return s.filterBySettings(ctx, e, links, r.Unsubscribed)
}

// addMembers adds the members and watchers of the project.
func (s *Service) addMembers(ctx context.Context, e *Event, r Recipients, add func(relation, Reason, ...int64)) error {
	if r.SkipWatchers && !r.AllMembers {
		return nil
	}
	members, err := s.Projects.MemberIDs(ctx, project.Place{Ref: project.RefTo(e.ProjectID)})
	if err != nil {
		return err
	}
	add(byWatching, Watched, members...)
	if r.SkipWatchers {
		return nil
	}
	watchers, err := findWatchers(ctx, s.DB, e.ProjectID)
	add(byWatching, Watched, watchers...)
	return err
}

// filterBySettings returns the users whose settings select the event, each with the
// most specific reason.
func (s *Service) filterBySettings(ctx context.Context, e *Event, links map[int64][]link, unsubscribed []int64) (map[int64]Reason, error) {
	settings, err := s.effectiveSettings(ctx, e.ProjectID, slices.Sorted(maps.Keys(links)))
	if err != nil {
		return nil, err
	}
	chosen := map[int64]Reason{}
	for id, all := range links {
		t := settings[id]
		for _, l := range all {
			if !t.wants(e.Type, l.relation) || l.relation != byMention && slices.Contains(unsubscribed, id) {
				continue
			}
			if best, ok := chosen[id]; !ok || slices.Index(reasons(), l.reason) < slices.Index(reasons(), best) {
				chosen[id] = l.reason
			}
		}
		if id == e.AuthorID && chosen[id] != "" {
			chosen[id] = OwnActivity
			if !t.OwnActivity {
				delete(chosen, id)
			}
		}
	}
	return chosen, nil
}

// effectiveSettings returns the settings of users that apply to a project: the
// settings for the project, else for the nearest group above, else the global ones.
func (s *Service) effectiveSettings(ctx context.Context, projectID int64, users []int64) (map[int64]Setting, error) {
	rows, err := findEffective(ctx, s.DB, projectID, users)
	if err != nil {
		return nil, fmt.Errorf("notification settings: %w", err)
	}
	const farthest = 1 << 20
	distance := func(r settingRow) int64 {
		switch {
		case r.at.project != nil:
			return -1
		case r.at.group != nil:
			return r.depth
		}
		return farthest
	}
	slices.SortFunc(rows, func(a, b settingRow) int { return int(distance(a) - distance(b)) })
	found := make(map[int64]Setting, len(users))
	own := map[int64]bool{}
	for _, r := range rows {
		if distance(r) == farthest {
			own[r.user] = r.setting.OwnActivity
		}
		if _, has := found[r.user]; !has && r.setting.Level != Global {
			found[r.user] = r.setting
		}
	}
	for _, id := range users {
		t, has := found[id]
		if !has {
			t = Setting{Level: Participating}
		}
		t.OwnActivity = own[id]
		found[id] = t
	}
	return found, nil
}

// MaxMentions is the maximum number of mentions of a text that are resolved.
const MaxMentions = 100

// mentionedUsers returns the users whom the text of an event mentions, by their
// username or by a group.
func (s *Service) mentionedUsers(ctx context.Context, e *Event, r Recipients) ([]int64, error) {
	names := r.Mentions
	if r.Text != "" {
		found, err := markup.Mentions(ctx, r.Text)
		if err != nil {
			return nil, err
		}
		names = append(slices.Clone(names), found...)
	}
	var ids []int64
	for _, name := range names[:min(MaxMentions, len(names))] {
		found, err := s.Mentioned(ctx, e, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// Mentioned returns the users whom a mention in the text of an event refers to, or
// none if the author of the event may not mention the name. It does not check
// whether these users can see the target.
func (s *Service) Mentioned(ctx context.Context, e *Event, name string) ([]int64, error) {
	found, err := s.resolveMention(ctx, e, name)
	if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) {
		return nil, nil
	}
	return found, err
}

// resolveMention returns the users whom a mention refers to: a user, the members of
// a group that the author of the event can see, or, for "all", the members of the
// project.
func (s *Service) resolveMention(ctx context.Context, e *Event, name string) ([]int64, error) {
	if name == "all" {
		return s.Projects.MemberIDs(ctx, project.Place{Ref: project.RefTo(e.ProjectID)})
	}
	if strings.Trim(name, "0123456789") == "" {
		return nil, nil // Find would interpret it as an ID
	}
	if !strings.Contains(name, "/") {
		u, err := s.Users.Find(ctx, actor.System(), user.Ref(name))
		if err == nil {
			return []int64{u.ID}, nil
		}
		if !errs.Is(err, errs.KindNotFound) {
			return nil, err
		}
	}
	by, err := s.Users.As(ctx, e.AuthorID)
	if err != nil {
		return nil, err
	}
	g, err := s.Projects.RequireGroup(ctx, by, project.Ref(name), project.NoAccess)
	if err != nil || g.Settings.MentionsDisabled {
		return nil, err
	}
	return s.Projects.MemberIDs(ctx, project.Place{Group: true, Ref: project.RefTo(g.ID)})
}
