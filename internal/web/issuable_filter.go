package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/repo"
)

// listFilter is a condition that lists of issues or merge requests can have. The
// script of the filter bar suggests them.
type listFilter struct {
	Param string `json:"param"` // of the address
	Label string `json:"label"`
	// Kind is the type of the values: user, label, milestone, branch, text or
	// choice.
	Kind    string   `json:"kind"`
	Words   []string `json:"words,omitempty"` // fixed values
	Several bool     `json:"several,omitempty"`
}

// Filters are the conditions that the list can have.
func (p issuableList) Filters() []listFilter {
	noneAny := []string{listing.None, listing.Any}
	var list []listFilter
	if p.ByAuthor() {
		list = append(list, listFilter{Param: "author_username", Label: "Author", Kind: "user"})
	}
	list = append(list, listFilter{Param: "assignee_username", Label: "Assignee", Kind: "user", Words: noneAny})
	if p.Query.Merges {
		list = append(list, listFilter{Param: "reviewer_username", Label: "Reviewer", Kind: "user", Words: noneAny})
	}
	list = append(list,
		listFilter{Param: "label_name[]", Label: "Label", Kind: "label", Words: noneAny, Several: true},
		listFilter{Param: "milestone_title", Label: "Milestone", Kind: "milestone", Words: []string{listing.None, listing.Any, "Upcoming", "Started"}},
		listFilter{Param: "release_tag", Label: "Release", Kind: "text"})
	if p.SignedIn || p.Own {
		list = append(list, listFilter{Param: "my_reaction_emoji", Label: "My reaction", Kind: "text", Words: noneAny})
	}
	if p.Query.Merges {
		return append(list, listFilter{Param: "draft", Label: "Draft", Kind: "choice", Words: []string{"yes", "no"}},
			listFilter{Param: "target_branch", Label: "Target branch", Kind: "branch"}, listFilter{Param: "source_branch", Label: "Source branch", Kind: "branch"})
	}
	return append(list, listFilter{Param: "weight", Label: "Weight", Kind: "text", Words: noneAny},
		listFilter{Param: "confidential", Label: "Confidential", Kind: "choice", Words: []string{"yes", "no"}})
}

// FilterData is Filters for the script of the page.
func (p issuableList) FilterData() (string, error) {
	text, err := json.Marshal(p.Filters())
	return string(text), err
}

// filterChip is a condition that the list has.
type filterChip struct {
	Label, Value string
	Without      string // address of the list without it
}

// Chips are the conditions that the list has.
func (p issuableList) Chips() []filterChip {
	var list []filterChip
	for _, f := range p.Filters() {
		if f.Several {
			for _, name := range p.Query.Labels {
				others := slices.DeleteFunc(slices.Clone(p.Query.Labels), func(l string) bool { return l == name })
				list = append(list, filterChip{f.Label, name, p.Query.without(f.Param, others...)})
			}
			continue
		}
		if value := p.Query.values.Get(f.Param); value != "" {
			if f.Kind == "user" && value != listing.None && value != listing.Any {
				value = "@" + strings.TrimPrefix(value, "@")
			}
			list = append(list, filterChip{f.Label, value, p.Query.without(f.Param)})
		}
	}
	if p.Query.Search != "" {
		list = append(list, filterChip{"Search", p.Query.Search, p.Query.without("search")})
	}
	return list
}

// without returns the URL of the list without a parameter, or with other values
// of it.
func (q issuableQuery) without(name string, others ...string) string {
	values := url.Values{}
	for key, list := range q.values {
		if key != "page" && key != name && key != strings.TrimSuffix(name, "[]") {
			values[key] = list
		}
	}
	if len(others) > 0 {
		values[name] = others
	}
	return "?" + values.Encode()
}

// Bare returns the URL of the list without conditions.
func (p issuableList) Bare() string {
	q := p.Query
	values := url.Values{}
	for _, name := range []string{"state", "scope", "sort"} {
		if v := q.values.Get(name); v != "" {
			values.Set(name, v)
		}
	}
	return "?" + values.Encode()
}

// filterValue is a value that the filter bar or a picker suggests.
type filterValue struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Note  string `json:"note,omitempty"`
	Color string `json:"color,omitempty"`
	ID    int64  `json:"id,omitempty"`
}

// suggestedValues is the number of values that are suggested at once.
const suggestedValues = 20

