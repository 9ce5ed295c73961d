package web

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/featureflag"
	"svc/internal/project"
)

func (w *Web) featureFlagPages() {
	w.projectPage("GET feature_flags", signedIn, w.featureFlags)
	w.projectPage("POST feature_flags", signedIn, w.createFeatureFlag)
	w.projectPage("GET feature_flags/new", signedIn, w.newFeatureFlag)
	w.projectPage("POST feature_flags/reset_token", signedIn, w.resetFlagToken)
	w.projectPage("GET feature_flags/{id}", signedIn, w.editFeatureFlag)
	w.projectPage("GET feature_flags/{id}/edit", signedIn, w.editFeatureFlag)
	w.projectPage("POST feature_flags/{id}", signedIn, w.updateFeatureFlag)
	w.projectPage("POST feature_flags/{id}/turn", signedIn, w.turnFeatureFlag)
	w.projectPage("POST feature_flags/{id}/delete", signedIn, w.deleteFeatureFlag)
	w.projectPage("GET feature_flags_user_lists", signedIn, w.flagUserLists)
	w.projectPage("POST feature_flags_user_lists", signedIn, w.createFlagUserList)
	w.projectPage("GET feature_flags_user_lists/new", signedIn, w.newFlagUserList)
	w.projectPage("GET feature_flags_user_lists/{id}", signedIn, w.editFlagUserList)
	w.projectPage("GET feature_flags_user_lists/{id}/edit", signedIn, w.editFlagUserList)
	w.projectPage("POST feature_flags_user_lists/{id}", signedIn, w.updateFlagUserList)
	w.projectPage("POST feature_flags_user_lists/{id}/delete", signedIn, w.deleteFlagUserList)
}

// featureFlagsPage is the list of feature flags of a project.
type featureFlagsPage struct {
	head
	Rows       []*featureflag.Flag
	MayChange  bool
	Address    string // of the API for clients
	InstanceID string // empty if the visitor may not see it
	Pager      pager
}

func (featureFlagsPage) view() string    { return "project/feature_flags" }
func (p featureFlagsPage) title() string { return "Feature flags · " + p.Project.FullName() }

// strategyLabels are the names of strategies on pages.
var strategyLabels = []option{
	{featureflag.AllUsers, "All users"}, {featureflag.FlexibleRollout, "Percent rollout"}, {featureflag.PercentOfUsers, "Percent of users"},
	{featureflag.UserIDs, "User IDs"}, {featureflag.InUserList, "User list"},
}

func strategyLabel(name string) string {
	for _, o := range strategyLabels {
		if o.Value == name {
			return o.Label
		}
	}
	return name
}

// Describe describes a strategy in words.
func (featureFlagsPage) Describe(s *featureflag.Strategy) string {
	text := strategyLabel(s.Name)
	switch s.Name {
	case featureflag.FlexibleRollout:
		text += " – " + s.Parameters["rollout"] + "% (" + s.Parameters["stickiness"] + ")"
	case featureflag.PercentOfUsers:
		text += " – " + s.Parameters["percentage"] + "%"
	case featureflag.UserIDs:
		text += " – " + shortened(s.Parameters["userIds"], 60)
	case featureflag.InUserList:
		if s.UserList != nil {
			text += " – " + s.UserList.Name
		}
	}
	var scopes []string
	for _, sc := range s.Scopes {
		if sc.Environment == "*" {
			return text + ": All environments"
		}
		scopes = append(scopes, sc.Environment)
	}
	if len(scopes) == 0 {
		return text + ": No environments"
	}
	return text + ": " + shortened(strings.Join(scopes, ", "), 100)
}

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func (w *Web) featureFlags(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "feature_flags")
	if err != nil {
		return err
	}
	found, err := w.Flags.Flags(v, v.actor, h.in(), featureflag.AnyStatus, v.paging())
	if err != nil {
		return err
	}
	p := featureFlagsPage{head: h, Rows: found.Items, MayChange: featureflag.MayChange(v.actor, h.Project), Pager: v.pager(found.More)}
	if featureflag.MayConfigure(v.actor, h.Project) {
		p.Address = w.Site.URL + "/api/v4/feature_flags/unleash/" + strconv.FormatInt(h.Project.ID, 10)
		if p.InstanceID, err = w.Flags.InstanceID(v, v.actor, h.in()); err != nil {
			return err
		}
	}
	return v.show(p)
}

