package alert

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/user"
)

// NoteKind is the target type of notes on alerts.
const NoteKind plan.Kind = "AlertManagement::Alert"

// Filter selects alerts; zero values select all.
type Filter struct {
	IIDs             []int64
	Statuses         []Status
	Severities       []Severity
	AssigneeID       int64
	AssigneeUsername string
	Assigned         bool // to anyone
	Unassigned       bool
	Search           string // in title, description, service and tool
	Tool             string
	Environment      string
	StartedAfter     *time.Time
	StartedBefore    *time.Time
}

// Order is the order of a list: by started_at, created_at, updated_at, severity
// or event_count. By severity, ascending means the most severe first.
type Order struct {
	By   string
	Desc bool
}

// Alerts lists the alerts of a project for Developers and above.
func (s *Service) Alerts(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, order Order, p db.Paging) (db.Page[*Alert], error) {
	in, err := s.watcher(ctx, by, ref)
	if err != nil {
		return db.Page[*Alert]{}, err
	}
	page, err := listAlerts(ctx, s.DB, f.where(in.ID), order, p)
	if err != nil {
		return page, fmt.Errorf("list alerts: %w", err)
	}
	return page, s.fillAlerts(ctx, page.Items...)
}

// Count is the number of alerts.
type Count struct {
	N    int
	Over bool // there are more than db.CountLimit
}

