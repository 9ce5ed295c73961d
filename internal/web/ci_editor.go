package web

import (
	"html/template"
	"net/http"
	"strings"

	"svc/internal/ci"
	"svc/internal/ci/config"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) ciEditorPages() {
	w.projectPage("GET ci/editor", anyone, w.ciEditor)
	w.projectPage("POST ci/editor", signedIn, w.changeCI)
}

// ciEditorPage is the pipeline editor: the configuration of a branch, its
// errors, its jobs by stage, and the configuration with all includes.
type ciEditorPage struct {
	ciHead
	Edit    editPage // the commit
	File    string   // path of the configuration; empty if it is not in this repository
	Exists  bool
	Content string
	View    string // edit, visualize, validate or merged
	Result  *config.LintResult
	Stages  []ciStage
	Merged  template.HTML
	DryRun  bool // rules were evaluated for a push to the branch

	Templates []ci.Template // to start from, if there is no file
	Template  string        // the key of the chosen one
}

func (ciEditorPage) view() string    { return "project/ci_editor" }
func (p ciEditorPage) title() string { return "Pipeline editor · " + p.Project.FullName() }

// ciStage is the jobs of a stage.
type ciStage struct {
	Name string
	Jobs []config.LintJob
}

// stagesOf groups jobs by their stages, in the order of the pipeline.
func stagesOf(jobs []config.LintJob) []ciStage {
	var list []ciStage
	at := map[string]int{}
	for _, j := range jobs {
		n, ok := at[j.Stage]
		if !ok {
			n = len(list)
			at[j.Stage] = n
			list = append(list, ciStage{Name: j.Stage})
		}
		list[n].Jobs = append(list[n].Jobs, j)
	}
	return list
}

// firstConfig is the text that the editor starts with in a project without a
// configuration.
const firstConfig = `stages:
  - build
  - test

build-job:
  stage: build
  script:
    - echo "Compile the code"

test-job:
  stage: test
  script:
    - echo "Run the tests"
`

// loadCI finds the configuration of the branch that the address names.
func (w *Web) loadCI(v *visit, ref project.Ref, branch string) (ciEditorPage, error) {
	h, err := w.ciHead(v, ref, "editor")
	if err != nil {
		return ciEditorPage{}, err
	}
	if !h.Builds || !h.Code {
		return ciEditorPage{}, errs.NotFound("")
	}
	if branch == "" {
		branch = h.Project.DefaultBranch
	}
	p := ciEditorPage{ciHead: h, View: v.param("tab"), Edit: editPage{codeHead: codeHead{head: h.head, Ref: branch}, Action: "edit"}}
	if p.File = h.Project.Settings.CIConfigPath; p.File == "" {
		p.File = ".gitlab-ci.yml"
	}
	if strings.Contains(p.File, "@") || strings.Contains(p.File, "://") {
		p.File = "" // of another project or host
	}
	if h.Project.DefaultBranch == "" {
		p.Edit.Branch, p.Edit.MayHere = true, true // the commit creates it
		if p.Edit.Ref == "" {
			p.Edit.Ref = "main"
		}
		return p, nil
	}
	_, c, err := w.Repos.Commit(v, v.actor, h.in(), branch, false)
	if err != nil {
		return p, err
	}
	p.Edit.At = c.ID
	_, b, err := w.Repos.Branch(v, v.actor, h.in(), branch)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return p, err
	}
	p.Edit.Branch = err == nil
	p.Edit.MayHere = p.Edit.Branch && b.CanPush
	if p.File == "" {
		return p, nil
	}
	p.Edit.Path = p.File
	f, text, err := w.editable(v, p.Edit)
	if errs.Is(err, errs.KindNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Exists, p.Content, p.Edit.Last = true, text, f.LastCommitID
	return p, nil
}

// checkCI validates the content, or the file of the branch.
func (w *Web) checkCI(v *visit, p *ciEditorPage, content *string) (err error) {
	if content == nil && p.Edit.At == "" {
		return nil
	}
	r := ci.LintRequest{Content: content, At: string(p.Edit.At), Ref: p.Edit.Ref, DryRun: p.DryRun}
	if p.Result, err = w.CI.Lint(v, v.actor, p.in(), r); err != nil {
		return err
	}
	p.Stages = stagesOf(p.Result.Jobs)
	if p.Result.MergedYAML == "" || len(p.Result.MergedYAML) > maxBlob {
		return nil
	}
	lines, err := w.highlighted(v, "merged.yml", p.Result.MergedYAML, "")
	if err == nil {
		p.Merged = anchored(lines, excerpt{First: 1, Last: len(lines)})
	}
	return err
}

func (w *Web) ciEditor(v *visit, ref project.Ref) error {
	p, err := w.loadCI(v, ref, v.param("branch_name"))
	if err != nil {
		return err
	}
	var content *string
	if !p.Exists && p.File != "" && p.MayPush {
		if err := w.startCI(v, &p); err != nil {
			return err
		}
		content = &p.Content
	}
	if err := w.checkCI(v, &p, content); err != nil {
		return err
	}
	if v.session != nil {
		message := "Update " + p.File
		if !p.Exists {
			message = "Add " + p.File
		}
		p.Edit.Form = p.Edit.proposed(v, message, "")
	}
	return v.show(p)
}

// startCI fills the editor of a project without a configuration: with the template
// that the address names, or an example.
func (w *Web) startCI(v *visit, p *ciEditorPage) error {
	list, err := w.CI.Templates(v, allOf())
	if err != nil {
		return err
	}
	p.Templates, p.Content = list.Items, firstConfig
	if key := v.param("template"); key != "" {
		t, err := w.CI.Template(v, key)
		if err != nil {
			return err
		}
		p.Template, p.Content = t.Key, t.Content
	}
	return nil
}

// changeCI validates the submitted text, simulates a pipeline or commits.
func (w *Web) changeCI(v *visit, ref project.Ref) error {
	p, err := w.loadCI(v, ref, v.param("branch_name"))
	if err != nil {
		return err
	}
	was := p.Content
	p.Content, p.Edit.Form, p.Edit.Last = lines(v.r.PostForm.Get("content"), ""), v.sent(), git.OID(v.text("last_commit_id"))
	act := v.text("do")
	p.DryRun = act == "simulate"
	if p.DryRun {
		p.View = "validate"
	}
	if act != "commit" {
		if err := w.checkCI(v, &p, &p.Content); err != nil {
			return err
		}
		return v.render(http.StatusOK, p)
	}
	if p.File == "" || !p.MayPush {
		return errs.Forbidden("You don't have permission to push to this project. Fork it to propose changes.")
	}
	a := repo.FileAction{Kind: git.Create, Path: p.File, Content: []byte(lines(p.Content, was)), HasContent: true}
	if p.Exists {
		a.Kind, a.LastCommit = git.Modify, string(p.Edit.Last)
	}
	to, err := w.commitActions(v, p.Edit, "Update "+p.File, "", a)
	if err != nil {
		if err := p.Edit.refusedCommit(err); err != nil {
			return err
		}
		if err := w.checkCI(v, &p, &p.Content); err != nil {
			return err
		}
		return v.again(p)
	}
	if !strings.Contains(to, "?") {
		to = p.Base + "/ci/editor?branch_name=" + template.URLQueryEscaper(strings.TrimPrefix(v.text("branch"), "/"))
	}
	return v.redirect(to)
}
