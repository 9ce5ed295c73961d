package web

import (
	"path"
	"strings"
	"unicode/utf8"

	"svc/internal/errs"
	"svc/internal/filetemplate"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) editPages() {
	w.projectPage("GET edit/*", signedIn, w.editForm)
	w.projectPage("POST edit/*", signedIn, w.edit)
	w.projectPage("GET new/*", signedIn, w.newFileForm)
	w.projectPage("POST new/*", signedIn, w.newFile)
	w.projectPage("GET delete/*", signedIn, w.deleteForm)
	w.projectPage("POST delete/*", signedIn, w.deleteFile)
	w.editFilesPages()
}

// editPage is the form of a change to one file.
type editPage struct {
	codeHead
	Action  string // edit, new or delete
	Form    form
	Branch  bool // Ref is a branch
	MayHere bool // and open to the visitor
	Last    git.OID
	Was     git.OID // the last commit when the form was shown first
	Newer   *string // the content of the file, if another commit changed it since

	Templates []templateGroup // to start a new file from
	Template  string          // the template that filled the form
}

func (editPage) view() string { return "project/edit" }

func (p editPage) title() string {
	does := words(p.Action)
	switch p.Action {
	case "upload":
		does = "Upload file to"
	case "new_dir":
		does = "New directory in"
	}
	return does + " " + p.name() + " · " + p.Project.FullName()
}

// Verb returns the label of the button.
func (p editPage) Verb() string {
	return map[string]string{
		"edit": "Commit changes", "new": "Commit file", "delete": "Delete file", "upload": "Upload file", "new_dir": "Create directory", "edit_files": "Commit changes",
	}[p.Action]
}

// editPage determines the branches that the change can go to. Users who cannot
// push at all are refused before they write anything.
func (w *Web) editPage(v *visit, ref project.Ref, action string) (editPage, error) {
	h, err := w.head(v, ref, "files")
	if err != nil {
		return editPage{}, err
	}
	p := editPage{codeHead: codeHead{head: h}, Action: action}
	if h.Project.DefaultBranch == "" && (action == "new" || action == "upload") && h.Code {
		// The first file of an empty repository creates its branch.
		p.Ref, p.Branch, p.MayHere = strings.Trim(v.rest(), "/"), true, true
	} else if p.codeHead, err = w.codeHead(v, ref, "files"); err != nil {
		return p, err
	}
	if !p.MayPush {
		return p, errs.Forbidden("You don't have permission to push to this project. Fork it to propose changes.")
	}
	if p.At == "" {
		return p, nil
	}
	_, b, err := w.Repos.Branch(v, v.actor, p.in(), p.Ref)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return p, err
	}
	p.Branch = err == nil
	p.MayHere = p.Branch && b.CanPush
	return p, nil
}

// proposed is the form with its initial values.
func (p editPage) proposed(v *visit, message, content string) form {
	branch := p.Ref
	if !p.MayHere {
		branch = v.session.User.Username + "-patch-1"
	}
	return filled("message", message, "branch", branch, "content", content, "last_commit_id", string(p.Last), "path", p.Path, "propose", "1")
}

func (w *Web) editForm(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "edit")
	if err != nil {
		return err
	}
	f, text, err := w.editable(v, p)
	if err != nil {
		return err
	}
	p.Last = f.LastCommitID
	p.Form = p.proposed(v, "Update "+path.Base(p.Path), text)
	return v.show(p)
}

// editable reads a file that can be edited in a form. Invalid for other files.
func (w *Web) editable(v *visit, p editPage) (*repo.File, string, error) {
	f, err := w.Repos.File(v, v.actor, p.in(), p.Path, string(p.At))
	if err != nil {
		return nil, "", err
	}
	if f.Size > maxBlob {
		return nil, "", errs.Invalid("The file is too large to edit in the browser.")
	}
	text, err := readText(v, f, maxBlob)
	if err != nil {
		return nil, "", err
	}
	if int64(len(text)) != f.Size || strings.ContainsRune(text, utf8.RuneError) {
		return nil, "", errs.Invalid("The file is not UTF-8 text and cannot be edited in the browser.")
	}
	return f, text, nil
}

// lines converts the line endings of a submitted text to those of the file:
// browsers always send CRLF.
func lines(text, was string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if strings.Count(was, "\r\n")*2 > strings.Count(was, "\n") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func (w *Web) edit(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "edit")
	if err != nil {
		return err
	}
	_, was, err := w.editable(v, p)
	if err != nil {
		return err
	}
	action := repo.FileAction{Kind: git.Modify, Path: p.Path, Content: []byte(lines(v.sent().Get("content"), was)), HasContent: true, LastCommit: v.text("last_commit_id")}
	if to := strings.Trim(v.text("path"), "/"); to != "" && to != p.Path {
		action.Kind, action.From, action.Path = git.Move, p.Path, to
	}
	return w.commitFile(v, p, action, "Update "+path.Base(p.Path))
}

