package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) editFilesPages() {
	w.projectPage("GET edit_files/*", signedIn, w.editFilesForm)
	w.projectPage("POST edit_files/*", files, w.editFiles)
	w.projectPage("GET upload/*", signedIn, w.uploadFilesForm)
	w.projectPage("POST upload/*", files, w.uploadFiles)
	w.projectPage("GET new_dir/*", signedIn, w.newDirForm)
	w.projectPage("POST new_dir/*", signedIn, w.newDir)
}

const (
	maxEditFiles   = 50 // in one commit
	maxUploadFiles = 100
)

// fileChange is the change to one file in the form that commits several.
type fileChange struct {
	N       int
	Kind    string // create, update or delete
	From    string // path before the change; empty for a new file
	Path    string
	Content string
	CRLF    bool
	Last    string // the last commit of the file when it was opened
	Open    bool
}

// Text is the content as the browser gets it.
func (c fileChange) Text() string { return c.Content }

// editFilesPage commits changes to several files at once. All of it is in the
// form, so that nothing is lost when the server refuses the commit.
type editFilesPage struct {
	editPage
	Changes []fileChange
	Add     string
}

func (editFilesPage) view() string    { return "project/edit_files" }
func (p editFilesPage) title() string { return "Edit files · " + p.Project.FullName() }

func (w *Web) editFilesForm(v *visit, ref project.Ref) error {
	e, err := w.editPage(v, ref, "edit_files")
	if err != nil {
		return err
	}
	p := editFilesPage{editPage: e}
	p.Form = p.proposed(v, "", "")
	if p.Path != "" {
		if err := w.openFile(v, &p, p.Path); err != nil {
			if err := p.Form.refused(err); err != nil {
				return err
			}
		}
	}
	p.Form.only()
	return v.showForm(p, p.Form)
}

// openFile adds a file to the form: an existing one with its content, or a new
// one.
func (w *Web) openFile(v *visit, p *editFilesPage, name string) error {
	name = strings.Trim(name, "/")
	switch {
	case name == "":
		return errs.Invalid("Enter the path of a file.")
	case len(p.Changes) >= maxEditFiles:
		return errs.Invalid("A commit in the browser has at most %d files.", maxEditFiles)
	case slices.ContainsFunc(p.Changes, func(c fileChange) bool { return c.Path == name || c.From == name }):
		return errs.Invalid("%s is already open.", name)
	}
	c := fileChange{N: len(p.Changes), Kind: "create", Path: name, Open: true}
	at := *p
	at.Path = name
	f, text, err := w.editable(v, at.editPage)
	switch {
	case err == nil:
		c.Kind, c.From, c.Content, c.Last = "update", name, text, string(f.LastCommitID)
		c.CRLF = lines("\n", text) != "\n"
	case !errs.Is(err, errs.KindNotFound):
		return err
	}
	p.Changes = append(p.Changes, c)
	return nil
}

// readChanges reads the changes of the form.
func (v *visit) readChanges() []fileChange {
	form := v.r.PostForm
	var list []fileChange
	for n := range maxEditFiles {
		i := "." + strconv.Itoa(n)
		if !form.Has("kind" + i) {
			break
		}
		c := fileChange{
			N: len(list), Kind: form.Get("kind" + i), From: form.Get("from" + i), Path: strings.Trim(strings.TrimSpace(form.Get("path"+i)), "/"),
			Content: lines(form.Get("content"+i), ""), CRLF: form.Get("crlf"+i) != "", Last: form.Get("last" + i), Open: true,
		}
		if c.Kind != "update" && c.Kind != "delete" {
			c.Kind, c.From = "create", ""
		}
		list = append(list, c)
	}
	return list
}

