package web

import (
	"slices"
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/project"
)

func (w *Web) approvalPages() {
	w.projectPage("POST merge_requests/{id}/approve", signedIn, w.approveMerge)
	w.projectPage("POST merge_requests/{id}/unapprove", signedIn, w.unapproveMerge)
	w.projectPage("GET merge_requests/{id}/approval_rules", signedIn, w.mergeRules)
	w.projectPage("POST merge_requests/{id}/approval_rules", signedIn, w.addMergeRule)
	w.projectPage("POST merge_requests/{id}/approval_rules/reset", signedIn, w.resetMergeRules)
	w.projectPage("POST merge_requests/{id}/approval_rules/{rule}", signedIn, w.saveMergeRule)
	w.projectPage("POST merge_requests/{id}/approval_rules/{rule}/delete", signedIn, w.deleteMergeRule)
}

// approvalBox is the part of the merge box with the approvals.
type approvalBox struct {
	*merge.Approvals
	Head string
	Kind string // ok, wait or none: selects the icon
	Rows []approvalRow
	Open bool // the merge request is open
}

// approvalRow is a rule in the box.
type approvalRow struct {
	*merge.RuleState
	Shown []string // eligible approvers
	More  int      // others
}

// Status describes how many of the required approvals were given.
func (r approvalRow) Status() string {
	switch {
	case r.Required == 0:
		return "Optional"
	case r.Invalid && r.Approved:
		return "Auto approved"
	}
	return strconv.Itoa(len(r.ApprovedBy)) + " of " + strconv.FormatInt(r.Required, 10)
}

// Title is the name of a rule. That of a code owner rule is a pattern.
func (r approvalRow) Title() string {
	if r.Type == merge.AnyApprover {
		return "All eligible users"
	}
	return r.Name
}

// approvals reads the approvals of a merge request for its box.
func (w *Web) approvals(v *visit, p *mergePage) (*approvalBox, error) {
	a, err := w.Merges.ApprovalsOf(v, v.actor, p.P.Project, p.MergeRequest)
	if err != nil {
		return nil, err
	}
	b := &approvalBox{Approvals: a, Kind: "none", Head: "Approval is optional", Open: p.State == merge.Opened}
	for _, r := range a.Rules {
		const most = 8
		row := approvalRow{RuleState: r}
		for i, u := range r.Eligible {
			if i < most {
				row.Shown = append(row.Shown, u.Name)
			}
		}
		row.More = len(r.Eligible) - len(row.Shown)
		b.Rows = append(b.Rows, row)
	}
	switch {
	case !a.Approved():
		var names []string
		for _, r := range a.Waiting() {
			name := r.Name
			if r.Type == merge.CodeOwner {
				name = "code owners"
			}
			if r.Type != merge.AnyApprover && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		b.Kind, b.Head = "wait", "Requires "+plural(int(a.Left), "approval")
		if !b.Open {
			b.Kind, b.Head = "none", "Missing "+plural(int(a.Left), "approval")
		}
		if len(names) > 0 {
			const most = 3
			b.Head += " from " + strings.Join(names[:min(len(names), most)], ", ")
			if len(names) > most {
				b.Head += " and others"
			}
		}
	case len(a.Given) > 0:
		b.Kind, b.Head = "ok", "Approved"
	case a.Required > 0:
		b.Kind, b.Head = "ok", "Approved automatically"
	}
	return b, nil
}

// approveMerge approves the head that the user saw.
func (w *Web) approveMerge(v *visit, ref project.Ref) error {
	o := merge.ApproveOptions{SHA: v.text("head"), Password: v.r.PostForm.Get("password")}
	if o.SHA == "" {
		return errs.Invalid("Reload the page before you approve.")
	}
	return w.actOn(v, ref, w.mergeKind(), "The merge request was approved.", func(iid int64) error {
		_, _, err := w.Merges.Approve(v, v.actor, ref, iid, o)
		switch {
		case errs.Is(err, errs.KindConflict):
			return errs.Conflict("New commits were pushed to the source branch. Review them, then approve again.").Because(err)
		case errs.Is(err, errs.KindUnauthorized) && o.Password != "":
			return errs.Forbidden("The merge request was not approved: the password is wrong.").Because(err)
		}
		return err
	})
}

func (w *Web) unapproveMerge(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "Your approval was revoked.", func(iid int64) error {
		_, _, err := w.Merges.Unapprove(v, v.actor, ref, iid)
		return err
	})
}

