package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// issuableList is the part of a list of issues or merge requests that both have:
// of a project, of a group, or of the user.
type issuableList struct {
	planHead
	Own        bool
	Query      issuableQuery
	Counts     plan.Counts
	Pager      pager
	Labels     []string // suggestions
	Milestones []string
	Bulk       *bulkForm // nil if not wanted
}

// stateTab is a state that the list can be limited to.
type stateTab struct {
	State, Label string
	N            int64
}

// Count is the number of rows; large numbers are not counted.
func (t stateTab) Count() string {
	if t.N > db.CountLimit {
		return "10,000+"
	}
	return strconv.FormatInt(t.N, 10)
}

// States are the states that the list can be limited to.
func (p issuableList) States() []stateTab {
	tabs := []stateTab{{"opened", "Open", p.Counts.Opened}, {"closed", "Closed", p.Counts.Closed}, {"all", "All", p.Counts.All}}
	if p.Query.Merges {
		tabs = slices.Insert(tabs, 1, stateTab{"merged", "Merged", p.Counts.Merged})
	}
	return tabs
}

// ByAuthor reports whether the list can be limited to an author.
func (p issuableList) ByAuthor() bool {
	if p.Query.Merges {
		return p.Query.Scope != "created_by_me"
	}
	return !p.Own
}

// issuableQuery is the query of the address of a list. The parameters have the
// names of the API.
type issuableQuery struct {
	Merges    bool   // of merge requests, not of issues
	State     string // opened, closed, merged or all
	Scope     string // of the user's own: assigned_to_me, created_by_me or reviews_for_me
	Author    string
	Assignee  string // also None or Any
	Labels    []string
	Milestone string
	Release   string // tag of a release of the project
	Search    string
	Sort      string
	Reaction  string // emoji of the user, None or Any

	Confidential string // of issues: yes or no
	Weight       string // of issues: a number, None or Any

	// Of merge requests.
	Reviewer string // also None or Any
	Draft    string // yes or no
	Target   string
	Source   string

	values url.Values
}

func (v *visit) issueQuery() issuableQuery { return v.issuableQuery(false) }

func (v *visit) mergeQuery() issuableQuery { return v.issuableQuery(true) }

func (v *visit) issuableQuery(merges bool) issuableQuery {
	values := v.r.URL.Query()
	q := issuableQuery{
		Merges: merges, State: v.param("state"), Scope: v.param("scope"), Author: v.param("author_username"), Assignee: v.param("assignee_username"),
		Milestone: v.param("milestone_title"), Release: v.param("release_tag"), Search: v.param("search"), Sort: v.param("sort"), Reaction: v.param("my_reaction_emoji"), values: values,
	}
	for _, list := range append(values["label_name[]"], values["label_name"]...) {
		for _, name := range strings.Split(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(q.Labels, name) {
				q.Labels = append(q.Labels, name)
			}
		}
	}
	states := []string{"closed", "all"}
	if merges {
		q.Reviewer, q.Draft, q.Target, q.Source = v.param("reviewer_username"), v.param("draft"), v.param("target_branch"), v.param("source_branch")
		states = append(states, "merged")
	} else {
		q.Confidential, q.Weight = v.param("confidential"), v.param("weight")
	}
	if !slices.Contains(states, q.State) {
		q.State = "opened"
	}
	if sorts := q.Sorts(); !slices.ContainsFunc(sorts, func(s issuableSort) bool { return s.Name == q.Sort }) {
		q.Sort = sorts[0].Name
	}
	return q
}

// issuableSort is an order of a list.
type issuableSort struct {
	Name, Label string
	by          listing.Sort
}

// Sorts are the orders of the list.
func (q issuableQuery) Sorts() []issuableSort {
	list := []issuableSort{
		{"created_date", "Newest", listing.Sort{By: "created_at", Desc: true}},
		{"created_asc", "Oldest", listing.Sort{By: "created_at"}},
		{"updated_desc", "Last updated", listing.Sort{By: "updated_at", Desc: true}},
		{"due_date", "Due date", listing.Sort{By: "due_date"}},
		{"milestone", "Milestone due date", listing.Sort{By: "milestone_due"}},
		{"priority", "Label priority", listing.Sort{By: "priority"}},
		{"popularity", "Most comments", listing.Sort{By: "popularity", Desc: true}},
		{"title_asc", "Title", listing.Sort{By: "title"}},
	}
	if q.Merges {
		list[3] = issuableSort{"merged_at_desc", "Last merged", listing.Sort{By: "merged_at", Desc: true}}
		return list
	}
	return append(list, issuableSort{"relative_position", "Manual", listing.Sort{By: "relative_position"}})
}

// order is the selected order.
func (q issuableQuery) order() listing.Sort {
	sorts := q.Sorts()
	return sorts[slices.IndexFunc(sorts, func(s issuableSort) bool { return s.Name == q.Sort })].by
}

// Text is the value of the labels field.
func (q issuableQuery) Text() string { return strings.Join(q.Labels, ", ") }

// Wide reports whether the list is filtered by more than a text.
func (q issuableQuery) Wide() bool {
	return q.Author+q.Assignee+q.Milestone+q.Release+q.Confidential+q.Reviewer+q.Draft+q.Target+q.Source+q.Weight+q.Reaction != "" || len(q.Labels) > 0
}

// Narrow reports whether the list is filtered.
func (q issuableQuery) Narrow() bool { return q.Wide() || q.Search != "" }

// With returns the URL of the same list with another value.
func (q issuableQuery) With(name, value string) string { return withValue(q.values, name, value) }

// withValue returns the URL of the first page of a list with another value.
func withValue(old url.Values, name, value string) string {
	values := url.Values{}
	for key, list := range old {
		values[key] = list
	}
	values.Del("page")
	values.Set(name, value)
	return "?" + values.Encode()
}

// filter returns the conditions that issues and merge requests share.
func (q issuableQuery) filter() (listing.Filter, listing.Match) {
	f := listing.Filter{Search: q.Search}
	if q.State != "all" {
		f.State = plan.State(q.State)
	}
	m := listing.Match{Weight: q.Weight, Reaction: q.Reaction, Labels: q.Labels, Milestone: q.Milestone, ReleaseTag: q.Release, AuthorUsername: strings.TrimPrefix(q.Author, "@")}
	m.AssigneeID, m.AssigneeUsernames = userMatch(q.Assignee)
	return f, m
}

// userMatch splits the value of a user field into None or Any, and a username.
func userMatch(value string) (id string, names []string) {
	switch value {
	case "":
		return "", nil
	case listing.None, listing.Any:
		return value, nil
	}
	return "", []string{strings.TrimPrefix(value, "@")}
}

// yesNo returns the value of a field that is yes, no or empty.
func yesNo(value string) *bool {
	yes := value == "yes"
	if !yes && value != "no" {
		return nil
	}
	return &yes
}

// planNames are the names of labels and milestones that lists can be filtered
// by.
func (w *Web) planNames(v *visit, in project.Place) (labels, milestones []string, err error) {
	words, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Ancestors: true, Descendants: in.Group}, allOf())
	if err != nil {
		return nil, nil, err
	}
	for _, l := range words.Items {
		if !slices.Contains(labels, l.Name) {
			labels = append(labels, l.Name)
		}
	}
	goals, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{State: plan.ActiveMilestone, Ancestors: true, Descendants: in.Group}, allOf())
	if err != nil {
		return nil, nil, err
	}
	for _, m := range goals.Items {
		if !slices.Contains(milestones, m.Title) {
			milestones = append(milestones, m.Title)
		}
	}
	return labels, milestones, nil
}