// actions are the changes as the repository takes them. Files that were only
// opened are left out.
func (w *Web) actions(v *visit, p editFilesPage) ([]repo.FileAction, error) {
	var list []repo.FileAction
	for _, c := range p.Changes {
		content := c.Content
		if c.CRLF {
			content = strings.ReplaceAll(content, "\n", "\r\n")
		}
		a := repo.FileAction{Kind: git.Create, Path: c.Path, Content: []byte(content), HasContent: true, LastCommit: c.Last}
		switch {
		case c.Kind == "delete":
			a = repo.FileAction{Kind: git.Delete, Path: c.From, LastCommit: c.Last}
		case c.Kind == "update" && c.Path != c.From:
			a.Kind, a.From = git.Move, c.From
		case c.Kind == "update":
			at := p.editPage
			at.Path = c.From
			_, now, err := w.editable(v, at)
			if err != nil && !errs.Is(err, errs.KindNotFound) {
				return nil, err
			}
			if err == nil && now == content {
				continue
			}
			a.Kind = git.Modify
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, errs.Invalid("There are no changes to commit.")
	}
	return list, nil
}

func (w *Web) editFiles(v *visit, ref project.Ref) error {
	e, err := w.editPage(v, ref, "edit_files")
	if err != nil {
		return err
	}
	p := editFilesPage{editPage: e, Changes: v.readChanges()}
	p.Form = v.sent()
	again := func(err error) error {
		if err := p.refusedCommit(err); err != nil {
			return err
		}
		return v.again(p)
	}
	act, arg, _ := strings.Cut(v.text("do"), " ")
	n, _ := strconv.Atoi(arg)
	switch {
	case act == "add":
		for i := range p.Changes {
			p.Changes[i].Open = false
		}
		p.Add = v.text("add")
		if err := w.openFile(v, &p, p.Add); err != nil {
			return again(err)
		}
		p.Add = ""
		return v.show(p)
	case act == "remove" && n >= 0 && n < len(p.Changes):
		p.Changes = slices.Delete(p.Changes, n, n+1)
		for i := range p.Changes {
			p.Changes[i].N = i
		}
		return v.show(p)
	case act == "delete" && n >= 0 && n < len(p.Changes) && p.Changes[n].From != "":
		p.Changes[n].Kind = map[bool]string{true: "update", false: "delete"}[p.Changes[n].Kind == "delete"]
		return v.show(p)
	}
	actions, err := w.actions(v, p)
	if err != nil {
		return again(err)
	}
	message := "Update " + plural(len(actions), "file")
	if len(actions) == 1 {
		message = "Update " + path.Base(actions[0].Path)
	}
	to, err := w.commitActions(v, p.editPage, message, pathTo(p.Project.FullPath, "-", "tree"), actions...)
	if err != nil {
		return again(err)
	}
	return v.redirect(to)
}

// refusedCommit shows in the form why a commit was refused. Other errors are
// returned.
func (p *editPage) refusedCommit(err error) error {
	if errs.Is(err, errs.KindForbidden) { // a branch that is protected, or a rule for pushes
		e, _ := errors.AsType[*errs.Error](err)
		p.Form.Error = textOr(e, "You are not allowed to push to this branch. Choose another target branch.")
		return nil
	}
	if err := p.Form.refused(err); err != nil {
		return err
	}
	p.Form.only("path", "message", "branch")
	return nil
}

// commitActions commits changes to the branch of the form. It returns the URL of the
// next page: the branch, or the form of a merge request.
func (w *Web) commitActions(v *visit, p editPage, message, below string, actions ...repo.FileAction) (string, error) {
	n := repo.NewCommit{Branch: v.text("branch"), Message: v.text("message"), Actions: actions}
	if n.Message == "" {
		n.Message = message
	}
	if n.Branch == "" {
		n.Branch = p.Ref
	}
	if n.Branch != p.Ref || !p.Branch {
		n.StartSHA = string(p.At)
	}
	_, made, err := w.Repos.CreateCommit(v, v.actor, p.in(), n, false)
	if err != nil {
		return "", err
	}
	v.setFlash("ok", "Committed to "+n.Branch+" as "+shortID(string(made.ID))+".")
	if n.Branch != p.Ref && p.Branch && v.ticked("propose") {
		return pathTo(p.Project.FullPath, "-", "merge_requests", "new") + "?" +
			url.Values{"merge_request[source_branch]": {n.Branch}, "merge_request[target_branch]": {p.Ref}}.Encode(), nil
	}
	return below + pathTo(n.Branch), nil
}

// uploadFilesForm shows the form to upload files to a directory.
func (w *Web) uploadFilesForm(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "upload")
	if err != nil {
		return err
	}
	p.Form = p.proposed(v, "", "")
	return v.show(p)
}

