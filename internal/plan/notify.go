package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

// NewMentions returns the usernames that a text mentions and its previous version
// does not.
func NewMentions(ctx context.Context, oldText, newText string) ([]string, error) {
	if oldText == newText {
		return nil, nil
	}
	before, err := markup.Mentions(ctx, oldText)
	if err != nil {
		return nil, err
	}
	after, err := markup.Mentions(ctx, newText)
	return slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }), err
}

// NotifyDue queues notifications about issues that are due today or tomorrow, one
// on each of the two days.
func (s *Service) NotifyDue(ctx context.Context) error {
	today := s.today()
	tomorrow := s.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	for _, day := range []string{today, tomorrow} {
		for after := int64(0); ; {
			list, err := findDue(ctx, s.DB, day, after)
			if err != nil {
				return fmt.Errorf("notify of due issues: %w", err)
			}
			if len(list) == 0 {
				break
			}
			after = list[len(list)-1].ID
			err = s.DB.Tx(ctx, func(tx *db.Tx) error {
				for _, i := range list {
					err := s.Notify.Notify(ctx, tx, notify.Event{
						Type: notify.IssueDue, TargetKind: string(IssueKind), TargetID: i.ID, ProjectID: i.ProjectID,
						Once: fmt.Sprintf("issue_due/%d/%s/%s", i.ID, day, today), Details: notify.Details{To: day},
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("notify of due issues: %w", err)
			}
		}
	}
	return nil
}

// notifications implements notify.Source for issues.
type notifications struct{ s *Service }

// Notifications returns the target kind and the source of emails about issues.
func (s *Service) Notifications() (string, notify.Source) { return string(IssueKind), notifications{s} }

// Recipients implements notify.Source.
func (n notifications) Recipients(ctx context.Context, e *notify.Event) (notify.Recipients, error) {
	i, err := findIssueByID(ctx, n.s.DB, e.TargetID)
	if err != nil {
		return notify.Recipients{}, db.NotFound(err, "Issue")
	}
	if err := n.s.FillIssues(ctx, i); err != nil {
		return notify.Recipients{}, err
	}
	return n.s.Recipients(ctx, e, &i.Issuable)
}

// Recipients returns the recipients of an event on an issue or merge request.
func (s *Service) Recipients(ctx context.Context, e *notify.Event, i *Issuable) (notify.Recipients, error) {
	who, err := s.Subscriptions(ctx, i.Target())
	if err != nil {
		return who, err
	}
	who.Participants = append(who.Participants, i.AuthorID)
	for _, u := range i.Assignees {
		who.Assignees = append(who.Assignees, u.ID)
	}
	for _, u := range i.Reviewers {
		who.Reviewers = append(who.Reviewers, u.ID)
	}
	var labels []int64
	switch e.Type {
	case notify.NewIssue, notify.NewMergeRequest:
		who.Text, labels = i.Description, LabelIDs(i.Labels)
	case notify.ReassignIssue, notify.ReassignMergeRequest, notify.ChangeReviewer:
		who.Affected = append(slices.Clone(e.Before), e.After...)
	case notify.Mention:
		return notify.Recipients{Mentions: e.Mentioned, Unsubscribed: who.Unsubscribed, SkipWatchers: true}, nil
	case notify.Relabel:
		labels, who = e.After, notify.Recipients{Unsubscribed: who.Unsubscribed, SkipWatchers: true}
	case notify.NewNote:
		who.Text, err = s.NoteText(ctx, e)
	}
	if err != nil {
		return who, err
	}
	labelSubscribers, err := s.LabelSubscribers(ctx, labels)
	who.Subscribers = append(who.Subscribers, labelSubscribers...)
	return who, err
}

// NoteText returns the text of the notes of an event, or an empty string if they
// were deleted.
func (s *Service) NoteText(ctx context.Context, e *notify.Event) (string, error) {
	notes, err := s.eventNotes(ctx, e)
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Body)
	}
	return strings.Join(texts, "\n\n"), err
}

// eventNotes returns the notes of an event, without those that were deleted.
func (s *Service) eventNotes(ctx context.Context, e *notify.Event) ([]*Note, error) {
	notes, err := findNotes(ctx, s.DB, append([]int64{e.NoteID}, e.MoreNotes...))
	slices.SortFunc(notes, func(a, b *Note) int { return cmp.Compare(a.ID, b.ID) })
	return notes, err
}

// Subscriptions returns the participants, subscribers and unsubscribed users of a
// target.
func (s *Service) Subscriptions(ctx context.Context, of Target) (notify.Recipients, error) {
	rows, err := findSubscriptions(ctx, s.DB, of)
	if err != nil {
		return notify.Recipients{}, fmt.Errorf("subscriptions of %s %d: %w", of.Kind, of.ID, err)
	}
	var who notify.Recipients
	for _, r := range rows {
		switch {
		case !r.subscribed:
			who.Unsubscribed = append(who.Unsubscribed, r.userID)
		case r.asked:
			who.Subscribers = append(who.Subscribers, r.userID)
		default:
			who.Participants = append(who.Participants, r.userID)
		}
	}
	return who, nil
}

// LabelSubscribers returns the users who subscribed to labels.
func (s *Service) LabelSubscribers(ctx context.Context, labels []int64) ([]int64, error) {
	ids, err := findLabelSubscribers(ctx, s.DB, labels)
	if err != nil {
		return nil, fmt.Errorf("subscribers of labels: %w", err)
	}
	return ids, nil
}

// SetSubscribed makes a user a participant of a target unless they have
// unsubscribed, or, if subscribe is false, unsubscribes them. The caller has checked
// access.
func (s *Service) SetSubscribed(ctx context.Context, of Target, userID int64, subscribe bool) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if subscribe {
			return joinSubscription(ctx, tx, of, userID, s.Now())
		}
		return leaveSubscription(ctx, tx, of, userID, s.Now())
	})
}

