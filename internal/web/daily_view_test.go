package web

import (
	"net/url"

	"svc/internal/ci"
	"svc/internal/ci/config"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// dailyContents are the pages of forks, the file finder and the editor of several
// files.
func dailyContents() []content {
	p := &project.Project{ID: 1, Name: "P", Path: "p", FullPath: "g/p", Visibility: project.Public, DefaultBranch: "main", Namespace: project.Namespace{FullPath: "g", FullName: "G"}}
	h := head{Project: p, Parents: crumbs("g", "G"), SignedIn: true, MayFork: true, Code: true, MayPush: true, Proposes: true}
	at := codeHead{head: h, Ref: "main", Path: "a/b", Steps: steps("a/b"), At: "0123456789"}
	bad := form{Errors: map[string][]string{"name": {"is wrong"}, "namespace_id": {"is wrong"}, "visibility": {"is wrong"}, "path": {"x"}}, Error: "no"}
	newer := "text"
	return []content{
		forksPage{head: h, List: []*project.Project{p}}, forksPage{head: h, Filtered: true}, forksPage{head: h},
		newForkPage{head: h, Form: bad, Visibilities: []project.Visibility{project.Private, project.Internal, project.Public}, Places: []*project.Namespace{{ID: 1, FullPath: "g"}}},
		findPage{codeHead: at, Found: &repo.FileMatches{Items: []repo.FileMatch{{Path: "a/b.go", At: []int{0, 2}}}, Total: 1, Cut: true}}, findPage{codeHead: at, Found: &repo.FileMatches{}},
		editPage{codeHead: at, Action: "upload", Form: bad}, editPage{codeHead: at, Action: "new_dir", Branch: true}, editPage{codeHead: at, Action: "edit", Branch: true, Was: git.OID("1"), Newer: &newer},
		editFilesPage{editPage: editPage{codeHead: at, Action: "edit_files", Branch: true, MayHere: true}, Changes: []fileChange{{Kind: "create", Path: "x"}, {N: 1, Kind: "delete", From: "y", Path: "y", CRLF: true}, {N: 2, Kind: "update", From: "y", Path: "z"}}},
		editFilesPage{editPage: editPage{codeHead: at, Action: "edit_files", Form: bad}},
		treePage{codeHead: codeHead{head: h}, Overview: true, Fork: &forkView{}},
		ciEditorPage{ciHead: ciHead{head: h, Base: "/g/p/-", May: true}, File: "x.yml", Edit: editPage{codeHead: at, Form: bad}, Merged: "<b>x</b>", DryRun: true,
			Result: &config.LintResult{Jobs: []config.LintJob{{Name: "a", Stage: "test", AllowFailure: true, Needs: []config.Need{{Job: "b"}}}}, Warnings: config.Errors{{Message: "w"}}}, Stages: stagesOf([]config.LintJob{{Name: "a", Stage: "test"}})},
		ciEditorPage{ciHead: ciHead{head: h, Base: "/g/p/-"}, Templates: []ci.Template{{Key: "Go"}}, Result: &config.LintResult{Errors: config.Errors{{Message: "w"}}}},
		gpgKeysPage{Form: bad, Keys: []gpgKeyRow{{Revoked: true, Subkeys: []string{"a", "b"}, Emails: []user.GPGEmail{{Verified: true}, {}}}}}, gpgKeysPage{},
		commitPage{head: h, Commit: byline{Commit: &git.Commit{ID: "0123456789"}}, Signature: &repo.Signature{Kind: "PGP", Status: repo.RevokedKey, GPG: &repo.GPGSignature{Primary: "x", User: &user.User{Username: "ada"}}}},
		commitPage{head: h, Commit: byline{Commit: &git.Commit{ID: "0123456789"}}, Signature: &repo.Signature{Kind: "X509", Status: repo.Unverified}},
		partPage{planHead: planHead{P: &h, Base: "/g/p/-/"}, Which: "weight"},
		issuesPage{issuableList: issuableList{planHead: planHead{P: &h, Base: "/g/p/-/", Plans: true}, Query: issuableQuery{Search: "x", Labels: []string{"a", "b"}, values: url.Values{"weight": {"1"}, "author_username": {"ada"}}}, Bulk: &bulkForm{Labels: []choice{{Value: "a", Label: "a"}}}}},
		treePage{codeHead: at, Overview: true, Fork: &forkView{Source: p, Proposes: true, State: &repo.Upstream{CanSync: true, Distance: repo.Distance{Ahead: 1, Behind: 2}}}},
	}
}