// ruleEditor lists approval rules with forms to change them.
type ruleEditor struct {
	Rules        []*ruleRow
	RuleBase     string // where the forms are sent
	RuleForm     form   // of a new rule
	RuleBranches []option
}

// ruleRow is a rule in the editor.
type ruleRow struct {
	*merge.ApprovalRule
	Branch  string // an ID, protected, or empty for all branches
	Foreign bool   // a rule of the project that a merge request does not override yet
}

// UserNames are the usernames of a rule, as they are typed.
func (r *ruleRow) UserNames() string {
	var names []string
	for _, u := range r.Users {
		names = append(names, u.Username)
	}
	return strings.Join(names, ", ")
}

// GroupPaths are the groups of a rule, as they are typed.
func (r *ruleRow) GroupPaths() string {
	var paths []string
	for _, g := range r.Groups {
		paths = append(paths, g.FullPath)
	}
	return strings.Join(paths, ", ")
}

// IsAny reports whether the rule is for any approver.
func (r *ruleRow) IsAny() bool { return r.Type == merge.AnyApprover }

// IsOwner reports whether the rule comes from CODEOWNERS.
func (r *ruleRow) IsOwner() bool { return r.Type == merge.CodeOwner }

func newRuleRow(r *merge.ApprovalRule) *ruleRow {
	row := &ruleRow{ApprovalRule: r}
	switch {
	case r.AllProtected:
		row.Branch = "protected"
	case len(r.Branches) > 0:
		row.Branch = strconv.FormatInt(r.Branches[0].ID, 10)
	}
	return row
}

// sentRule reads a rule of a form. Users and groups are named, separated by
// commas or spaces.
func (w *Web) sentRule(v *visit, f *form, branches bool) (merge.RuleFields, error) {
	name, required := v.text("name"), v.whole(f, "approvals_required")
	split := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' })
	}
	fields := merge.RuleFields{Required: &required, UserIDs: &[]int64{}, GroupIDs: &[]int64{}}
	if name != "" {
		fields.Name = &name
	}
	for _, user := range split(v.text("users")) {
		fields.Usernames = append(fields.Usernames, strings.TrimPrefix(user, "@"))
	}
	for _, path := range split(v.text("groups")) {
		g, err := w.Projects.RequireGroup(v, v.actor, project.Ref(strings.Trim(strings.TrimPrefix(path, "@"), "/")), project.NoAccess)
		if errs.Is(err, errs.KindNotFound) {
			f.wrong("groups", path+" is not a group that you can access")
			continue
		}
		if err != nil {
			return fields, err
		}
		*fields.GroupIDs = append(*fields.GroupIDs, g.ID)
	}
	fields.Type = merge.Regular
	if len(fields.Usernames)+len(*fields.GroupIDs) == 0 {
		fields.Type = merge.AnyApprover
	}
	if branches {
		all := v.text("branch") == "protected"
		fields.AllProtected, fields.BranchIDs = &all, &[]int64{}
		if id, err := strconv.ParseInt(v.text("branch"), 10, 64); err == nil {
			*fields.BranchIDs = append(*fields.BranchIDs, id)
		}
	}
	return fields, nil
}

// moveRuleErrors puts the reasons of a refusal beside the fields of the editor.
func moveRuleErrors(f *form) {
	f.move("user_ids", "users")
	f.move("usernames", "users")
	f.move("group_ids", "groups")
	f.move("protected_branch_ids", "branch")
	f.move("rule_type", "users")
	f.only("name", "approvals_required", "users", "groups", "branch")
}

// mergeRulesPage is the editor of the approval rules of a merge request.
type mergeRulesPage struct {
	planHead
	ruleEditor
	Path        string
	Ref         string
	Title       string
	Overwritten bool
}

func (mergeRulesPage) view() string    { return "project/merge_rules" }
func (p mergeRulesPage) title() string { return "Approval rules · " + p.Ref + " · " + p.Name() }

func (w *Web) mergeRules(v *visit, ref project.Ref) error { return w.showMergeRules(v, ref, form{}) }

