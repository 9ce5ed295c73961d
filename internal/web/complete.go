package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/snippet"
	"svc/internal/user"
)

func (w *Web) completePages() {
	w.placePage("GET autocomplete_sources/{kind}", signedIn, w.complete)
}

// suggestion is something that an editor can insert.
type suggestion struct {
	Value string `json:"value"` // inserted text
	Label string `json:"label"`
	Note  string `json:"note,omitempty"`
	Color string `json:"color,omitempty"` // of a label
	Sign  string `json:"sign,omitempty"`  // an emoji
	Face  string `json:"face,omitempty"`  // address of an avatar
}

// complete returns suggestions for a text in an editor, in JSON: at most
// listing.MaxCompletions, and only what the user can see.
func (w *Web) complete(v *visit, in project.Place) error {
	text := v.param("search")
	if len(text) > 255 {
		return errs.Invalid("The text is too long.")
	}
	of := map[string]func(*visit, project.Place, string) ([]suggestion, error){
		"members": w.completeUsers, "labels": w.completeLabels, "milestones": w.completeMilestones, "emojis": completeEmoji,
	}
	if !in.Group {
		of["issues"], of["merge_requests"], of["snippets"], of["commands"] = w.completeIssues, w.completeMerges, w.completeSnippets, w.completeCommands
		of["approvers"], of["groups"] = w.completeMembers, w.completeGroups
	}
	do := of[chi.URLParam(v.r, "kind")]
	if do == nil {
		return errs.NotFound("")
	}
	list, err := do(v, in, text)
	if err != nil {
		return err
	}
	if list == nil {
		list = []suggestion{}
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "private, max-age=15")
	return json.NewEncoder(v.w).Encode(list)
}

// completeUsers suggests the members of the place by name or username, then other
// users by username, then groups that the user is a member of.
func (w *Web) completeUsers(v *visit, in project.Place, text string) ([]suggestion, error) {
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true, Query: text}, db.Paging{Limit: listing.MaxCompletions})
	if err != nil {
		return nil, err
	}
	var list []suggestion
	add := func(u *user.User) {
		value := "@" + u.Username
		if len(list) < listing.MaxCompletions && u.State == user.Active && !slices.ContainsFunc(list, func(s suggestion) bool { return s.Value == value }) {
			list = append(list, suggestion{Value: value, Label: u.Name, Note: value})
		}
	}
	for _, m := range page.Items {
		add(m.User)
	}
	if len(list) < listing.MaxCompletions {
		others, err := w.Users.Complete(v, v.actor, text, listing.MaxCompletions)
		if err != nil {
			return nil, err
		}
		for _, u := range others {
			add(u)
		}
	}
	slices.SortStableFunc(list, func(a, b suggestion) int { return usernameRank(a.Value, text) - usernameRank(b.Value, text) })
	if len(list) < listing.MaxCompletions && text != "" {
		groups, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Search: text}, project.Sort{By: "name"}, db.Paging{Limit: listing.MaxCompletions - len(list)})
		if err != nil {
			return nil, err
		}
		for _, g := range groups.Items {
			list = append(list, suggestion{Value: "@" + g.FullPath, Label: g.FullName, Note: "Group"})
		}
	}
	return list, nil
}

// usernameRank orders users by how well their usernames match a text: exact
// matches, then prefixes, then all others.
func usernameRank(value, text string) int {
	name, text := strings.ToLower(value[1:]), strings.ToLower(text)
	switch {
	case name == text:
		return 0
	case strings.HasPrefix(name, text):
		return 1
	}
	return 2
}

// completeMembers suggests the members of a project, who can be approvers.
func (w *Web) completeMembers(v *visit, in project.Place, text string) ([]suggestion, error) {
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true, Query: text}, db.Paging{Limit: listing.MaxCompletions})
	if err != nil {
		return nil, err
	}
	var list []suggestion
	for _, m := range page.Items {
		if m.User.State == user.Active {
			list = append(list, suggestion{Value: m.User.Username, Label: m.User.Name, Note: "@" + m.User.Username})
		}
	}
	return list, nil
}

// completeGroups suggests groups that the user can see, by their paths.
func (w *Web) completeGroups(v *visit, _ project.Place, text string) ([]suggestion, error) {
	page, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Search: text}, project.Sort{By: "name"}, db.Paging{Limit: listing.MaxCompletions})
	return suggest(page.Items, err, func(g *project.Namespace) suggestion {
		return suggestion{Value: g.FullPath, Label: g.FullName, Note: g.FullPath}
	})
}

func (w *Web) completeIssues(v *visit, in project.Place, text string) ([]suggestion, error) {
	found, err := w.Plan.CompleteIssues(v, v.actor, in.Ref, text)
	return suggest(found, err, func(i *plan.Issue) suggestion {
		return suggestion{Value: fmt.Sprintf("#%d", i.IID), Label: i.Title, Note: closedNote(i.State)}
	})
}

