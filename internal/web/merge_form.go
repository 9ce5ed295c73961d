package web

import (
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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
	w.projectPage("GET merge_requests/{id}/edit/{part}", signedIn, w.editMergePart)
	w.projectPage("POST merge_requests/{id}/edit/{part}", signedIn, w.saveMergePart)
}

// mergeForm is a new merge request, or one that is changed.
type mergeForm struct {
	planHead
	IID       int64 // 0 is a new one
	Form      form
	Preview   template.HTML
	Asks      bool // first of all for the branches
	Branches  []string
	Targets   []option // the projects that it can be for
	Into      *project.Project
	Commits   []commitDay
	Count     int // of the commits
	Files     int
	Chooses   bool // the visitor may say what is planned
	Squashes  bool // whether to squash can be chosen
	Lends     bool // whether others may push to the branch can be chosen
	Labels    []choice
	Assignees []choice
	Reviewers []choice
	Goals     []option

	goal *plan.Milestone // the one that it has, which may be closed
}

func (mergeForm) view() string { return "project/merge_form" }
func (p mergeForm) title() string {
	if p.IID == 0 {
		return "New merge request · " + p.Name()
	}
	return "Edit !" + strconv.FormatInt(p.IID, 10) + " · " + p.Name()
}

// newMerge asks for the branches, and then for the rest. The names in the
// address are those that v4 has.
func (w *Web) newMerge(v *visit, ref project.Ref) error {
	get := func(name string) string {
		if value := v.param("merge_request[" + name + "]"); value != "" {
			return strings.TrimSpace(value)
		}
		return strings.TrimSpace(v.param(name))
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

// startMerge begins the page of a merge request from a branch of a project.
func (w *Web) startMerge(v *visit, ref project.Ref, f form) (mergeForm, *project.Project, error) {
	h, err := w.planHead(v, project.Place{Ref: ref}, "merges")
	if err != nil {
		return mergeForm{}, nil, err
	}
	source := h.P.Project
	if merge.CheckSource(v.actor, source) != nil {
		return mergeForm{}, nil, errs.Forbidden("You need push access to the project to create a merge request from its branches. Fork the project first.")
	}
	p := mergeForm{planHead: h, Form: f}
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
	p.Chooses, p.Lends = merge.Chooses(v.actor, p.Into), p.Into.ID != source.ID
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

// askBranches shows the first page: which branch goes where.
func (w *Web) askBranches(v *visit, p mergeForm) (err error) {
	p.Asks = true
	if p.Branches, err = w.branchNames(v, *p.P); err != nil {
		return err
	}
	return v.showForm(p, p.Form)
}

// describe suggests a title and a description, from what the branch has.
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
	title, text := titleOf(branch), p.Into.Settings.MergeRequestsTemplate
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
	p.Form.Values.Set("allow_collaboration", on(p.Lends))
	p.Form.Values.Set("remove", on(p.Into.Settings.RemoveSourceBranchAfterMerge))
	p.Form.Values.Set("squash", on(p.Into.Settings.SquashOption == "default_on" || p.Into.Settings.SquashOption == "always"))
	return nil
}

// issueBranch is the name of a branch that was made for an issue.
var issueBranch = regexp.MustCompile(`^(\d{1,9})-`)

// titleOf makes a title of the name of a branch.
func titleOf(branch string) string {
	text := strings.NewReplacer("-", " ", "_", " ").Replace(branch)
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

// showMergeForm shows the form, with what can be chosen.
func (w *Web) showMergeForm(v *visit, p mergeForm) (err error) {
	in, squash := p.Place, "default_off"
	if p.Into != nil {
		in, squash = project.Place{Ref: project.RefTo(p.Into.ID)}, p.Into.Settings.SquashOption
	}
	p.Squashes = squash != "always" && squash != "never"
	if v.r.PostForm.Get("preview") != "" {
		if p.Preview, err = w.preview(v, in, p.Form.Get("description")); err != nil {
			return err
		}
	}
	p.Form.only("title", "description", "target_branch", "source_branch", "milestone_id")
	if p.Chooses {
		if p.Labels, err = w.labelChoices(v, in, p.Form.Values["labels"]); err != nil {
			return err
		}
		if p.Assignees, err = w.peopleChoices(v, in, p.Form.Values["assignee_ids"]); err != nil {
			return err
		}
		if p.Reviewers, err = w.peopleChoices(v, in, p.Form.Values["reviewer_ids"]); err != nil {
			return err
		}
		if p.Goals, err = w.goalOptions(v, in, p.goal); err != nil {
			return err
		}
	}
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
	return v.done("The merge request was created.", mergePath(m))
}

// changedMerge finds the merge request of a form, for those who may change it.
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
	f := filled("title", m.Title, "description", m.Description, "target_branch", m.TargetBranch, "squash", on(m.Squash), "remove", on(m.RemoveSource), "allow_collaboration", on(m.AllowCollaboration),
		"milestone_id", milestoneID(m.Milestone), "was", digest(m.Description))
	f.Values["labels"], f.Values["assignee_ids"], f.Values["reviewer_ids"] = labelNames(m.Labels), userIDs(m.Assignees), userIDs(m.Reviewers)
	return w.showChangedMerge(v, p, f)
}

func (w *Web) showChangedMerge(v *visit, p mergePage, f form) (err error) {
	page := mergeForm{planHead: p.planHead, IID: p.IID, Form: f, Chooses: p.Plans, Lends: p.FromFork() && v.actor.Is(p.AuthorID), Into: p.P.Project, goal: p.Milestone}
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
	if now := digest(p.Description); !v.ticked("preview") && v.text("was") != now {
		f.Error = "Another user changed the description in the meantime. Review the merge request, then save again to overwrite it."
		f.Values.Set("was", now)
	}
	if v.ticked("preview") || f.bad() {
		return w.showChangedMerge(v, p, f)
	}
	if _, err := w.Merges.Update(v, v.actor, ref, p.IID, fields); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showChangedMerge(v, p, f)
	}
	return v.done("The merge request was updated.", p.Path)
}

// plannedMerge finds the merge request of a form, for those who may plan it.
func (w *Web) plannedMerge(v *visit, ref project.Ref) (mergePage, error) {
	p, err := w.mergeRequest(v, ref)
	if err == nil && !p.Plans {
		err = errs.Forbidden("")
	}
	return p, err
}

// mergePart is plannedMerge for the form of a part.
func (w *Web) mergePart(v *visit, ref project.Ref) (partPage, *merge.MergeRequest, error) {
	p, err := w.plannedMerge(v, ref)
	if err != nil {
		return partPage{}, nil, err
	}
	which, err := v.part("labels", "assignees", "reviewers", "milestone")
	return partPage{planHead: p.planHead, Thing: option{"merge_requests", "Merge requests"}, Ref: p.Ref, Path: p.Path, Which: which}, p.MergeRequest, err
}

func (w *Web) editMergePart(v *visit, ref project.Ref) error {
	p, m, err := w.mergePart(v, ref)
	if err != nil {
		return err
	}
	f := filled("milestone_id", milestoneID(m.Milestone))
	f.Values["labels"], f.Values["assignee_ids"], f.Values["reviewer_ids"] = labelNames(m.Labels), userIDs(m.Assignees), userIDs(m.Reviewers)
	return w.showPart(v, p, f, m.Milestone)
}

func (w *Web) saveMergePart(v *visit, ref project.Ref) error {
	p, m, err := w.mergePart(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	var fields merge.Fields
	if v.mergePlan(&f, &fields, p.Which); f.bad() {
		return w.showPart(v, p, f, m.Milestone)
	}
	if _, err := w.Merges.Update(v, v.actor, ref, m.IID, fields); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPart(v, p, f, m.Milestone)
	}
	return v.redirect(p.Path)
}