// Subscribe implements notify.Source.
func (n notifications) Subscribe(ctx context.Context, userID, targetID int64, subscribe bool) error {
	return n.s.SetSubscribed(ctx, Target{IssueKind, targetID}, userID, subscribe)
}

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return true }

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	found, err := findIssueByID(ctx, n.s.DB, events[0].TargetID)
	if err != nil {
		return nil, db.NotFound(err, "Issue")
	}
	proj, i, err := n.s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(i.IID, 10)
	v := &notify.View{
		Project: proj, Subject: i.Title + " (#" + number + ")", Noun: "issue", Path: "/" + proj.FullPath + "/-/issues/" + number,
		Headers: [][2]string{
			{"Issue-ID", strconv.FormatInt(i.ID, 10)}, {"Issue-IID", number}, {"Issue-State", string(i.State)},
			{"ConfidentialIssue", strconv.FormatBool(i.Confidential)},
		},
	}
	names, err := n.s.Named(ctx, events)
	if err != nil {
		return nil, err
	}
	if err := v.Add(events, notify.NewIssue, func(e *notify.Event) (*mail.Section, error) { return n.section(ctx, by, proj, i, e, names) }); err != nil {
		return nil, err
	}
	if to, err := n.movedTo(ctx, by, i); err != nil {
		return nil, err
	} else if to != nil { // link to the new issue, where the discussion continues
		v.Path = fmt.Sprintf("/%s/-/issues/%d", to.ProjectPath, to.IID)
	}
	return v, nil
}

// section renders one event. It returns nil if the recipient may not see it.
func (n notifications) section(ctx context.Context, by actor.Actor, proj *project.Project, i *Issue, e *notify.Event, names Names) (*mail.Section, error) {
	who := names.Name(e.AuthorID)
	switch e.Type {
	case notify.NewIssue:
		return n.s.Section(ctx, by, proj, who+" opened an issue.", i.Description)
	case notify.Mention:
		return n.s.Section(ctx, by, proj, who+" mentioned you in the issue.", i.Description)
	case notify.CloseIssue:
		return &mail.Section{Head: who + " closed the issue."}, nil
	case notify.ReopenIssue:
		return &mail.Section{Head: who + " reopened the issue."}, nil
	case notify.ReassignIssue:
		return &mail.Section{Head: who + " changed the assignees.", Text: names.Change(e), HTML: mail.Plain(names.Change(e))}, nil
	case notify.Relabel:
		return Relabelled(i.Labels, e, who), nil
	case notify.IssueDue:
		return &mail.Section{Head: dueHeading(e.To, e.CreatedAt)}, nil
	case notify.MovedIssue:
		return n.moved(ctx, by, i, who)
	case notify.NewNote:
		return n.s.NoteSection(ctx, by, proj, e, who)
	}
	return nil, nil
}

func dueHeading(day string, now time.Time) string {
	if day == now.UTC().Format(time.DateOnly) {
		return "The issue is due today."
	}
	return "The issue is due tomorrow, " + day + "."
}

