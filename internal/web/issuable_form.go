package web

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"time"

	"svc/internal/plan"
	"svc/internal/plan/duration"
	"svc/internal/project"
	"svc/internal/user"
)

// planForm is the part of the form of an issue or merge request that both have.
type planForm struct {
	planHead
	IID       int64 // 0 for a new one
	Form      form
	Preview   template.HTML
	Me        int64 // the user
	Chooses   bool  // the user may set the planning fields
	Labels    []choice
	Assignees []choice
	Reviewers []choice // of merge requests
	Goals     []option

	// Of a new one.
	TemplateType string   // issue or merge_request
	Templates    []string // names of the description templates
}

// TemplateLink is the address of the form with a description template, for
// browsers without scripts.
func (p planForm) TemplateLink(name string) string {
	query := url.Values{"issuable_template": {name}}
	for _, field := range []string{"source_branch", "target_branch", "target_project_id"} {
		if value := p.Form.Get(field); value != "" {
			query.Set(field, value)
		}
	}
	return "?" + query.Encode()
}

// fillPlanForm adds the preview and the choices for the planning fields in a
// project. goal is the current milestone, which may be closed.
func (w *Web) fillPlanForm(v *visit, p *planForm, in project.Place, goal *plan.Milestone, reviewers bool) (err error) {
	if v.r.PostForm.Get("preview") != "" {
		kind, number := "issues", ""
		if reviewers {
			kind = "merges"
		}
		if p.IID != 0 {
			number = strconv.FormatInt(p.IID, 10)
		}
		on, err := w.commandTarget(v, in.Ref, kind, number)
		if err != nil {
			return err
		}
		if p.Preview, err = w.previewOn(v, in, on, p.Form.Get("description")); err != nil {
			return err
		}
	}
	p.Me = v.actor.ID
	if !p.Chooses {
		return nil
	}
	if p.Labels, err = w.labelChoices(v, in, p.Form.Values["labels"]); err != nil {
		return err
	}
	if p.Assignees, err = w.memberChoices(v, in, p.Form.Values["assignee_ids"]); err != nil {
		return err
	}
	if reviewers {
		if p.Reviewers, err = w.memberChoices(v, in, p.Form.Values["reviewer_ids"]); err != nil {
			return err
		}
	}
	p.Goals, err = w.goalOptions(v, in, goal)
	return err
}

// fillPlan sets the values of the planning fields in a form.
func fillPlan(f form, i *plan.Issuable) {
	f.Values.Set("milestone_id", milestoneID(i.Milestone))
	f.Values["labels"], f.Values["assignee_ids"], f.Values["reviewer_ids"] = labelNames(i.Labels), userIDs(i.Assignees), userIDs(i.Reviewers)
}

// editForm returns the form of an existing issue or merge request.
func editForm(i *plan.Issuable, values ...string) form {
	f := filled(append([]string{"title", i.Title, "description", i.Description, "was", digest(i.Description)}, values...)...)
	fillPlan(f, i)
	return f
}

// checkStale adds an error if the description has changed since the form was
// shown.
func (v *visit) checkStale(f *form, i *plan.Issuable, noun string) {
	if now := digest(i.Description); !v.ticked("preview") && v.text("was") != now {
		f.Error = "Another user changed the description in the meantime. Review the " + noun + ", then save again to overwrite it."
		f.Values.Set("was", now)
	}
}

// planChange is a change of planning fields, including those that only one kind
// has.
type planChange struct {
	plan.Fields
	Reviewers *[]int64
	DueDate   *string
	SetWeight bool
	Weight    *int64
}

// readFields reads the fields of a form and adds errors to the form.
func (v *visit) readFields(f *form, parts ...string) planChange {
	title, text := v.text("title"), v.prose("description")
	c := planChange{Fields: plan.Fields{Title: &title, Description: &text}}
	if v.ticked("planned") {
		v.readPlan(f, &c, parts...)
	}
	return c
}

// choice is an item of a list of checkboxes.
type choice struct {
	Value, Label, Note string
	On                 bool
	Chip               *plan.Label
	User               *user.User
}