func (w *Web) newFileForm(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "new")
	if err != nil {
		return err
	}
	p.Form = p.proposed(v, "", "")
	if p.Path != "" {
		p.Form.Values.Set("path", p.Path+"/")
	}
	if name := v.param("file_name"); name != "" && len(name) <= maxFileName {
		p.Form.Values.Set("path", strings.TrimPrefix(path.Join(p.Path, name), "/"))
	}
	if p.Templates, err = w.fileTemplates(v); err != nil {
		return err
	}
	if p.Template = v.param("template"); p.Template != "" {
		if err := w.applyTemplate(v, &p); err != nil {
			return err
		}
	}
	return v.show(p)
}

const maxFileName = 255

// templateGroup is the templates of one kind for a new file.
type templateGroup struct {
	Label   string
	Options []option
}

// fileTemplates lists the templates for a new file: "gitignores/Go".
func (w *Web) fileTemplates(v *visit) ([]templateGroup, error) {
	groups := []templateGroup{{Label: ".gitignore"}, {Label: "LICENSE"}, {Label: "Dockerfile"}, {Label: ".gitlab-ci.yml"}}
	for _, key := range filetemplate.Keys(filetemplate.Gitignores) {
		groups[0].Options = append(groups[0].Options, option{"gitignores/" + key, key})
	}
	for _, l := range filetemplate.LicenseNames() {
		groups[1].Options = append(groups[1].Options, option{"licenses/" + l.Key, l.Name})
	}
	for _, key := range filetemplate.Keys(filetemplate.Dockerfiles) {
		groups[2].Options = append(groups[2].Options, option{"dockerfiles/" + key, key})
	}
	found, err := w.CI.Templates(v, allOf())
	for _, t := range found.Items {
		groups[3].Options = append(groups[3].Options, option{"gitlab_ci_ymls/" + t.Key, t.Key})
	}
	return groups, err
}

// applyTemplate fills the form with a template. NotFound.
func (w *Web) applyTemplate(v *visit, p *editPage) error {
	kind, key, _ := strings.Cut(p.Template, "/")
	name, content := "", ""
	switch kind {
	case "licenses":
		l, err := filetemplate.FindLicense(key)
		if err != nil {
			return err
		}
		name, content = "LICENSE", filetemplate.Fill(l.Content, w.Now().Year(), v.actor.Name, p.Project.Name)
	case "gitignores", "dockerfiles":
		t, err := filetemplate.Get(filetemplate.Kind(kind), key)
		if err != nil {
			return err
		}
		name, content = map[string]string{"gitignores": ".gitignore", "dockerfiles": "Dockerfile"}[kind], t.Content
	case "gitlab_ci_ymls":
		t, err := w.CI.Template(v, key)
		if err != nil {
			return err
		}
		name, content = ".gitlab-ci.yml", t.Content
	default:
		return errs.NotFound("Template")
	}
	p.Form.Values.Set("path", strings.TrimPrefix(path.Join(p.Path, name), "/"))
	p.Form.Values.Set("content", content)
	return nil
}

func (w *Web) newFile(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "new")
	if err != nil {
		return err
	}
	at := strings.Trim(v.text("path"), "/")
	return w.commitFile(v, p, repo.FileAction{Kind: git.Create, Path: at, Content: []byte(lines(v.sent().Get("content"), "")), HasContent: true}, "Add "+path.Base(at))
}

func (w *Web) deleteForm(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "delete")
	if err != nil {
		return err
	}
	f, err := w.Repos.File(v, v.actor, p.in(), p.Path, string(p.At))
	if err != nil {
		return err
	}
	p.Last = f.LastCommitID
	p.Form = p.proposed(v, "Delete "+f.Name, "")
	return v.show(p)
}

func (w *Web) deleteFile(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "delete")
	if err != nil {
		return err
	}
	return w.commitFile(v, p, repo.FileAction{Kind: git.Delete, Path: p.Path, LastCommit: v.text("last_commit_id")}, "Delete "+path.Base(p.Path))
}

// commitFile commits the change, or shows the form again with the submitted
// values.
func (w *Web) commitFile(v *visit, p editPage, action repo.FileAction, message string) error {
	below := pathTo(p.Project.FullPath, "-", "blob")
	if action.Kind == git.Delete {
		below = pathTo(p.Project.FullPath, "-", "tree")
	}
	to, err := w.commitActions(v, p, message, below, action)
	if err == nil {
		if action.Kind != git.Delete && !strings.Contains(to, "?") {
			to += pathTo(action.Path)
		}
		return v.redirect(to)
	}
	p.Form, p.Last = v.sent(), git.OID(v.text("last_commit_id"))
	if err := p.refusedCommit(err); err != nil {
		return err
	}
	if p.Action == "edit" {
		if err := w.showNewer(v, &p); err != nil {
			return err
		}
	}
	return v.again(p)
}

// showNewer adds the present content of a file that another commit changed since
// the form was shown. Sending the form again overwrites it.
func (w *Web) showNewer(v *visit, p *editPage) error {
	f, text, err := w.editable(v, *p)
	if errs.IsRefusal(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Last != "" && f.LastCommitID != p.Last {
		p.Newer, p.Was, p.Last = &text, p.Last, f.LastCommitID
	}
	return nil
}
