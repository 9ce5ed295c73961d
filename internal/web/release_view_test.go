package web

import (
	"time"

	"svc/internal/catalog"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/user"
)

// releaseContents are the pages of releases.
func releaseContents() []content {
	now := time.Unix(1e9, 0)
	h := head{Project: &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", DefaultBranch: "main"}, Tab: "releases", Releases: true}
	goal := &plan.Milestone{ID: 1, IID: 1, ProjectID: new(int64), Title: "1.0", Path: "g/p"}
	r := &release.Release{
		Tag: "a/b", Name: "First", SHA: "0123456789", ReleasedAt: now, Code: true, Commit: &git.Commit{}, Author: &user.User{Username: "eve", Name: "Eve"},
	}
	full := releaseView{
		Release: r, Text: "<p>x</p>", Page: "/x", Upcoming: true, Change: true, Goals: []goalRow{{Milestone: goal, Page: "/m"}}, Count: 2,
		Sources: []releaseSource{{"zip", "/z"}}, Groups: []linkGroup{{"Other", []releaseLink{{To: "https://x", External: true}, {To: "/x"}}}},
	}
	bare := releaseView{Release: &release.Release{ReleasedAt: now}, Historical: true}
	return []content{
		releasesPage{head: h, List: []releaseView{full, bare}, Total: 2, Adds: true}, releasesPage{head: h, Oldest: true}, releasesPage{head: h, Adds: true},
		releasePage{head: h, Release: full},
		releaseForm{head: h, Form: form{Errors: map[string][]string{"tag_name": {"x"}, "name": {"x"}}, Error: "no"}, Links: []linkField{{N: 1, Type: "image"}}, Goals: []choice{{Label: "m"}}, Tags: []string{"v1"}, Look: "x"},
		releaseForm{head: h, Tag: "a/b"},
		catalogPage{}, catalogPage{Filtered: true, Search: "x"},
		searchPage{}, searchPage{Search: "x", Place: searchPlace{"project_id", 1, "P", "g/p"}, Error: "no"},
		searchPage{Search: "x", Scope: "blobs", Hint: "h", Tabs: []searchTab{{"Code", "/x", "1", true}, {Label: "Wiki"}}, Pager: pager{After: "?page=2"}, Rows: []searchRow{
			{To: "/x", Icon: "file", Title: []textPart{{"x", true}, {"y", false}}, Lines: []hitLine{{1, []textPart{{"x", true}}}}, Badge: "b", Ref: "r", By: "e", At: &now, Text: []textPart{{Text: "t"}}}}},
		catalogPage{Resources: []*catalog.Resource{{Project: h.Project, ReleasedAt: now, Latest: &catalog.Version{Name: "1.0.0", Components: []catalog.Component{{Name: "c"}}}}}},
		catalogResourcePage{Project: h.Project, Version: &catalog.Version{Name: "1.0.0"}, Versions: []*catalog.Version{{Name: "1.0.0"}},
			Components: []componentView{{catalog.Component{Name: "c", Inputs: []catalog.Input{{Name: "i", Required: true}, {Name: "j", Default: "d"}}}, "include"}}},
	}
}