// labelChoices returns the labels of a place. Selected ones are checked.
func (w *Web) labelChoices(v *visit, in project.Place, chosen []string) ([]choice, error) {
	page, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Ancestors: true}, allOf())
	var list []choice
	for _, l := range page.Items {
		list = append(list, choice{Value: l.Name, Label: l.Name, Note: l.Description, On: slices.Contains(chosen, l.Name), Chip: l})
	}
	for _, name := range chosen { // there may be more labels than are shown
		if !slices.ContainsFunc(list, func(c choice) bool { return c.Value == name }) {
			list = append(list, choice{Value: name, Label: name, On: true, Chip: &plan.Label{Name: name, Color: "#8a8fa3"}})
		}
	}
	return list, err
}

// memberChoices returns the members of a project, and the selected users.
func (w *Web) memberChoices(v *visit, in project.Place, chosen []string) ([]choice, error) {
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true}, allOf())
	if err != nil {
		return nil, err
	}
	var list []choice
	add := func(u *user.User) {
		id := strconv.FormatInt(u.ID, 10)
		if !slices.ContainsFunc(list, func(c choice) bool { return c.Value == id }) {
			list = append(list, choice{Value: id, Label: u.Name, Note: "@" + u.Username, On: slices.Contains(chosen, id), User: u})
		}
	}
	for _, m := range page.Items {
		add(m.User)
	}
	var others []int64
	for _, text := range chosen {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			others = append(others, id)
		}
	}
	known, err := w.Users.FindAll(v, others)
	for _, id := range others {
		if u := known[id]; u != nil {
			add(u)
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int { return int(on1(b.On)) - int(on1(a.On)) })
	return list, err
}

func on1(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// goalOptions returns the active milestones, and the current one.
func (w *Web) goalOptions(v *visit, in project.Place, has *plan.Milestone) ([]option, error) {
	page, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{State: plan.ActiveMilestone, Ancestors: true}, allOf())
	list := []option{{"0", "No milestone"}}
	for _, m := range page.Items {
		list = append(list, option{strconv.FormatInt(m.ID, 10), m.Title})
	}
	if has != nil && !slices.ContainsFunc(list, func(o option) bool { return o.Value == milestoneID(has) }) {
		list = append(list, option{milestoneID(has), has.Title})
	}
	return list, err
}

// readPlan reads planning fields.
func (v *visit) readPlan(f *form, to *planChange, parts ...string) {
	for _, part := range parts {
		switch part {
		case "labels":
			labels := slices.Clone(v.r.PostForm["labels"])
			if added := v.text("new_label"); added != "" {
				labels = append(labels, added)
			}
			to.Labels.Names = &labels
		case "assignees":
			ids := v.ids("assignee_ids")
			to.Assignees = &ids
		case "reviewers":
			ids := v.ids("reviewer_ids")
			to.Reviewers = &ids
		case "milestone":
			id := v.whole(f, "milestone_id")
			to.Milestone = &id
		case "due_date":
			day := v.text("due_date")
			if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
				f.wrong("due_date", "is not a date")
			}
			to.DueDate = &day
		case "weight":
			to.SetWeight = true
			if v.text("weight") != "" {
				n := v.whole(f, "weight")
				to.Weight = &n
			}
		case "time":
			v.readTime(f, &to.Time)
		}
	}
}

// readTime reads the time tracking fields: the estimate, and the time that is
// added to the time spent.
func (v *visit) readTime(f *form, to *plan.TimeChange) {
	read := func(name string) int64 {
		text := v.text(name)
		seconds, ok := duration.Parse(text)
		if text != "" && !ok {
			f.wrong(name, "is not a duration such as 1h 30m")
		}
		return seconds
	}
	estimate, spent := read("estimate"), read("spent")
	to.Estimate = &estimate
	if spent != 0 {
		to.Spend = []plan.Spend{{Seconds: spent, Summary: v.text("summary")}}
	}
	to.Reset = v.ticked("reset")
}

func numberOrEmpty(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// ids returns the IDs that were checked in a list.
func (v *visit) ids(name string) []int64 {
	list := []int64{}
	for _, text := range v.r.PostForm[name] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			list = append(list, id)
		}
	}
	return list
}

func milestoneID(m *plan.Milestone) string {
	if m == nil {
		return "0"
	}
	return strconv.FormatInt(m.ID, 10)
}

func labelNames(labels []*plan.Label) (list []string) {
	for _, l := range labels {
		list = append(list, l.Name)
	}
	return list
}

func userIDs(users []*user.User) (list []string) {
	for _, u := range users {
		list = append(list, strconv.FormatInt(u.ID, 10))
	}
	return list
}

// digest identifies a text: a form sends the digest of the text that it started
// with.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
