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

// Reason is why somebody is told of an act, for letters and their headers.
type Reason string

// The reasons, the more telling ones first.
const (
	OwnActivity     Reason = "own_activity"
	Assigned        Reason = "assigned"
	ReviewRequested Reason = "review_requested"
	WasMentioned    Reason = "mentioned"
	Subscribed      Reason = "subscribed"
	Participated    Reason = "participated"
	Watched         Reason = "watching"
)

// reasons orders them.
func reasons() []Reason {
	return []Reason{OwnActivity, Assigned, ReviewRequested, WasMentioned, Subscribed, Participated, Watched}
}

// explanation says a reason to the one whom it concerns.
func (r Reason) explanation() string {
	switch r {
	case OwnActivity:
		return "you want to be told of what you do yourself"
	case Assigned:
		return "you are assigned"
	case ReviewRequested:
		return "your review is asked for"
	case WasMentioned:
		return "you are mentioned"
	case Subscribed:
		return "you are subscribed"
	case Participated:
		return "you take part in it"
	}
	return "of your notification settings for the project"
}

// RecipientWork is the work of finding out who is told of an act.
type RecipientWork struct {
	EventID int64 `json:"act_id"`
}

// Kind implements queue.Work.
func (RecipientWork) Kind() string { return "notify.address" }

// FindRecipients finds out who is told of an act, and puts it into a letter to each.
func (s *Service) FindRecipients(ctx context.Context, w RecipientWork) error {
	a, err := findEvent(ctx, s.DB, w.EventID)
	if err != nil {
		return fmt.Errorf("find act %d: %w", w.EventID, err)
	}
	if a == nil || s.sources[a.TargetKind] == nil {
		return nil
	}
	told, err := s.recipients(ctx, a)
	if err != nil {
		return fmt.Errorf("who is told of act %d: %w", a.ID, err)
	}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		// One at a time: many may be told, and others want to write as well.
		if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addToEmail(ctx, tx, a, id, told[id]) }); err != nil {
			return fmt.Errorf("tell user %d of act %d: %w", id, a.ID, err)
		}
	}
	return nil
}

// addToEmail puts an act into a letter.
func (s *Service) addToEmail(ctx context.Context, tx *db.Tx, a *Event, userID int64, r Reason) error {
	if has, err := hasItem(ctx, tx, a.ID, userID); err != nil || has {
		return err
	}
	id, made, err := openEmail(ctx, tx, userID, a, s.Now())
	if err != nil {
		return err
	}
	if err := insertItem(ctx, tx, a.ID, userID, id, r); err != nil || !made {
		return err
	}
	return s.Queue.Add(ctx, tx, Delivery{EmailID: id}, queue.In(mail.Lane), queue.Tries(tries), queue.Delay(s.Delay))
}

// tries makes a letter wait about a day for a mail server that is away.
const tries = 14

// link is how somebody has to do with an act, and how that is called.
type link struct {
	relation    relation
	reason Reason
}

// recipients gives who is told of an act and why, as far as settings say. What
// each may see is asked when his letter is sent.
func (s *Service) recipients(ctx context.Context, a *Event) (map[int64]Reason, error) {
	who, err := s.sources[a.TargetKind].Recipients(ctx, a)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil // the thing is gone
	}
	if err != nil {
		return nil, err
	}
	links := map[int64][]link{}
	add := func(w relation, r Reason, ids ...int64) {
		for _, id := range ids {
			links[id] = append(links[id], link{w, r})
		}
	}
	add(byParticipation, Participated, who.Participants...)
	add(byParticipation, Assigned, who.Assignees...)
	add(byParticipation, ReviewRequested, who.Reviewers...)
	add(bySubscription, Subscribed, who.Subscribers...)
	for _, id := range who.Affected { // a word to himself, as a mention is
		r := Participated
		if slices.Contains(who.Assignees, id) {
			r = Assigned
		} else if slices.Contains(who.Reviewers, id) {
			r = ReviewRequested
		}
		add(byMention, r, id)
	}
	add(byWatching, Watched, who.BySettings...)
	names, err := s.mentionedUsers(ctx, a, who)
	if err != nil {
		return nil, err
	}
	add(byMention, WasMentioned, names...)
	if err := s.addMembers(ctx, a, who, add); err != nil {
		return nil, err
	}
	return s.filterBySettings(ctx, a, links, who.Unsubscribed)
}

// addMembers adds those who have to do with the project rather than the thing.
func (s *Service) addMembers(ctx context.Context, a *Event, who Recipients, add func(relation, Reason, ...int64)) error {
	if who.SkipWatchers && !who.AllMembers {
		return nil
	}
	members, err := s.Projects.MemberIDs(ctx, project.Place{Ref: project.RefTo(a.ProjectID)})
	if err != nil {
		return err
	}
	add(byWatching, Watched, members...)
	if who.SkipWatchers {
		return nil
	}
	watchers, err := findWatchers(ctx, s.DB, a.ProjectID)
	add(byWatching, Watched, watchers...)
	return err
}

// filterBySettings leaves those who want to be told, each with the best reason.
func (s *Service) filterBySettings(ctx context.Context, a *Event, links map[int64][]link, left []int64) (map[int64]Reason, error) {
	settings, err := s.effectiveSettings(ctx, a.ProjectID, slices.Sorted(maps.Keys(links)))
	if err != nil {
		return nil, err
	}
	told := map[int64]Reason{}
	for id, all := range links {
		t := settings[id]
		for _, l := range all {
			if !t.wants(a.Type, l.relation) || l.relation != byMention && slices.Contains(left, id) {
				continue
			}
			if best, ok := told[id]; !ok || slices.Index(reasons(), l.reason) < slices.Index(reasons(), best) {
				told[id] = l.reason
			}
		}
		if id == a.AuthorID && told[id] != "" {
			told[id] = OwnActivity
			if !t.OwnActivity {
				delete(told, id)
			}
		}
	}
	return told, nil
}

// effectiveSettings gives what users want to be told of in a project: what each said of
// it, else of the nearest group above, else of everywhere.
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

// maxMentions is how many names of a text are looked up.
const maxMentions = 100

// byMention finds the people whose names, or the names of whose groups, stand in
// the text of an act.
func (s *Service) mentionedUsers(ctx context.Context, a *Event, who Recipients) ([]int64, error) {
	names := who.Mentions
	if who.Text != "" {
		found, err := markup.Mentions(ctx, who.Text)
		if err != nil {
			return nil, err
		}
		names = append(slices.Clone(names), found...)
	}
	var ids []int64
	for _, name := range names[:min(maxMentions, len(names))] {
		found, err := s.resolveMention(ctx, a, name)
		if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// resolveMention finds who a name means: a user, the members of a group that the author
// of the act sees, or with "all" those of the project.
func (s *Service) resolveMention(ctx context.Context, a *Event, name string) ([]int64, error) {
	if name == "all" {
		return s.Projects.MemberIDs(ctx, project.Place{Ref: project.RefTo(a.ProjectID)})
	}
	if strings.Trim(name, "0123456789") == "" {
		return nil, nil // it would be taken for an id
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
	by, err := s.Users.As(ctx, a.AuthorID)
	if err != nil {
		return nil, err
	}
	g, err := s.Projects.RequireGroup(ctx, by, project.Ref(name), project.NoAccess)
	if err != nil || g.Settings.MentionsDisabled {
		return nil, err
	}
	return s.Projects.MemberIDs(ctx, project.Place{Group: true, Ref: project.RefTo(g.ID)})
}