func (w *Web) showMergeRules(v *visit, ref project.Ref, f form) error {
	p, err := w.mergeRequest(v, ref)
	if err != nil {
		return err
	}
	a, err := w.Merges.ApprovalsOf(v, v.actor, p.P.Project, p.MergeRequest)
	if err != nil {
		return err
	}
	if !a.CanEdit {
		return errs.Forbidden("You are not allowed to change the approval rules of this merge request.")
	}
	page := mergeRulesPage{planHead: p.planHead, Path: p.Path, Ref: p.Ref, Title: p.Title, Overwritten: a.Overwritten}
	page.RuleForm, page.RuleBase = f, p.Path+"/approval_rules"
	for _, r := range a.Rules {
		row := newRuleRow(r.ApprovalRule)
		row.Foreign = r.RequestID == nil
		page.Rules = append(page.Rules, row)
	}
	return v.showForm(page, f)
}

// changeMergeRule changes the rules of a merge request and returns to the editor.
func (w *Web) changeMergeRule(v *visit, ref project.Ref, done string, do func(iid int64, f *form) error) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	f := v.sent()
	err = do(iid, &f)
	if err == nil && !f.bad() {
		in, err := w.Projects.RequireView(v, v.actor, ref, project.MergePart)
		if err != nil {
			return err
		}
		return v.done(done, pathTo(in.FullPath)+"/-/merge_requests/"+strconv.FormatInt(iid, 10)+"/approval_rules")
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
	}
	moveRuleErrors(&f)
	return w.showMergeRules(v, ref, f)
}

func (w *Web) addMergeRule(v *visit, ref project.Ref) error {
	return w.changeMergeRule(v, ref, "The approval rule was added.", func(iid int64, f *form) error {
		fields, err := w.sentRule(v, f, false)
		if err != nil || f.bad() {
			return err
		}
		_, err = w.Merges.CreateRequestRule(v, v.actor, ref, iid, fields)
		return err
	})
}

// saveMergeRule changes a rule of a merge request, or overrides one of the
// project.
func (w *Web) saveMergeRule(v *visit, ref project.Ref) error {
	return w.changeMergeRule(v, ref, "The approval rule was saved.", func(iid int64, f *form) error {
		fields, err := w.sentRule(v, f, false)
		if err != nil || f.bad() {
			return err
		}
		id, err := v.number("rule")
		if err != nil {
			return err
		}
		if v.ticked("source") && id == 0 { // the setting of the project, without a rule
			_, _, err := w.Merges.RequireApprovals(v, v.actor, ref, iid, *fields.Required)
			return err
		}
		if v.ticked("source") {
			made, err := w.Merges.CreateRequestRule(v, v.actor, ref, iid, merge.RuleFields{SourceID: id, Required: fields.Required})
			if err != nil {
				return err
			}
			id = made.ID
		}
		_, err = w.Merges.UpdateRequestRule(v, v.actor, ref, iid, id, fields)
		return err
	})
}

func (w *Web) deleteMergeRule(v *visit, ref project.Ref) error {
	return w.changeMergeRule(v, ref, "The approval rule was deleted.", func(iid int64, f *form) error {
		id, err := v.number("rule")
		if err != nil {
			return err
		}
		return w.Merges.DeleteRequestRule(v, v.actor, ref, iid, id)
	})
}

func (w *Web) resetMergeRules(v *visit, ref project.Ref) error {
	return w.changeMergeRule(v, ref, "The approval rules of the project apply again.", func(iid int64, f *form) error {
		return w.Merges.ResetRequestRules(v, v.actor, ref, iid)
	})
}

// codeOwners returns the names of the code owners of a file, with links.
func (w *Web) codeOwners(v *visit, p *blobPage) error {
	if v.actor.Anonymous() {
		return nil
	}
	file, list, err := w.Merges.CodeOwners(v, v.actor, p.in(), p.At, p.Path)
	if errs.IsRefusal(err) {
		return nil
	}
	p.OwnersFile = file
	for _, o := range list {
		for _, u := range o.Users {
			p.addOwner(codeOwner{u.Name, "/" + u.Username})
		}
		for _, g := range o.Groups {
			p.addOwner(codeOwner{g.FullName, "/" + g.FullPath})
		}
		for _, level := range o.Roles {
			p.addOwner(codeOwner{Name: level.String() + "s"})
		}
	}
	return err
}

// codeOwner is an owner of a file.
type codeOwner struct{ Name, Path string }

func (p *blobPage) addOwner(o codeOwner) {
	const most = 20
	if len(p.Owners) < most && !slices.Contains(p.Owners, o) {
		p.Owners = append(p.Owners, o)
	}
}
