package web

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) mergeFormPages() {
	w.projectPage("GET merge_requests/new", signedIn, w.newMerge)
	w.projectPage("POST merge_requests", signedIn, w.createMerge)
	w.projectPage("GET merge_requests/{id}/edit", signedIn, w.editMerge)
	w.projectPage("POST merge_requests/{id}", signedIn, w.updateMerge)
}

// mergeForm is the form of a new or an existing merge request.
type mergeForm struct {
	planForm
	Asks        bool // for the branches, in the first step
	Branches    []string
	Sources     []option // the possible source projects
	Targets     []option // the possible target projects
	Into        *project.Project
	Commits     []commitDay
	Count       int // of the commits
	Files       int
	Squashes    bool // the user may choose to squash
	Collaborate bool // the user may let others push to the source branch

	goal *plan.Milestone // the current one, which may be closed
}

func (mergeForm) view() string { return "project/merge_form" }
func (p mergeForm) title() string {
	if p.IID == 0 {
		return "New merge request · " + p.Name()
	}
	return "Edit !" + strconv.FormatInt(p.IID, 10) + " · " + p.Name()
}

// newMerge shows the form for the branches first, and then the other fields.
// The query parameters have the names of the v4 API.
func (w *Web) newMerge(v *visit, ref project.Ref) error {
	get := func(name string) string {
		if value := v.param("merge_request[" + name + "]"); value != "" {
			return strings.TrimSpace(value)
		}
		return strings.TrimSpace(v.param(name))
	}
	if to, err := w.otherSource(v, ref, get("source_project_id")); err != nil || to != "" {
		return orRedirect(v, to, err)
	}
	f := filled("source_branch", get("source_branch"), "target_branch", get("target_branch"), "target_project_id", get("target_project_id"),
		"title", get("title"), "description", get("description"))
	p, source, err := w.startMerge(v, ref, f)
	if err != nil {
		return err
	}
	if p.Form.Get("source_branch") == "" || v.param("change") == "1" {
		return w.askBranches(v, p)
	}
	found, err := w.Repos.Compare(v, v.actor, project.RefTo(source.ID), compareOf(source, p.Into, p.Form))
	if errs.Is(err, errs.KindNotFound) {
		p.Form.Error = "One of the branches does not exist."
		return w.askBranches(v, p)
	}
	if err != nil {
		return err
	}
	if err := w.describe(v, &p, found); err != nil {
		return err
	}
	return w.showMergeForm(v, p)
}

// otherSource returns the address of the form in the project that has the source
// branch, if that is another one: the chosen one or, for users who may not push
// here, their fork. It is empty if the form is the one of this project.
func (w *Web) otherSource(v *visit, ref project.Ref, chosen string) (string, error) {
	in, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return "", err
	}
	own := strconv.FormatInt(in.ID, 10)
	if chosen == own || chosen == "" && merge.CheckSource(v.actor, in) == nil {
		return "", nil
	}
	sources, err := w.mergeSources(v, in)
	if err != nil {
		return "", err
	}
	query := v.r.URL.Query()
	for _, name := range []string{"source_project_id", "merge_request[source_project_id]"} {
		query.Del(name)
	}
	if query.Get("merge_request[target_project_id]") == "" && query.Get("target_project_id") == "" {
		query.Set("merge_request[target_project_id]", own)
	}
	for _, s := range sources {
		if s.Value == chosen || chosen == "" {
			return pathTo(s.Label, "-", "merge_requests", "new") + "?" + query.Encode(), nil
		}
	}
	return "", nil
}

// mergeSources are the projects whose branches the user may propose in a
// project: itself, its source and its forks.
func (w *Web) mergeSources(v *visit, in *project.Project) ([]option, error) {
	list := []*project.Project{in}
	forks, err := w.Projects.Forks(v, v.actor, project.RefTo(in.ID), project.Filter{MinLevel: project.Developer}, project.Sort{By: "last_activity_at", Desc: true}, db.Paging{Limit: 50})
	if err != nil {
		return nil, err
	}
	list = append(list, forks.Items...)
	if in.ForkedFromID != nil {
		parent, err := w.Projects.Summary(v, v.actor, project.RefTo(*in.ForkedFromID))
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return nil, err
		}
		if err == nil {
			list = append(list, parent)
		}
	}
	var sources []option
	for _, p := range list {
		if merge.CheckSource(v.actor, p) == nil {
			sources = append(sources, option{strconv.FormatInt(p.ID, 10), p.FullPath})
		}
	}
	return sources, nil
}