// Relabelled renders the event that labels were added. Labels that have been removed
// again are left out. It returns nil if no label is left.
func Relabelled(has []*Label, e *notify.Event, who string) *mail.Section {
	var names []string
	for _, label := range has {
		if slices.Contains(e.After, label.ID) {
			names = append(names, label.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &mail.Section{Head: who + " added a label that you are subscribed to: " + strings.Join(names, ", ") + "."}
}

// moved renders the event that an issue was moved. It names the new issue only to
// recipients who can see it.
func (n notifications) moved(ctx context.Context, by actor.Actor, i *Issue, who string) (*mail.Section, error) {
	to, err := n.movedTo(ctx, by, i)
	switch {
	case err != nil:
		return nil, err
	case to == nil:
		return &mail.Section{Head: who + " moved the issue to another project."}, nil
	}
	return &mail.Section{Head: fmt.Sprintf("%s moved the issue to %s#%d.", who, to.ProjectPath, to.IID)}, nil
}

// movedTo returns the issue that an issue was moved to, or nil if there is none that
// the recipient can see.
func (n notifications) movedTo(ctx context.Context, by actor.Actor, i *Issue) (*Issue, error) {
	if i.MovedToID == nil {
		return nil, nil
	}
	to, err := findIssueByID(ctx, n.s.DB, *i.MovedToID)
	if errs.Is(db.NotFound(err, "Issue"), errs.KindNotFound) {
		return nil, nil // deleted in the other project
	}
	if err != nil {
		return nil, err
	}
	_, seen, err := n.s.issue(ctx, by, project.RefTo(to.ProjectID), to.IID)
	if hidden(err) {
		return nil, nil
	}
	return seen, err
}

// Section returns a section of an email with a Markdown text. References in the
// text are resolved with the permissions of the recipient.
func (s *Service) Section(ctx context.Context, by actor.Actor, proj *project.Project, head, text string) (*mail.Section, error) {
	if text == "" {
		return &mail.Section{Head: head}, nil
	}
	ref := project.RefTo(proj.ID)
	html, err := s.Render(ctx, by, &ref, text)
	if err != nil {
		return nil, err
	}
	return &mail.Section{Head: head, Text: text, HTML: s.Notify.EmailHTML(html)}, nil
}

// NoteSection returns the section about the notes of an event. It returns nil if
// they were deleted or the recipient may not see them.
func (s *Service) NoteSection(ctx context.Context, by actor.Actor, proj *project.Project, e *notify.Event, who string) (*mail.Section, error) {
	notes, err := s.eventNotes(ctx, e)
	if err != nil {
		return nil, err
	}
	notes = slices.DeleteFunc(notes, func(n *Note) bool {
		return n.On != (Target{Kind(e.TargetKind), e.TargetID}) || n.Internal && !proj.MayRead(by, project.ConfidentialPart)
	})
	if len(notes) == 0 {
		return nil, nil
	}
	if len(e.MoreNotes) > 0 {
		return s.reviewSection(ctx, by, proj, who, notes)
	}
	n := notes[0]
	head := who + " commented:"
	switch {
	case n.Internal:
		head = who + " added an internal note:"
	case n.Type != "":
		head = who + " commented in a thread:"
	}
	return s.Section(ctx, by, proj, head, n.Body)
}

// reviewSection returns the section about the notes of a review.
func (s *Service) reviewSection(ctx context.Context, by actor.Actor, proj *project.Project, who string, notes []*Note) (*mail.Section, error) {
	texts := make([]Text, len(notes))
	for i, n := range notes {
		texts[i].Source = n.Body
	}
	ref := project.RefTo(proj.ID)
	rendered, err := s.RenderAll(ctx, by, &ref, texts...)
	if err != nil {
		return nil, err
	}
	section := &mail.Section{Head: fmt.Sprintf("%s published a review with %d comments:", who, len(notes))}
	if len(notes) == 1 {
		section.Head = who + " published a review:"
	}
	for i, n := range notes {
		if i > 0 {
			section.Text += "\n\n---\n\n"
			section.HTML += "<hr>"
		}
		if at := n.Position.String(); at != "" {
			section.Text += at + ":\n\n"
			section.HTML += mail.Plain(at + ":")
		}
		section.Text += n.Body
		section.HTML += s.Notify.EmailHTML(rendered[i])
	}
	return section, nil
}

// Names are the users that events refer to, by ID.
type Names map[int64]*user.User

// Named returns the users that events refer to.
func (s *Service) Named(ctx context.Context, events []*notify.Event) (Names, error) {
	var ids []int64
	for _, e := range events {
		ids = append(append(append(ids, e.AuthorID), e.Before...), e.After...)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("users of events: %w", err)
	}
	return users, nil
}

// Name returns the name of a user, or a placeholder.
func (p Names) Name(id int64) string {
	if u := p[id]; u != nil {
		return u.Name
	}
	return "Someone"
}

// Change describes a change of assignees or reviewers.
func (p Names) Change(e *notify.Event) string {
	list := func(ids []int64) string {
		var names []string
		for _, id := range ids {
			names = append(names, p.Name(id))
		}
		if len(names) == 0 {
			return "no one"
		}
		return strings.Join(names, ", ")
	}
	return "From " + list(e.Before) + " to " + list(e.After)
}