func flagsAt(ref project.Ref) string     { return pathTo(string(ref)) + "/-/feature_flags" }
func flagListsAt(ref project.Ref) string { return pathTo(string(ref)) + "/-/feature_flags_user_lists" }

func (w *Web) resetFlagToken(v *visit, ref project.Ref) error {
	_, err := w.Flags.ResetInstanceID(v, v.actor, ref)
	return v.redirectWithFlash(err, "The instance ID was replaced.", flagsAt(ref))
}

// featureFlagPage is the form of a feature flag.
type featureFlagPage struct {
	head
	IID        int64 // 0 is a new one
	Form       form
	Strategies []strategyRow
	Lists      []option
	MayChange  bool
}

func (featureFlagPage) view() string { return "project/feature_flag" }
func (p featureFlagPage) title() string {
	if p.IID == 0 {
		return "New feature flag · " + p.Project.FullName()
	}
	return "Edit feature flag · " + p.Project.FullName()
}

// Names are the strategies to choose from.
func (featureFlagPage) Names() []option { return strategyLabels }

// Stickiness are the values of the parameter "stickiness".
func (featureFlagPage) Stickiness() []option {
	return []option{{"default", "Available ID"}, {"userId", "User ID"}, {"sessionId", "Session ID"}, {"random", "Random"}}
}

// strategyRow is a strategy in the form. The name of each field ends with the
// number of the row.
type strategyRow struct {
	N                                  int
	ID                                 int64
	Name, Percent, Stickiness, UserIDs string
	ListID, Scopes                     string
}

func newStrategyRow(n int, s *featureflag.Strategy) strategyRow {
	row := strategyRow{N: n, ID: s.ID, Name: s.Name, Percent: s.Parameters["rollout"] + s.Parameters["percentage"], Stickiness: s.Parameters["stickiness"], UserIDs: s.Parameters["userIds"]}
	if s.UserList != nil {
		row.ListID = strconv.FormatInt(s.UserList.ID, 10)
	}
	var scopes []string
	for _, sc := range s.Scopes {
		scopes = append(scopes, sc.Environment)
	}
	row.Scopes = strings.Join(scopes, ", ")
	return row
}

// maxStrategyRows is the maximum number of strategies in the form.
const maxStrategyRows = 51

// sentStrategies reads the rows of the form.
func (v *visit) sentStrategies() []strategyRow {
	var rows []strategyRow
	for n := range maxStrategyRows {
		at := func(name string) string { return v.text(fmt.Sprintf("%s_%d", name, n)) }
		if _, sent := v.r.PostForm[fmt.Sprintf("strategy_%d", n)]; !sent {
			break
		}
		id, _ := strconv.ParseInt(at("id"), 10, 64) // 0 adds one
		rows = append(rows, strategyRow{
			N: n, ID: id, Name: at("strategy"), Percent: at("percent"), Stickiness: at("stickiness"), UserIDs: at("users"), ListID: at("list"), Scopes: at("scopes"),
		})
	}
	return rows
}