func orRedirect(v *visit, to string, err error) error {
	if err != nil {
		return err
	}
	return v.redirect(to)
}

// startMerge prepares the page of a new merge request from a branch of a
// project.
func (w *Web) startMerge(v *visit, ref project.Ref, f form) (mergeForm, *project.Project, error) {
	h, err := w.planHead(v, project.Place{Ref: ref}, "merges")
	if err != nil {
		return mergeForm{}, nil, err
	}
	source := h.P.Project
	if merge.CheckSource(v.actor, source) != nil {
		return mergeForm{}, nil, errs.Forbidden("You need push access to the project to create a merge request from its branches. Fork the project first.")
	}
	p := mergeForm{planForm: planForm{planHead: h, Form: f}}
	var places []*project.Project
	if source.ForkedFromID != nil {
		parent, err := w.Projects.Summary(v, v.actor, project.RefTo(*source.ForkedFromID))
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return mergeForm{}, nil, err
		}
		if err == nil {
			places = append(places, parent)
		}
	}
	var refused error
	for _, t := range append(places, source) {
		if refused = merge.CheckTarget(v.actor, t); refused != nil {
			continue
		}
		id := strconv.FormatInt(t.ID, 10)
		p.Targets = append(p.Targets, option{id, t.FullPath})
		if p.Into == nil || f.Get("target_project_id") == id {
			p.Into = t
		}
	}
	if p.Into == nil {
		return p, nil, refused
	}
	p.Chooses, p.Collaborate = merge.Chooses(v.actor, p.Into), p.Into.ID != source.ID
	f.Values.Set("target_project_id", strconv.FormatInt(p.Into.ID, 10))
	if f.Get("target_branch") == "" {
		f.Values.Set("target_branch", p.Into.DefaultBranch)
	}
	return p, source, nil
}

func compareOf(source, target *project.Project, f form) repo.CompareOptions {
	o := repo.CompareOptions{From: f.Get("target_branch"), To: f.Get("source_branch")}
	if target.ID != source.ID {
		o.FromProject = &target.ID
	}
	return o
}

// askBranches shows the first step: the source and target branch.
func (w *Web) askBranches(v *visit, p mergeForm) (err error) {
	p.Asks = true
	if p.Sources, err = w.mergeSources(v, p.P.Project); err != nil {
		return err
	}
	p.Form.Values.Set("source_project_id", strconv.FormatInt(p.P.Project.ID, 10))
	if p.Branches, err = w.branchNames(v, *p.P); err != nil {
		return err
	}
	return v.showForm(p, p.Form)
}

// describe suggests a title and a description from the commits of the branch.
func (w *Web) describe(v *visit, p *mergeForm, found *repo.Comparison) error {
	p.Count, p.Files = len(found.Commits), len(found.Diff.Files)
	newest := slices.Clone(found.Commits[max(0, len(found.Commits)-shownCommits):])
	slices.Reverse(newest)
	commits, err := found.Read(v, newest)
	if err != nil {
		return err
	}
	lines, err := w.bylines(v, p.P.Project, commits)
	if err != nil {
		return err
	}
	p.Commits = days(lines)
	if p.Form.Get("title") != "" {
		return nil
	}
	branch := p.Form.Get("source_branch")
	title := titleOf(branch)
	text, err := w.Plan.DefaultDescription(v, v.actor, p.Into, plan.MergeKind)
	if err != nil {
		return err
	}
	if name := v.param("issuable_template"); name != "" {
		text, err = w.Plan.DescriptionTemplate(v, v.actor, project.RefTo(p.Into.ID), plan.MergeKind, name)
		if err != nil && !errs.IsRefusal(err) {
			return err
		}
	}
	if len(lines) == 1 {
		title = lines[0].Title
		if text == "" {
			text = lines[0].Body()
		}
	}
	if number := issueBranch.FindStringSubmatch(branch); number != nil {
		text = strings.TrimSpace(text + "\n\nCloses #" + number[1])
	}
	p.Form.Values.Set("title", shown(title))
	if p.Form.Get("description") == "" {
		p.Form.Values.Set("description", text)
	}
	p.Form.Values.Set("allow_collaboration", on(p.Collaborate))
	p.Form.Values.Set("remove", on(p.Into.Settings.RemoveSourceBranchAfterMerge))
	p.Form.Values.Set("squash", on(p.Into.Settings.SquashOption == "default_on" || p.Into.Settings.SquashOption == "always"))
	return nil
}

