package web

import (
	"time"

	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/snippet"
	"svc/internal/user"
	"svc/internal/wiki"
)

// snippetContents are the pages of snippets and wikis, with data.
func snippetContents() []content {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	p := &project.Project{ID: 1, Name: "P", Path: "p", FullPath: "g/p", Visibility: project.Public, Namespace: project.Namespace{FullPath: "g", FullName: "G"}}
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G", Visibility: project.Private}
	h := head{Project: p, Parents: crumbs("g", "G"), Tab: "snippets", SignedIn: true, Wiki: true, Snippets: true}
	s := &snippet.Snippet{ID: 7, Title: "t", Visibility: project.Internal, Files: []string{"a", "b", "c", "d"}, Author: u, CreatedAt: now, UpdatedAt: now.Add(time.Hour), In: p}
	bad := form{Errors: map[string][]string{"title": {"is wrong"}, "content": {"is wrong"}, "visibility": {"is wrong"}}, Error: "no"}
	of := wikiHead{P: &h, Wiki: &wiki.Wiki{Project: p}, Base: "/g/p/-/wikis", MayWrite: true, Clone: cloneURLs{"http://example.org/g/p.wiki.git", "git@example.org:g/p.wiki.git"}}
	ours := wikiHead{G: &groupHead{Group: g, Tab: "wiki", Wiki: true, SignedIn: true}, Wiki: &wiki.Wiki{Group: g}, Base: "/groups/g/-/wikis"}
	page := &wiki.Page{Slug: "docs/a", Title: "A", Format: wiki.Org, Path: "docs/a.org"}
	commit := &git.Commit{ID: "0123456789", Title: "t", Message: "t\n\nb", Author: git.Signature{Name: "Ada", When: now}, Committer: git.Signature{When: now}}
	return []content{
		snippetsPage{head: h, MayAdd: true, Rows: []*snippet.Snippet{s}}, snippetsPage{head: h}, snippetsPage{Own: true, MayAdd: true},
		snippetsPage{Rows: []*snippet.Snippet{s, {ID: 8, Title: "u", Files: []string{"x"}}}, Pager: pager{After: "?page=2"}}, snippetsPage{Search: "x"},
		snippetView{head: h, Snippet: s, Text: "<p>x</p>", MayEdit: true, Clone: cloneURLs{"c", "s"}, Base: "/g/p/-/snippets/7", Comments: &discussions{At: "/g/p/-/snippets/7", May: true}, Files: []snippetFile{{Path: "a", ID: "file-0", Size: 1, Lines: 1, Code: "x"}, {Path: "b.png", Image: true, Size: 1}, {Why: "w", Size: 1}, {}}},
		snippetView{Snippet: &snippet.Snippet{Title: "t", CreatedAt: now, UpdatedAt: now}},
		snippetForm{head: h, Form: bad, Rows: []snippetRow{{}}, To: "/-/snippets"}, snippetForm{Snippet: s, Form: bad, Rows: []snippetRow{{"a", "a", "x"}}, Kept: []string{"b.png"}},
		wikiView{wikiHead: of, Page: page, Slug: "docs/a", At: "/g/p/-/wikis/docs/a", Text: "<p>x</p>", Side: "<p>y</p>"}, wikiView{wikiHead: ours, Slug: "home"},
		wikiView{wikiHead: of, Slug: "home"}, wikiView{wikiHead: of, Slug: "none", Pages: []*wiki.Page{page}}, wikiView{wikiHead: of, Page: page, Slug: "docs/a", Version: "0123"},
		wikiForm{wikiHead: of, Form: bad}, wikiForm{wikiHead: ours, Page: page, Form: bad, Preview: "<p>x</p>"},
		wikiListPage{wikiHead: of, Pages: []*wiki.Page{page}}, wikiListPage{wikiHead: of}, wikiListPage{wikiHead: ours, Page: page, Versions: []*git.Commit{commit}},
		wikiDiffPage{wikiHead: of, Commit: byline{Commit: commit}, Diff: diffView{Files: []diffFile{{Body: "<tr></tr>"}}}},
	}
}