// flagChange converts the rows to a change. All scopes of a strategy are
// replaced.
func flagChange(rows []strategyRow, have *featureflag.Flag) []featureflag.StrategyChange {
	changes := []featureflag.StrategyChange{}
	for _, r := range rows {
		c := featureflag.StrategyChange{}
		if r.ID != 0 {
			c.ID = &r.ID
		}
		if r.Name == "" {
			if c.Remove = true; c.ID != nil {
				changes = append(changes, c)
			}
			continue
		}
		parameters := map[string]string{}
		switch r.Name {
		case featureflag.FlexibleRollout:
			parameters = map[string]string{"groupId": "default", "rollout": r.Percent, "stickiness": r.Stickiness}
		case featureflag.PercentOfUsers:
			parameters = map[string]string{"groupId": "default", "percentage": r.Percent}
		case featureflag.UserIDs:
			parameters = map[string]string{"userIds": r.UserIDs}
		case featureflag.InUserList:
			if id, err := strconv.ParseInt(r.ListID, 10, 64); err == nil {
				c.UserListID = &id
			}
		}
		c.Name = &r.Name
		c.Parameters, _ = json.Marshal(parameters) // texts can always be encoded
		if have != nil {
			for _, s := range have.Strategies {
				for _, sc := range s.Scopes {
					if s.ID == r.ID {
						c.Scopes = append(c.Scopes, featureflag.ScopeChange{ID: &sc.ID, Remove: true})
					}
				}
			}
		}
		scopes := r.Scopes
		if scopes == "" {
			scopes = "*"
		}
		for name := range strings.SplitSeq(scopes, ",") {
			if name = strings.TrimSpace(name); name != "" {
				c.Scopes = append(c.Scopes, featureflag.ScopeChange{Environment: &name})
			}
		}
		changes = append(changes, c)
	}
	return changes
}

func (w *Web) newFeatureFlag(v *visit, ref project.Ref) error {
	return w.showFeatureFlag(v, ref, 0, filled("active", "1"), []strategyRow{{Name: featureflag.AllUsers, Scopes: "*"}})
}

func (w *Web) showFeatureFlag(v *visit, ref project.Ref, iid int64, f form, rows []strategyRow) error {
	h, err := w.head(v, ref, "feature_flags")
	if err != nil {
		return err
	}
	f.only("name", "description")
	p := featureFlagPage{head: h, IID: iid, Form: f, Strategies: append(rows, strategyRow{N: len(rows)}), MayChange: featureflag.MayChange(v.actor, h.Project)}
	lists, err := w.Flags.UserLists(v, v.actor, h.in(), "", db.Paging{Limit: 1000})
	if err != nil {
		return err
	}
	for _, l := range lists.Items {
		p.Lists = append(p.Lists, option{strconv.FormatInt(l.ID, 10), l.Name})
	}
	return v.showForm(p, f)
}

func (w *Web) createFeatureFlag(v *visit, ref project.Ref) error {
	rows := v.sentStrategies()
	name, description, active := v.text("name"), v.text("description"), v.ticked("active")
	for i := range rows {
		rows[i].ID = 0
	}
	_, err := w.Flags.Create(v, v.actor, ref, featureflag.Change{Name: &name, Description: &description, Active: &active, Strategies: flagChange(rows, nil)})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showFeatureFlag(v, ref, 0, f, rows)
	}
	return v.done("The feature flag was created.", flagsAt(ref))
}

func (w *Web) flagOf(v *visit, ref project.Ref) (*featureflag.Flag, error) {
	iid, err := v.number("id")
	if err != nil {
		return nil, err
	}
	return w.Flags.FlagByIID(v, v.actor, ref, iid)
}

func (w *Web) editFeatureFlag(v *visit, ref project.Ref) error {
	flag, err := w.flagOf(v, ref)
	if err != nil {
		return err
	}
	f := filled("name", flag.Name, "description", flag.Description, "active", on(flag.Active))
	var rows []strategyRow
	for i, s := range flag.Strategies {
		rows = append(rows, newStrategyRow(i, s))
	}
	return w.showFeatureFlag(v, ref, flag.IID, f, rows)
}

func (w *Web) updateFeatureFlag(v *visit, ref project.Ref) error {
	flag, err := w.flagOf(v, ref)
	if err != nil {
		return err
	}
	rows := v.sentStrategies()
	name, description, active := v.text("name"), v.text("description"), v.ticked("active")
	_, err = w.Flags.Update(v, v.actor, ref, flag.Name, featureflag.Change{
		Name: &name, Description: &description, Active: &active, Strategies: flagChange(rows, flag),
	})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showFeatureFlag(v, ref, flag.IID, f, rows)
	}
	return v.done("The feature flag was saved.", flagsAt(ref))
}