func (w *Web) uploadFiles(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "upload")
	if err != nil {
		return err
	}
	p.Form = v.sent()
	actions, err := w.uploadActions(v, p)
	var to string
	if err == nil {
		message := "Upload " + plural(len(actions), "file")
		if len(actions) == 1 {
			message = "Upload " + path.Base(actions[0].Path)
		}
		to, err = w.commitActions(v, p, message, pathTo(p.Project.FullPath, "-", "tree"), actions...)
	}
	if err != nil {
		if err := p.refusedCommit(err); err != nil {
			return err
		}
		return v.again(p)
	}
	if !strings.Contains(to, "?") {
		to += pathTo(p.Path)
	}
	return v.redirect(to)
}

// uploadActions reads the files of the form. A file that exists is replaced only
// if the form says so.
func (w *Web) uploadActions(v *visit, p editPage) ([]repo.FileAction, error) {
	var uploads []*multipart.FileHeader
	if v.r.MultipartForm != nil {
		uploads = v.r.MultipartForm.File["files"]
	}
	if len(uploads) == 0 {
		return nil, errs.Invalid("Choose a file to upload.")
	}
	if len(uploads) > maxUploadFiles {
		return nil, errs.Invalid("A commit in the browser has at most %d files.", maxUploadFiles)
	}
	var list []repo.FileAction
	for _, u := range uploads {
		content, err := readUpload(u)
		if err != nil {
			return nil, err
		}
		a := repo.FileAction{Kind: git.Create, Path: path.Join(p.Path, path.Base(strings.ReplaceAll(u.Filename, `\`, "/"))), Content: content, HasContent: true}
		if v.ticked("replace") && p.At != "" {
			switch _, err := w.Repos.PathType(v, v.actor, p.in(), string(p.At), a.Path); {
			case err == nil:
				a.Kind = git.Modify
			case !errs.Is(err, errs.KindNotFound):
				return nil, err
			}
		}
		list = append(list, a)
	}
	return list, nil
}

func readUpload(u *multipart.FileHeader) ([]byte, error) {
	f, err := u.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// newDirForm shows the form to create a directory.
func (w *Web) newDirForm(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "new_dir")
	if err != nil {
		return err
	}
	p.Form = p.proposed(v, "Add new directory", "")
	p.Form.Values.Set("path", "")
	return v.show(p)
}

// newDir creates a directory. Git has no empty directories, so it gets a file
// .gitkeep.
func (w *Web) newDir(v *visit, ref project.Ref) error {
	p, err := w.editPage(v, ref, "new_dir")
	if err != nil {
		return err
	}
	p.Form = v.sent()
	name := strings.Trim(v.text("path"), "/")
	if name == "" {
		p.Form.wrong("path", "can't be blank")
		return v.again(p)
	}
	dir := strings.Trim(p.Path+"/"+name, "/")
	if p.At != "" {
		_, err = w.Repos.PathType(v, v.actor, p.in(), string(p.At), dir)
		if err == nil {
			p.Form.wrong("path", "already exists")
			return v.again(p)
		}
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
	}
	to, err := w.commitActions(v, p, "Add new directory", pathTo(p.Project.FullPath, "-", "tree"),
		repo.FileAction{Kind: git.Create, Path: dir + "/.gitkeep", HasContent: true})
	if err != nil {
		if err := p.refusedCommit(err); err != nil {
			return err
		}
		return v.again(p)
	}
	if !strings.Contains(to, "?") {
		to += pathTo(dir)
	}
	return v.redirect(to)
}
