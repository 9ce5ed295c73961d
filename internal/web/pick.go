package web

import (
	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) pickPages() {
	for _, action := range []string{"revert", "cherry_pick"} {
		w.projectPage("GET commit/{id}/"+action, signedIn, w.pickForm(action))
		w.projectPage("POST commit/{id}/"+action, signedIn, w.pickCommit(action))
	}
}

// pickPage is the form that reverts or cherry-picks a commit.
type pickPage struct {
	head
	Commit   *git.Commit
	Action   string // revert or cherry_pick
	Branches []string
	Form     form
}

func (pickPage) view() string    { return "project/pick" }
func (p pickPage) title() string { return p.Verb() + " · " + p.Project.FullName() }

// Verb names the action.
func (p pickPage) Verb() string {
	if p.Action == "revert" {
		return "Revert"
	}
	return "Cherry-pick"
}

func (w *Web) pickPage(v *visit, ref project.Ref, action string) (pickPage, error) {
	h, err := w.head(v, ref, "commits")
	if err != nil {
		return pickPage{}, err
	}
	p := pickPage{head: h, Action: action}
	if !p.MayPush {
		return p, errs.Forbidden("You don't have permission to push to this project.")
	}
	_, c, err := w.Repos.Commit(v, v.actor, h.in(), chi.URLParam(v.r, "id"), false)
	if err != nil {
		return p, err
	}
	p.Commit = c.Commit
	p.Branches, err = w.branchNames(v, h)
	return p, err
}

// branch is the name of the new branch for a merge request.
func (p pickPage) branch() string {
	return map[string]string{"revert": "revert-", "cherry_pick": "cherry-pick-"}[p.Action] + string(p.Commit.ID[:8])
}

func (w *Web) pickForm(action string) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		p, err := w.pickPage(v, ref, action)
		if err != nil {
			return err
		}
		branch := v.param("branch")
		if branch == "" {
			branch = p.Project.DefaultBranch
		}
		p.Form = filled("branch", branch, "propose", on(p.Proposes))
		return v.show(p)
	}
}

func (w *Web) pickCommit(action string) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		p, err := w.pickPage(v, ref, action)
		if err != nil {
			return err
		}
		p.Form = v.sent()
		n := repo.Pick{Rev: string(p.Commit.ID), Branch: v.text("branch"), Message: v.prose("message")}
		if v.ticked("propose") && p.Proposes {
			n.Into = p.branch()
		}
		do, done := w.Repos.CherryPick, "The commit was cherry-picked."
		if action == "revert" {
			do, done = w.Repos.Revert, "The commit was reverted."
		}
		_, made, err := do(v, v.actor, p.in(), n)
		if errs.Is(err, errs.KindNotFound) {
			err = errs.Invalid("The branch does not exist.").Because(err)
		}
		if err != nil {
			if err := p.Form.refused(err); err != nil {
				return err
			}
			return v.showForm(p, p.Form)
		}
		if n.Into != "" {
			return v.redirect("/" + p.Project.FullPath + "/-/merge_requests/new?" +
				encode("merge_request[source_branch]", n.Into, "merge_request[target_branch]", n.Branch))
		}
		return v.done(done, pathTo(p.Project.FullPath, "-", "commit", string(made.ID)))
	}
}

// mergedCommit returns the commit of a merged merge request that can be
// reverted and cherry-picked, or an empty string.
func (w *Web) mergedCommit(v *visit, p *mergePage) (string, error) {
	m := p.MergeRequest
	switch {
	case m.State != merge.Merged || !p.P.MayPush:
		return "", nil
	case m.MergeCommit != "":
		return m.MergeCommit, nil
	case m.SquashCommit != "":
		return m.SquashCommit, nil
	}
	// A fast-forward merge of a single commit.
	commits, err := w.Merges.CommitCount(v, m)
	if err != nil || commits != 1 {
		return "", err
	}
	return m.Head, nil
}
