package plan

import (
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

// tell has those told of what happened to an issue whom it concerns.
func (s *Service) tell(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, e notify.Event, d notify.Details) error {
	return s.Notify.Tell(ctx, tx, notify.Act{
		Event: e, Kind: string(IssueKind), ThingID: i.ID, ProjectID: i.ProjectID, AuthorID: by.ID, Details: d,
	})
}

// tellMentions notifies those whom a new description of an issue mentions.
func (s *Service) tellMentions(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return s.tell(ctx, tx, by, i, notify.Mention, notify.Details{Mentioned: names})
}

// NewMentions gives the names that a text mentions and that stood not in what
// was there before.
func NewMentions(ctx context.Context, was, is string) ([]string, error) {
	if was == is {
		return nil, nil
	}
	before, err := markup.Mentions(ctx, was)
	if err != nil {
		return nil, err
	}
	after, err := markup.Mentions(ctx, is)
	return slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }), err
}

// TellDue tells of the issues that are due today or tomorrow: on each of the two
// days once.
func (s *Service) TellDue(ctx context.Context) error {
	today := s.today()
	tomorrow := s.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	for _, day := range []string{today, tomorrow} {
		for after := int64(0); ; {
			list, err := findDue(ctx, s.DB, day, after)
			if err != nil {
				return fmt.Errorf("issues that are due: %w", err)
			}
			if len(list) == 0 {
				break
			}
			after = list[len(list)-1].ID
			err = s.DB.Tx(ctx, func(tx *db.Tx) error {
				for _, i := range list {
					err := s.Notify.Tell(ctx, tx, notify.Act{
						Event: notify.IssueDue, Kind: string(IssueKind), ThingID: i.ID, ProjectID: i.ProjectID,
						Once: fmt.Sprintf("issue_due/%d/%s/%s", i.ID, day, today), Details: notify.Details{To: day},
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("issues that are due: %w", err)
			}
		}
	}
	return nil
}

// letters is the notify.Source of issues.
type letters struct{ s *Service }

// People implements notify.Source.
func (l letters) People(ctx context.Context, a *notify.Act) (notify.People, error) {
	i, err := findIssueByID(ctx, l.s.DB, a.ThingID)
	if err != nil {
		return notify.People{}, notFound(err, "Issue")
	}
	if err := l.s.fillIssues(ctx, i); err != nil {
		return notify.People{}, err
	}
	return l.s.Concerned(ctx, a, Told{Thing: i.thing(), AuthorID: i.AuthorID, Description: i.Description, Labels: i.Labels, Assignees: i.Assignees})
}

// Told is a thing of which people are told.
type Told struct {
	Thing                Thing
	AuthorID             int64
	Description          string
	Labels               []*Label
	Assignees, Reviewers []*user.User
}

// Concerned gives whom an act on an issue or merge request concerns.
func (s *Service) Concerned(ctx context.Context, a *notify.Act, t Told) (notify.People, error) {
	who, err := s.Followers(ctx, t.Thing)
	if err != nil {
		return who, err
	}
	who.Parts = append(who.Parts, t.AuthorID)
	for _, u := range t.Assignees {
		who.Assignees = append(who.Assignees, u.ID)
	}
	for _, u := range t.Reviewers {
		who.Reviewers = append(who.Reviewers, u.ID)
	}
	var labels []int64
	switch a.Event {
	case notify.NewIssue, notify.NewMergeRequest:
		who.Text, labels = t.Description, LabelIDs(t.Labels)
	case notify.ReassignIssue, notify.ReassignMergeRequest, notify.ChangeReviewer:
		who.Touched = append(slices.Clone(a.Before), a.After...)
	case notify.Mention:
		return notify.People{Mentions: a.Mentioned, Left: who.Left, Quiet: true}, nil
	case notify.Relabel:
		labels, who = a.After, notify.People{Left: who.Left, Quiet: true}
	case notify.NewNote:
		who.Text, err = s.NoteText(ctx, a)
	}
	if err != nil {
		return who, err
	}
	asked, err := s.LabelFollowers(ctx, labels)
	who.Asked = append(who.Asked, asked...)
	return who, err
}

// NoteText is what the note of an act says; empty when it is gone.
func (s *Service) NoteText(ctx context.Context, a *notify.Act) (string, error) {
	notes, err := findNotes(ctx, s.DB, []int64{a.NoteID})
	if err != nil || len(notes) == 0 {
		return "", err
	}
	return notes[0].Body, nil
}

// Followers gives who takes part in a thing, who asked to be told of it, and who
// does not want to be.
func (s *Service) Followers(ctx context.Context, of Thing) (notify.People, error) {
	rows, err := findSubscriptions(ctx, s.DB, of)
	if err != nil {
		return notify.People{}, fmt.Errorf("subscriptions of %s %d: %w", of.Kind, of.ID, err)
	}
	var who notify.People
	for _, r := range rows {
		switch {
		case !r.subscribed:
			who.Left = append(who.Left, r.userID)
		case r.asked:
			who.Asked = append(who.Asked, r.userID)
		default:
			who.Parts = append(who.Parts, r.userID)
		}
	}
	return who, nil
}

// LabelFollowers gives who asked to be told of things with these labels.
func (s *Service) LabelFollowers(ctx context.Context, labels []int64) ([]int64, error) {
	ids, err := findLabelFollowers(ctx, s.DB, labels)
	if err != nil {
		return nil, fmt.Errorf("followers of labels: %w", err)
	}
	return ids, nil
}

// Follow notes that somebody takes part in a thing, unless he left it, or that
// he leaves it. Whether he may see it was asked.
func (s *Service) Follow(ctx context.Context, of Thing, userID int64, want bool) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if want {
			return joinSubscription(ctx, tx, of, userID, s.Now())
		}
		return leaveSubscription(ctx, tx, of, userID, s.Now())
	})
}

// Follow implements notify.Source.
func (l letters) Follow(ctx context.Context, userID, thingID int64, want bool) error {
	return l.s.Follow(ctx, Thing{IssueKind, thingID}, userID, want)
}

// Lasting implements notify.Source.
func (letters) Lasting() bool { return true }

// Look implements notify.Source.
func (l letters) Look(ctx context.Context, by actor.Actor, acts []*notify.Act) (*notify.View, error) {
	found, err := findIssueByID(ctx, l.s.DB, acts[0].ThingID)
	if err != nil {
		return nil, notFound(err, "Issue")
	}
	in, i, err := l.s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(i.IID, 10)
	v := &notify.View{
		Project: in, Subject: i.Title + " (#" + number + ")", Word: "issue", Path: "/" + in.FullPath + "/-/issues/" + number,
		Headers: [][2]string{
			{"Issue-ID", strconv.FormatInt(i.ID, 10)}, {"Issue-IID", number}, {"Issue-State", string(i.State)},
			{"ConfidentialIssue", strconv.FormatBool(i.Confidential)},
		},
	}
	people, err := l.s.Named(ctx, acts)
	if err != nil {
		return nil, err
	}
	return v, v.Tell(acts, notify.NewIssue, func(a *notify.Act) (*mail.Section, error) { return l.section(ctx, by, in, i, a, people) })
}

// section tells of one act; nil when there is nothing that the reader may know.
func (l letters) section(ctx context.Context, by actor.Actor, in *project.Project, i *Issue, a *notify.Act, people Names) (*mail.Section, error) {
	who := people.Name(a.AuthorID)
	switch a.Event {
	case notify.NewIssue:
		return l.s.Section(ctx, by, in, who+" opened an issue.", i.Description)
	case notify.Mention:
		return l.s.Section(ctx, by, in, who+" mentioned you in the issue.", i.Description)
	case notify.CloseIssue:
		return &mail.Section{Head: who + " closed the issue."}, nil
	case notify.ReopenIssue:
		return &mail.Section{Head: who + " reopened the issue."}, nil
	case notify.ReassignIssue:
		return &mail.Section{Head: who + " changed the assignees.", Text: people.Exchange(a), HTML: mail.Plain(people.Exchange(a))}, nil
	case notify.Relabel:
		return Relabelled(i.Labels, a, who), nil
	case notify.IssueDue:
		return &mail.Section{Head: dueHead(a.To, a.CreatedAt)}, nil
	case notify.MovedIssue:
		return l.moved(ctx, by, i, who)
	case notify.NewNote:
		return l.s.NoteSection(ctx, by, in, a, who)
	}
	return nil, nil
}

func dueHead(day string, told time.Time) string {
	if day == told.UTC().Format(time.DateOnly) {
		return "The issue is due today."
	}
	return "The issue is due tomorrow, " + day + "."
}

// Relabelled names the labels that a thing got, of those that it has; nil when
// it has none of them any more.
func Relabelled(has []*Label, a *notify.Act, who string) *mail.Section {
	var names []string
	for _, label := range has {
		if slices.Contains(a.After, label.ID) {
			names = append(names, label.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &mail.Section{Head: who + " added a label that you follow: " + strings.Join(names, ", ") + "."}
}

// moved tells where an issue went to those who see it there.
func (l letters) moved(ctx context.Context, by actor.Actor, i *Issue, who string) (*mail.Section, error) {
	gone := &mail.Section{Head: who + " moved the issue to another project."}
	if i.MovedToID == nil {
		return gone, nil
	}
	to, err := findIssueByID(ctx, l.s.DB, *i.MovedToID)
	if errs.Is(notFound(err, "Issue"), errs.KindNotFound) {
		return gone, nil // it was deleted there
	}
	if err != nil {
		return nil, err
	}
	_, seen, err := l.s.issue(ctx, by, project.RefTo(to.ProjectID), to.IID)
	if hidden(err) {
		return gone, nil
	}
	if err != nil {
		return nil, err
	}
	gone.Head = fmt.Sprintf("%s moved the issue to %s#%d.", who, seen.ProjectPath, seen.IID)
	return gone, nil
}

// Section is a part of a letter with a text of somebody, as its reader may see
// what it refers to.
func (s *Service) Section(ctx context.Context, by actor.Actor, in *project.Project, head, text string) (*mail.Section, error) {
	if text == "" {
		return &mail.Section{Head: head}, nil
	}
	ref := project.RefTo(in.ID)
	html, err := s.Render(ctx, by, &ref, text)
	if err != nil {
		return nil, err
	}
	return &mail.Section{Head: head, Text: text, HTML: s.Notify.Fit(html)}, nil
}

// NoteSection is a part of a letter about a note on a thing that the reader
// sees; nil when the note is gone or not for him.
func (s *Service) NoteSection(ctx context.Context, by actor.Actor, in *project.Project, a *notify.Act, who string) (*mail.Section, error) {
	notes, err := findNotes(ctx, s.DB, []int64{a.NoteID})
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	n := notes[0]
	if n.On != (Thing{Kind(a.Kind), a.ThingID}) || n.Internal && !in.MayRead(by, project.ConfidentialPart) {
		return nil, nil
	}
	head := who + " commented:"
	switch {
	case n.Internal:
		head = who + " wrote an internal note:"
	case n.Type != "":
		head = who + " wrote in a thread:"
	}
	return s.Section(ctx, by, in, head, n.Body)
}

// Names are the users whom acts name.
type Names map[int64]*user.User

// Named reads who is named by acts.
func (s *Service) Named(ctx context.Context, acts []*notify.Act) (Names, error) {
	var ids []int64
	for _, a := range acts {
		ids = append(append(append(ids, a.AuthorID), a.Before...), a.After...)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("people of acts: %w", err)
	}
	return users, nil
}

// Name is that of a user, or of nobody.
func (p Names) Name(id int64) string {
	if u := p[id]; u != nil {
		return u.Name
	}
	return "Somebody"
}

// Exchange says who came for whom.
func (p Names) Exchange(a *notify.Act) string {
	list := func(ids []int64) string {
		var names []string
		for _, id := range ids {
			names = append(names, p.Name(id))
		}
		if len(names) == 0 {
			return "nobody"
		}
		return strings.Join(names, ", ")
	}
	return "From " + list(a.Before) + " to " + list(a.After)
}
