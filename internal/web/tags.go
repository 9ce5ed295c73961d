package web

import (
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
)

func (w *Web) tagPages() {
	w.projectPage("GET tags", anyone, w.tags)
	w.projectPage("GET tags/*", anyone, w.tag)
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
	One    bool // the page of one tag
}

// tagRow is a tag in the list.
type tagRow struct {
	repo.Tag
	Signed    *repo.Signature
	Release   *release.Summary
	Publishes bool // the visitor may create a release for it
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
	p.Total, p.Pager = page.Total, v.pager(page.More)
	p.Tags, err = w.tagRows(v, h, page.Items)
	return p, err
}

func (w *Web) tagRows(v *visit, h head, list []repo.Tag) ([]tagRow, error) {
	signed, err := w.Repos.TagSignatures(v, v.actor, h.in(), list)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	of, err := w.Releases.OfTags(v, v.actor, h.Project, names)
	if err != nil {
		return nil, err
	}
	publishes := w.Releases.Can(v.actor, h.Project).Create
	var rows []tagRow
	for _, t := range list {
		row := tagRow{Tag: t, Signed: signed[t.Name], Publishes: publishes}
		if r, ok := of[t.Name]; ok {
			row.Release, row.Publishes = &r, false
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// tag shows the page of a tag.
func (w *Web) tag(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "tags")
	if err != nil {
		return err
	}
	_, t, err := w.Repos.Tag(v, v.actor, h.in(), v.rest())
	if err != nil {
		return err
	}
	p := tagsPage{head: h, Search: t.Name, Total: 1, One: true}
	if p.Tags, err = w.tagRows(v, h, []repo.Tag{*t}); err != nil {
		return err
	}
	return v.show(p)
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
