package web

import (
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) tagPages() {
	w.projectPage("GET tags", anyone, w.tags)
	w.projectPage("POST tags", signedIn, w.createTag)
	w.projectPage("POST tags/delete", signedIn, w.deleteTag)
}

type tagsPage struct {
	head
	Tags   []tagRow
	Total  int
	Search string
	Pager  pager
	Form   form
	MayAdd bool
}

// tagRow is a tag in the list.
type tagRow struct {
	repo.Tag
	Signed *repo.Signature
}

func (tagsPage) view() string    { return "project/tags" }
func (p tagsPage) title() string { return "Tags · " + p.Project.FullName() }

func (w *Web) tags(v *visit, ref project.Ref) error {
	p, err := w.tagList(v, ref)
	if err != nil {
		return err
	}
	p.Form = filled("ref", p.Project.DefaultBranch)
	return v.show(p)
}

func (w *Web) tagList(v *visit, ref project.Ref) (tagsPage, error) {
	h, err := w.head(v, ref, "tags")
	if err != nil {
		return tagsPage{}, err
	}
	p := tagsPage{head: h, Search: v.param("search"), MayAdd: h.MayPush && h.Project.DefaultBranch != ""}
	f := repo.RefFilter{Search: p.Search, Order: repo.ByUpdated, Desc: true}
	_, page, err := w.Repos.Tags(v, v.actor, h.in(), f, v.paging())
	if err != nil {
		return p, err
	}
	signed, err := w.Repos.TagSignatures(v, v.actor, h.in(), page.Items)
	if err != nil {
		return p, err
	}
	for _, t := range page.Items {
		p.Tags = append(p.Tags, tagRow{Tag: t, Signed: signed[t.Name]})
	}
	p.Total, p.Pager = page.Total, v.pager(page.More)
	return p, nil
}

func (w *Web) createTag(v *visit, ref project.Ref) error {
	f := v.sent()
	p, t, err := w.Repos.CreateTag(v, v.actor, ref, repo.NewTag{Name: v.text("name"), From: v.text("ref"), Message: v.text("message")})
	if err == nil {
		return v.done("The tag "+t.Name+" was created.", "/"+p.FullPath+"/-/tags")
	}
	if err := f.refused(err); err != nil {
		return err
	}
	page, err := w.tagList(v, ref)
	if err != nil {
		return err
	}
	page.Form = f
	return v.again(page)
}

func (w *Web) deleteTag(v *visit, ref project.Ref) error {
	name := v.sent().Get("name")
	if err := w.Repos.DeleteTag(v, v.actor, ref, name); err != nil {
		return err
	}
	return v.done("The tag "+name+" was deleted.", "/"+string(ref)+"/-/tags")
}