// issueBranch matches the names of branches that were created for an issue.
var issueBranch = regexp.MustCompile(`^(\d{1,9})-`)

// titleOf returns a title for the name of a branch.
func titleOf(branch string) string {
	text := strings.NewReplacer("-", " ", "_", " ").Replace(branch)
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

// showMergeForm shows the form with its options.
func (w *Web) showMergeForm(v *visit, p mergeForm) (err error) {
	in, squash := p.Place, "default_off"
	if p.Into != nil {
		in, squash = project.Place{Ref: project.RefTo(p.Into.ID)}, p.Into.Settings.SquashOption
	}
	p.Squashes = squash != "always" && squash != "never"
	if p.IID == 0 && p.Into != nil {
		p.TemplateType = "merge_request"
		if p.Templates, err = w.Plan.DescriptionTemplates(v, v.actor, in.Ref, plan.MergeKind); err != nil && !errs.IsRefusal(err) {
			return err
		}
	}
	if err := w.fillPlanForm(v, &p.planForm, in, p.goal, true); err != nil {
		return err
	}
	p.Form.only("title", "description", "target_branch", "source_branch", "milestone_id")
	return v.showForm(p, p.Form)
}

func (w *Web) createMerge(v *visit, ref project.Ref) error {
	f := v.sent()
	fields := v.mergeFields(&f)
	again := func() error {
		p, _, err := w.startMerge(v, ref, f)
		if err != nil {
			return err
		}
		return w.showMergeForm(v, p)
	}
	if v.ticked("preview") || f.bad() {
		return again()
	}
	n := merge.NewRequest{Fields: fields, SourceBranch: v.text("source_branch")}
	if id := v.whole(&f, "target_project_id"); id != 0 {
		n.TargetProject = &id
	}
	m, err := w.Merges.Create(v, v.actor, ref, n)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return again()
	}
	return v.doneWithCommands("The merge request was created.", m.Commands, mergePath(m))
}

// changedMerge returns the merge request of a form. Requires permission to
// change it.
func (w *Web) changedMerge(v *visit, ref project.Ref) (mergePage, error) {
	p, err := w.mergeRequest(v, ref)
	if err == nil {
		err = p.CheckEdit(v.actor, p.P.Project)
	}
	return p, err
}

func (w *Web) editMerge(v *visit, ref project.Ref) error {
	p, err := w.changedMerge(v, ref)
	if err != nil {
		return err
	}
	m := p.MergeRequest
	f := editForm(&m.Issuable, "target_branch", m.TargetBranch, "squash", on(m.Squash), "remove", on(m.RemoveSource), "allow_collaboration", on(m.AllowCollaboration))
	return w.showChangedMerge(v, p, f)
}

func (w *Web) showChangedMerge(v *visit, p mergePage, f form) (err error) {
	page := mergeForm{
		planForm: planForm{planHead: p.planHead, IID: p.IID, Form: f, Chooses: p.Plans}, Collaborate: p.FromFork() && v.actor.Is(p.AuthorID),
		Into: p.P.Project, goal: p.Milestone,
	}
	if page.Branches, err = w.branchNames(v, *p.P); err != nil {
		return err
	}
	return w.showMergeForm(v, page)
}

func (w *Web) updateMerge(v *visit, ref project.Ref) error {
	p, err := w.changedMerge(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	fields := v.mergeFields(&f)
	v.checkStale(&f, &p.Issuable, "merge request")
	if v.ticked("preview") || f.bad() {
		return w.showChangedMerge(v, p, f)
	}
	now, err := w.Merges.Update(v, v.actor, ref, p.IID, fields)
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showChangedMerge(v, p, f)
	}
	return v.doneWithCommands("The merge request was updated.", now.Commands, p.Path)
}

// mergeFields reads the fields of a form and adds errors to the form.
func (v *visit) mergeFields(f *form) merge.Fields {
	c := v.readFields(f, "labels", "assignees", "reviewers", "milestone")
	target, squash, remove := v.text("target_branch"), v.ticked("squash"), v.ticked("remove")
	fields := merge.Fields{Fields: c.Fields, Reviewers: c.Reviewers, TargetBranch: &target, Squash: &squash, RemoveSource: &remove}
	if v.ticked("asks_collaboration") { // the form has the checkbox
		open := v.ticked("allow_collaboration")
		fields.AllowCollaboration = &open
	}
	return fields
}