// filterValues sends scripts the users, labels, milestones or branches of a
// project or group that match a search.
func (w *Web) filterValues(v *visit, in project.Place) error {
	text := strings.TrimSpace(v.param("search"))
	if len(text) > 200 {
		return errs.Invalid("The search is too long.")
	}
	pg := db.Paging{Limit: suggestedValues}
	list := []filterValue{}
	switch v.param("kind") {
	case "user":
		page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true, Query: strings.TrimPrefix(text, "@")}, pg)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			list = append(list, filterValue{Value: m.User.Username, Label: m.User.Name, Note: "@" + m.User.Username, ID: m.User.ID})
		}
	case "label":
		page, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Search: text, Ancestors: true, Descendants: in.Group}, pg)
		if err != nil {
			return err
		}
		for _, l := range page.Items {
			list = append(list, filterValue{Value: l.Name, Label: l.Name, Note: l.Description, Color: l.Color, ID: l.ID})
		}
	case "milestone":
		page, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{Search: text, Ancestors: true, Descendants: in.Group}, pg)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			list = append(list, filterValue{Value: m.Title, Label: m.Title, ID: m.ID})
		}
	case "branch":
		if in.Group {
			break
		}
		page, err := w.Repos.RefNames(v, v.actor, in.Ref, repo.BranchRef, text, pg)
		if err != nil {
			return err
		}
		for _, name := range page.Items {
			list = append(list, filterValue{Value: name, Label: name})
		}
	default:
		return errs.Invalid("kind does not have a valid value")
	}
	return v.json(list)
}

// bulkForm is the form that changes several issues or merge requests of a list.
type bulkForm struct {
	Action    string
	Noun      string // issues or merge requests
	States    []option
	Assignees []option
	Labels    []choice
	Goals     []option
	Form      form
}

// bulkForm returns the form for users who may plan in a project and want it; nil
// otherwise.
func (w *Web) bulkForm(v *visit, h planHead, kind string) (*bulkForm, error) {
	if !h.Plans || h.G != nil || v.param("bulk") == "" {
		return nil, nil
	}
	b := &bulkForm{Action: h.Base + kind + "/bulk_update", Noun: strings.ReplaceAll(kind, "_", " "), States: []option{{"", "No change"}, {"close", "Close"}, {"reopen", "Reopen"}}}
	b.Assignees, b.Goals = []option{{"", "No change"}, {"0", "Unassigned"}}, []option{{"", "No change"}}
	members, err := w.memberChoices(v, h.Place, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		b.Assignees = append(b.Assignees, option{m.Value, m.Label + " (" + m.Note + ")"})
	}
	goals, err := w.goalOptions(v, h.Place, nil)
	if err != nil {
		return nil, err
	}
	b.Goals = append(b.Goals, goals...)
	b.Labels, err = w.labelChoices(v, h.Place, nil)
	return b, err
}

// maxBulk is the maximum number of issues or merge requests in one change.
const maxBulk = 100

// bulkUpdate changes the selected issues or merge requests of a project.
func (w *Web) bulkUpdate(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		h, err := w.planHead(v, project.Place{Ref: ref}, map[bool]string{true: "issues", false: "merges"}[k.part == "issues"])
		if err != nil {
			return err
		}
		if !h.Plans {
			return errs.Forbidden("") // the feature would ignore the fields
		}
		if _, err := w.Projects.RequireView(v, v.actor, h.Place.Ref, k.access); err != nil {
			return err
		}
		to := h.Base + k.path()
		if back := v.text("back"); strings.HasPrefix(back, "?") {
			to += local("/" + back)[1:]
		}
		var f plan.Fields
		f.Event = v.text("state_event")
		if f.Event != "close" && f.Event != "reopen" {
			f.Event = ""
		}
		f.Labels.Add, f.Labels.Remove = v.r.PostForm["add_labels"], v.r.PostForm["remove_labels"]
		if text := v.text("assignee_id"); text != "" {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return errs.Invalid("The assignee is not a user.")
			}
			ids := []int64{}
			if id != 0 {
				ids = append(ids, id)
			}
			f.Assignees = &ids
		}
		if text := v.text("milestone_id"); text != "" {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return errs.Invalid("The milestone does not exist.")
			}
			f.Milestone = &id
		}
		watch := v.text("subscription_event")
		ids := v.ids("selected")
		switch {
		case len(ids) == 0:
			return v.redirectWithFlash(errs.Invalid("Select at least one %s.", k.noun), "", to)
		case len(ids) > maxBulk:
			return v.redirectWithFlash(errs.Invalid("Select at most %d %ss.", maxBulk, k.noun), "", to)
		}
		changed := 0
		var refused error
		for _, iid := range ids {
			err := w.bulkOne(v, h.Place.Ref, k, iid, f, watch)
			switch {
			case err == nil:
				changed++
			case !errs.IsRefusal(err):
				return err
			default:
				refused = err
			}
		}
		if refused != nil {
			e, _ := errs.As(refused)
			v.setFlash("bad", plural(len(ids)-changed, k.noun)+" could not be changed. "+textOr(e, "You may not have permission, or the state does not allow it."))
			return v.redirect(to)
		}
		return v.done(plural(changed, k.noun)+" updated.", to)
	}
}

// bulkOne changes one of them. Closing a closed one is no change.
func (w *Web) bulkOne(v *visit, ref project.Ref, k issuableKind, iid int64, f plan.Fields, watch string) error {
	if f.Event != "" || f.Assignees != nil || f.Milestone != nil || len(f.Labels.Add)+len(f.Labels.Remove) > 0 {
		if err := k.update(v, ref, iid, f); err != nil {
			return err
		}
	}
	if watch == "subscribe" || watch == "unsubscribe" {
		return k.subscribe(v, ref, iid, watch == "subscribe")
	}
	return nil
}