func (w *Web) turnFeatureFlag(v *visit, ref project.Ref) error {
	flag, err := w.flagOf(v, ref)
	if err != nil {
		return err
	}
	active := v.ticked("active")
	_, err = w.Flags.Update(v, v.actor, ref, flag.Name, featureflag.Change{Active: &active})
	done := "The feature flag " + flag.Name + " was disabled."
	if active {
		done = "The feature flag " + flag.Name + " was enabled."
	}
	return v.redirectWithFlash(err, done, flagsAt(ref))
}

func (w *Web) deleteFeatureFlag(v *visit, ref project.Ref) error {
	flag, err := w.flagOf(v, ref)
	if err != nil {
		return err
	}
	_, err = w.Flags.Delete(v, v.actor, ref, flag.Name)
	return v.redirectWithFlash(err, "The feature flag was deleted.", flagsAt(ref))
}

// flagUserListsPage is the user lists of a project.
type flagUserListsPage struct {
	head
	Lists     []*featureflag.UserList
	MayChange bool
	Pager     pager
}

func (flagUserListsPage) view() string    { return "project/feature_flag_lists" }
func (p flagUserListsPage) title() string { return "User lists · " + p.Project.FullName() }

// Count is the number of users of a list.
func (flagUserListsPage) Count(l *featureflag.UserList) int { return strings.Count(l.UserIDs, ",") + 1 }

func (w *Web) flagUserLists(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "feature_flags")
	if err != nil {
		return err
	}
	found, err := w.Flags.UserLists(v, v.actor, h.in(), "", v.paging())
	if err != nil {
		return err
	}
	return v.show(flagUserListsPage{head: h, Lists: found.Items, MayChange: featureflag.MayChange(v.actor, h.Project), Pager: v.pager(found.More)})
}

// flagUserListPage is the form of a user list.
type flagUserListPage struct {
	head
	IID       int64 // 0 is a new one
	Form      form
	MayChange bool
}

func (flagUserListPage) view() string    { return "project/feature_flag_list" }
func (p flagUserListPage) title() string { return "User list · " + p.Project.FullName() }

func (w *Web) showFlagUserList(v *visit, ref project.Ref, iid int64, f form) error {
	h, err := w.head(v, ref, "feature_flags")
	if err != nil {
		return err
	}
	f.only("name", "user_xids")
	return v.showForm(flagUserListPage{head: h, IID: iid, Form: f, MayChange: featureflag.MayChange(v.actor, h.Project)}, f)
}

func (w *Web) newFlagUserList(v *visit, ref project.Ref) error {
	return w.showFlagUserList(v, ref, 0, filled())
}

func (w *Web) editFlagUserList(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	l, err := w.Flags.UserList(v, v.actor, ref, iid)
	if err != nil {
		return err
	}
	return w.showFlagUserList(v, ref, iid, filled("name", l.Name, "user_xids", l.UserIDs))
}

func (w *Web) createFlagUserList(v *visit, ref project.Ref) error {
	name, ids := v.text("name"), v.text("user_xids")
	_, err := w.Flags.CreateUserList(v, v.actor, ref, featureflag.UserListChange{Name: &name, UserIDs: &ids})
	return w.savedFlagUserList(v, ref, 0, err, "The user list was created.")
}

func (w *Web) updateFlagUserList(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	name, ids := v.text("name"), v.text("user_xids")
	_, err = w.Flags.UpdateUserList(v, v.actor, ref, iid, featureflag.UserListChange{Name: &name, UserIDs: &ids})
	return w.savedFlagUserList(v, ref, iid, err, "The user list was saved.")
}

func (w *Web) savedFlagUserList(v *visit, ref project.Ref, iid int64, err error, done string) error {
	if err == nil {
		return v.done(done, flagListsAt(ref))
	}
	f := v.sent()
	if err := f.refused(err); err != nil {
		return err
	}
	return w.showFlagUserList(v, ref, iid, f)
}

func (w *Web) deleteFlagUserList(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Flags.DeleteUserList(v, v.actor, ref, iid), "The user list was deleted.", flagListsAt(ref))
}