func (w *Web) completeMerges(v *visit, in project.Place, text string) ([]suggestion, error) {
	found, err := w.Merges.Complete(v, v.actor, in.Ref, text)
	return suggest(found, err, func(m *merge.MergeRequest) suggestion {
		return suggestion{Value: fmt.Sprintf("!%d", m.IID), Label: m.Title, Note: closedNote(m.State)}
	})
}

// closedNote names a state other than open.
func closedNote(s plan.State) string {
	if s == plan.Opened {
		return ""
	}
	return words(string(s))
}

func suggest[T any](found []T, err error, to func(T) suggestion) ([]suggestion, error) {
	if err != nil {
		return nil, err
	}
	list := make([]suggestion, len(found))
	for i, one := range found {
		list[i] = to(one)
	}
	return list, nil
}

func (w *Web) completeLabels(v *visit, in project.Place, text string) ([]suggestion, error) {
	page, err := w.Plan.Labels(v, v.actor, in, plan.LabelFilter{Ancestors: true, Search: text}, db.Paging{Limit: listing.MaxCompletions})
	return suggest(page.Items, err, func(l *plan.Label) suggestion {
		return suggestion{Value: "~" + quotedName(l.Name), Label: l.Name, Note: l.Description, Color: l.Color}
	})
}

func (w *Web) completeMilestones(v *visit, in project.Place, text string) ([]suggestion, error) {
	page, err := w.Plan.Milestones(v, v.actor, in, plan.MilestoneFilter{State: plan.ActiveMilestone, Ancestors: true, Search: text}, db.Paging{Limit: listing.MaxCompletions})
	return suggest(page.Items, err, func(m *plan.Milestone) suggestion {
		return suggestion{Value: "%" + quotedName(m.Title), Label: m.Title, Note: m.DueDate}
	})
}

// quotedName returns a name as references need it: in quotes unless it is one word.
func quotedName(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" {
		return name
	}
	return `"` + name + `"`
}

// completeSnippets suggests the newest snippets of the project by title.
func (w *Web) completeSnippets(v *visit, in project.Place, text string) ([]suggestion, error) {
	const newest = 100
	page, err := w.Snippets.OfProject(v, v.actor, in.Ref, snippet.Filter{}, db.Paging{Limit: newest})
	if err != nil {
		return nil, err
	}
	var list []suggestion
	for _, s := range page.Items {
		id := strconv.FormatInt(s.ID, 10)
		if len(list) < listing.MaxCompletions && (strings.HasPrefix(id, text) || strings.Contains(strings.ToLower(s.Title), strings.ToLower(text))) {
			list = append(list, suggestion{Value: "$" + id, Label: s.Title})
		}
	}
	return list, nil
}

// completeEmoji suggests emoji by the start of a name, then by a part of it.
func completeEmoji(_ *visit, _ project.Place, text string) ([]suggestion, error) {
	text = strings.ToLower(text)
	var first, rest []suggestion
	for _, e := range emoji.All() {
		if e.Toned() {
			continue
		}
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			at := strings.Index(name, text)
			if at < 0 {
				continue
			}
			s := suggestion{Value: ":" + name + ":", Label: ":" + name + ":", Sign: e.Text}
			if at == 0 {
				first = append(first, s)
			} else {
				rest = append(rest, s)
			}
			break
		}
		if len(first) >= listing.MaxCompletions {
			break
		}
	}
	list := append(first, rest...)
	return list[:min(len(list), listing.MaxCompletions)], nil
}

// completeCommands lists the quick actions that the user can use on the issue or
// merge request of the page, or on a new one.
func (w *Web) completeCommands(v *visit, in project.Place, text string) ([]suggestion, error) {
	on, err := w.commandTarget(v, in.Ref, v.param("on"), v.param("iid"))
	if err != nil {
		return nil, err
	}
	var list []suggestion
	for _, c := range w.Plan.CommandsFor(on) {
		if strings.HasPrefix(c.Name, strings.ToLower(text)) {
			list = append(list, suggestion{Value: "/" + c.Name, Label: strings.TrimSpace("/" + c.Name + " " + c.Params), Note: c.Description})
		}
	}
	return list, nil
}

// commandTarget returns an issue or merge request for quick actions, or a new one
// without a number. kind is "issues" or "merges".
func (w *Web) commandTarget(v *visit, ref project.Ref, kind, number string) (*plan.CommandTarget, error) {
	iid, err := strconv.ParseInt(number, 10, 64)
	if number != "" && err != nil {
		return nil, errs.NotFound("")
	}
	switch {
	case kind == "merges" && iid != 0:
		on, err := w.Merges.OnMergeRequest(v, v.actor, ref, iid)
		return on.Commands, err
	case kind == "merges":
		return w.Merges.NewTarget(v, v.actor, ref)
	case kind == "issues" && iid != 0:
		on, err := w.Plan.OnIssue(v, v.actor, ref, iid)
		return on.Commands, err
	case kind == "issues":
		return w.Plan.NewTarget(v, v.actor, ref)
	}
	return nil, errs.NotFound("")
}