// Counts returns the number of alerts of each status that match a filter, for
// Developers and above.
func (s *Service) Counts(ctx context.Context, by actor.Actor, ref project.Ref, f Filter) (map[Status]Count, error) {
	in, err := s.watcher(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	counts := map[Status]Count{}
	for _, status := range Statuses() {
		f.Statuses = []Status{status}
		var c Count
		if c.N, c.Over, err = countAlerts(ctx, s.DB, f.where(in.ID)); err != nil {
			return nil, fmt.Errorf("count alerts: %w", err)
		}
		counts[status] = c
	}
	return counts, nil
}

// Alert returns an alert of a project by its number, with its payload, to
// Developers and above; NotFound.
func (s *Service) Alert(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Alert, error) {
	in, err := s.watcher(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.alert(ctx, in, iid)
}

func (s *Service) alert(ctx context.Context, in *project.Project, iid int64) (*Alert, error) {
	a, err := findAlert(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, err
	}
	return a, s.fillAlerts(ctx, a)
}

func (s *Service) fillAlerts(ctx context.Context, list ...*Alert) error {
	var ids []int64
	for _, a := range list {
		if a.AssigneeID != nil {
			ids = append(ids, *a.AssigneeID)
		}
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("assignees of alerts: %w", err)
	}
	for _, a := range list {
		if a.AssigneeID != nil {
			a.Assignee = users[*a.AssigneeID]
		}
	}
	return nil
}

// Notes returns the system notes of an alert, oldest first, for Developers and
// above. NotFound.
func (s *Service) Notes(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*plan.Note, error) {
	in, err := s.watcher(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	a, err := findAlert(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, err
	}
	const most = 100
	page, err := s.Plan.Notes(ctx, plan.Noteable{Target: a.target(), IID: a.IID, In: in}, plan.NoteFilter{Sort: listing.Sort{By: "created_at"}}, db.Paging{Limit: most})
	return page.Items, err
}

func (a *Alert) target() plan.Target { return plan.Target{Kind: NoteKind, ID: a.ID} }

// Change lists changes to an alert; nil keeps the current value.
type Change struct {
	Status   *Status
	Assignee **int64 // a pointer to nil removes the assignee
	Named    *string // the assignee by ID or username; empty removes the assignee
}

// Update changes the status and the assignee of an alert, for Developers and above.
// NotFound; Invalid, also if an alert is reopened while another one with the same
// fingerprint is open.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, c Change) (*Alert, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.AlertPart, project.Developer)
	if err != nil {
		return nil, err
	}
	if c.Status != nil && !slices.Contains(Statuses(), *c.Status) {
		return nil, errs.InvalidField("status", "is not included in the list")
	}
	if c.Named != nil {
		if c.Assignee, err = s.named(ctx, by, *c.Named); err != nil {
			return nil, err
		}
	}
	var assignee *user.User
	if c.Assignee != nil && *c.Assignee != nil {
		if assignee, err = s.able(ctx, in, **c.Assignee); err != nil {
			return nil, err
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		// Concurrent payloads wait, because they change the same rows.
		if err := project.HoldNumbers(ctx, tx, in.ID, numbers); err != nil {
			return err
		}
		a, err := findAlert(ctx, tx, in.ID, iid)
		if err != nil {
			return err
		}
		return s.change(ctx, tx, by, in, a, c, assignee)
	})
	if err != nil {
		return nil, fmt.Errorf("update alert %d: %w", iid, err)
	}
	return s.alert(ctx, in, iid)
}

func (s *Service) change(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, a *Alert, c Change, assignee *user.User) error {
	var changes []string
	var done []audit.Details
	before := a.AssigneeID
	if c.Status != nil && *c.Status != a.Status {
		was := a.Status
		if err := s.move(ctx, tx, a, *c.Status); err != nil {
			return err
		}
		done = append(done, audit.Details{Change: "status", From: string(was), To: string(a.Status)})
		changes = append(changes, "changed the status to **"+title(string(a.Status))+"**")
	}
	if c.Assignee != nil && !same(*c.Assignee, a.AssigneeID) {
		done = append(done, audit.Details{Change: "assignee_id", From: idText(a.AssigneeID), To: idText(*c.Assignee)})
		a.AssigneeID = *c.Assignee
		if assignee == nil {
			changes = append(changes, "removed the assignee")
		} else {
			changes = append(changes, "assigned to @"+assignee.Username)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	a.UpdatedAt = s.Now()
	if err := saveAlert(ctx, tx, a); err != nil {
		return err
	}
	if err := s.Events.Updated.Publish(ctx, tx, Updated{Alert: a, Before: before, By: max(by.ID, 0)}); err != nil {
		return err
	}
	for _, text := range changes {
		if err := s.Plan.AddSystemNote(ctx, tx, by, a.target(), a.IID, a.ProjectID, text); err != nil {
			return err
		}
	}
	for _, d := range done {
		if err := s.recordAlert(ctx, tx, by, in, a, "alert_updated", d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) recordAlert(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, a *Alert, kind string, d audit.Details) error {
	return s.record(ctx, tx, by, in, kind, audit.Target{Type: string(NoteKind), ID: a.ID, Details: a.Title}, d)
}

// idText returns an ID as text; empty for none.
func idText(id *int64) string {
	if id == nil {
		return ""
	}
	return strconv.FormatInt(*id, 10)
}

// move changes the status of an alert.
func (s *Service) move(ctx context.Context, tx *db.Tx, a *Alert, to Status) error {
	switch {
	case to == Resolved:
		now := s.Now()
		a.EndedAt = &now
	case a.Status == Resolved:
		has, err := hasOther(ctx, tx, a)
		if err != nil {
			return err
		}
		if has {
			return errs.InvalidField("status", "can't be changed: an alert with the same fingerprint is already open")
		}
		a.EndedAt = nil
	}
	a.Status = to
	return nil
}

// named returns the ID of a user, or a pointer to nil for an empty name. Invalid if
// the user does not exist.
func (s *Service) named(ctx context.Context, by actor.Actor, name string) (**int64, error) {
	var id *int64
	if name == "" {
		return &id, nil
	}
	u, err := s.Users.Find(ctx, by, user.Ref(strings.TrimPrefix(name, "@")))
	if errs.Is(err, errs.KindNotFound) {
		return nil, errs.InvalidField("assignee", "is invalid")
	}
	if err != nil {
		return nil, err
	}
	id = &u.ID
	return &id, nil
}

// able returns a user who can see the alerts of the project. Invalid for others.
func (s *Service) able(ctx context.Context, in *project.Project, id int64) (*user.User, error) {
	users, err := s.Users.FindAll(ctx, []int64{id})
	if err != nil {
		return nil, fmt.Errorf("find assignee: %w", err)
	}
	if u := users[id]; u != nil && u.State == user.Active {
		as := actor.Actor{ID: u.ID, Admin: u.Admin, External: u.External}
		found, err := s.Projects.Among(ctx, as, []int64{in.ID})
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].Enough(as, project.Developer) == nil {
			return u, nil
		}
	}
	return nil, errs.InvalidField("assignee_id", "is invalid")
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
