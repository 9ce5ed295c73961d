package compat

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func title(c *gitlab.Commit) string { return c.Title }

func goCommits(t *testing.T, h *hosting) {
	p := h.project(t, "history")
	start := h.head(t, p, "main")
	made := h.commit(t, p, &gitlab.CreateCommitOptions{
		Branch: new("work"), StartBranch: new("main"), CommitMessage: new("change all\n\nChangelog: added\n"), AuthorName: new("Charles"), AuthorEmail: new("charles@example.org"),
		Actions: []*gitlab.CommitActionOptions{
			{Action: new(gitlab.FileCreate), FilePath: new("src/a.txt"), Content: new("one\ntwo\n")},
			{Action: new(gitlab.FileCreate), FilePath: new("src/bin"), Content: new(base64.StdEncoding.EncodeToString([]byte{0, 1, 2, 255})), Encoding: new("base64")},
			{Action: new(gitlab.FileUpdate), FilePath: new("README.md"), Content: new("# changed\n")},
		},
	})
	same(t, "a new commit", []any{made.Title, made.Message, made.AuthorName, made.AuthorEmail, made.CommitterName, made.ParentIDs, made.ShortID},
		[]any{"change all", "change all\n\nChangelog: added\n", "Charles", "charles@example.org", "Name of ada", []string{start}, made.ID[:8]})
	same(t, "counts", *made.Stats, gitlab.CommitStats{Additions: 3, Deletions: 2, Total: 5})
	second := h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("work"), CommitMessage: new("move about"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileMove), FilePath: new("lib/a.txt"), PreviousPath: new("src/a.txt")},
		{Action: new(gitlab.FileDelete), FilePath: new("README.md")},
		{Action: new(gitlab.FileChmod), FilePath: new("src/bin"), ExecuteFilemode: new(true)},
	}})
	diffs := ask(h.ada.Commits.GetCommitDiff(p.ID, second.ID, nil)).ok(t)
	type change struct {
		Old, New, AMode, BMode string
		Renamed, Deleted       bool
	}
	same(t, "changes", mapped(diffs, func(d *gitlab.Diff) change {
		return change{d.OldPath, d.NewPath, d.AMode, d.BMode, d.RenamedFile, d.DeletedFile}
	}), []change{
		{"README.md", "README.md", "100644", "0", false, true},
		{"src/a.txt", "lib/a.txt", "100644", "100644", true, false},
		{"src/bin", "src/bin", "100644", "100755", false, false},
	})
	same(t, "text of a change", diffs[0].Diff, "@@ -1 +0,0 @@\n-# changed\n")
	ask(h.ada.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{Branch: new("work"), CommitMessage: new("again"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new("lib/a.txt"), Content: new("")},
	}})).refused(t, http.StatusBadRequest, "{message: A file with this name already exists}")

	read := ask(h.ada.Commits.GetCommit(p.ID, made.ShortID, &gitlab.GetCommitOptions{Stats: new(true)})).ok(t)
	same(t, "one, by its short id", []any{read.ID, read.Stats.Total, read.WebURL}, []any{made.ID, int64(5), h.s.url + "/ada/history/-/commit/" + made.ID})
	ask(h.ada.Commits.GetCommit(p.ID, "nowhere", nil)).missing(t)
	goCommitLists(t, h, p)

	ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("here"), Ref: &made.ID})).ok(t)
	refs := ask(h.ada.Commits.GetCommitRefs(p.ID, made.ID, &gitlab.GetCommitRefsOptions{Type: new("all")})).ok(t)
	same(t, "branches and tags with it", refs, []*gitlab.CommitRef{{Type: "branch", Name: "work"}, {Type: "tag", Name: "here"}})
}

// goCommitLists requires two commits on work after the one of main.
func goCommitLists(t *testing.T, h *hosting, p *gitlab.Project) {
	for _, test := range []struct {
		name string
		opt  gitlab.ListCommitsOptions
		want []string
	}{
		{"of the default branch", gitlab.ListCommitsOptions{}, []string{"Initial commit"}},
		{"of a branch", gitlab.ListCommitsOptions{RefName: new("work")}, []string{"move about", "change all", "Initial commit"}},
		{"of a range", gitlab.ListCommitsOptions{RefName: new("main..work")}, []string{"move about", "change all"}},
		{"of all, by author", gitlab.ListCommitsOptions{All: new(true), FirstParent: new(true), Author: new("Charles")}, []string{"change all"}},
		{"of a file", gitlab.ListCommitsOptions{RefName: new("work"), Path: new("lib/a.txt")}, []string{"move about"}},
		{"by author", gitlab.ListCommitsOptions{RefName: new("work"), Author: new("Charles")}, []string{"change all"}},
		{"since a year ahead", gitlab.ListCommitsOptions{RefName: new("work"), Since: new(time.Now().AddDate(1, 0, 0))}, []string{}},
		{"until a year ahead", gitlab.ListCommitsOptions{RefName: new("work"), Until: new(time.Now().AddDate(1, 0, 0)), ListOptions: gitlab.ListOptions{PerPage: 1}}, []string{"move about"}},
	} {
		same(t, "commits "+test.name, mapped(ask(h.ada.Commits.ListCommits(p.ID, &test.opt)).ok(t), title), test.want)
	}
	with := ask(h.ada.Commits.ListCommits(p.ID, &gitlab.ListCommitsOptions{RefName: new("work"), WithStats: new(true)})).ok(t)[1]
	same(t, "counts in the list", *with.Stats, gitlab.CommitStats{Additions: 3, Deletions: 2, Total: 5})
	same(t, "pages", mapped(scanned(t, func(page gitlab.PaginationOptionFunc) ([]*gitlab.Commit, *gitlab.Response, error) {
		return h.ada.Commits.ListCommits(p.ID, &gitlab.ListCommitsOptions{RefName: new("work"), ListOptions: gitlab.ListOptions{PerPage: 1}}, page)
	}), title), []string{"move about", "change all", "Initial commit"})
}

// goPicks cherry-picks and reverts commits.
func goPicks(t *testing.T, h *hosting) {
	p := h.project(t, "picks")
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("fix"), Ref: new("main")})).ok(t)
	fix := h.write(t, p, "fix", "fix.txt", "fixed\n", "fix it")

	ask(h.ada.Commits.CherryPickCommit(p.ID, fix.ID, &gitlab.CherryPickCommitOptions{Branch: new("main"), DryRun: new(true)})).ok(t)
	ask(h.ada.RepositoryFiles.GetFile(p.ID, "fix.txt", &gitlab.GetFileOptions{Ref: new("main")})).missing(t)
	picked := ask(h.ada.Commits.CherryPickCommit(p.ID, fix.ID, &gitlab.CherryPickCommitOptions{Branch: new("main")})).done(t, http.StatusCreated)
	same(t, "picked", []string{picked.Title, picked.Message}, []string{"fix it", "fix it\n\n(cherry picked from commit " + fix.ID + ")"})
	same(t, "head", h.head(t, p, "main"), picked.ID)
	reverted := ask(h.ada.Commits.RevertCommit(p.ID, picked.ID, &gitlab.RevertCommitOptions{Branch: new("main")})).done(t, http.StatusCreated)
	same(t, "reverted", []string{reverted.Title, reverted.Message}, []string{`Revert "fix it"`, "Revert \"fix it\"\n\nThis reverts commit " + picked.ID})
	ask(h.ada.RepositoryFiles.GetFile(p.ID, "fix.txt", &gitlab.GetFileOptions{Ref: new("main")})).missing(t)
	ask(h.ada.Commits.RevertCommit(p.ID, picked.ID, &gitlab.RevertCommitOptions{Branch: new("main")})).
		refused(t, http.StatusBadRequest, "{error_code: empty}, {message: Sorry, we cannot revert this commit automatically. This commit may already have been reverted, or a more recent commit may have updated some of its content.}")
}

func goCommitNotes(t *testing.T, h *hosting) {
	p := h.project(t, "remarks")
	c := h.write(t, p, "main", "poem.txt", "roses\n", "a poem")
	note := ask(h.ada.Commits.PostCommitComment(p.ID, c.ID, &gitlab.PostCommitCommentOptions{Note: new("no violets?"), Path: new("poem.txt"), Line: new(int64(1)), LineType: new("new")})).done(t, http.StatusCreated)
	same(t, "comment", []any{note.Note, note.Path, note.Line, note.LineType, note.Author.Username}, []any{"no violets?", "poem.txt", int64(1), "new", "ada"})
	ask(h.ada.Commits.PostCommitComment(p.ID, c.ID, &gitlab.PostCommitCommentOptions{Note: new("good")})).done(t, http.StatusCreated)
	same(t, "comments", mapped(ask(h.ada.Commits.GetCommitComments(p.ID, c.ID, nil)).ok(t), func(n *gitlab.CommitComment) string { return n.Note }), []string{"no violets?", "good"})
	thread := ask(h.ada.Discussions.CreateCommitDiscussion(p.ID, c.ID, &gitlab.CreateCommitDiscussionOptions{Body: new("why roses?")})).done(t, http.StatusCreated)
	same(t, "thread", []any{thread.IndividualNote, thread.Notes[0].Body, thread.Notes[0].NoteableType, thread.Notes[0].CommitID}, []any{false, "why roses?", "Commit", c.ID})
	reply := ask(h.ada.Discussions.AddCommitDiscussionNote(p.ID, c.ID, thread.ID, &gitlab.AddCommitDiscussionNoteOptions{Body: new("they rhyme")})).done(t, http.StatusCreated)
	same(t, "edited", ask(h.ada.Discussions.UpdateCommitDiscussionNote(p.ID, c.ID, thread.ID, reply.ID, &gitlab.UpdateCommitDiscussionNoteOptions{Body: new("they don't")})).ok(t).Body, "they don't")
	same(t, "notes", len(ask(h.ada.Discussions.GetCommitDiscussion(p.ID, c.ID, thread.ID)).ok(t).Notes), 2)
	same(t, "discussions", len(ask(h.ada.Discussions.ListCommitDiscussions(p.ID, c.ID, nil)).ok(t)), 3)
	if resp, err := h.ada.Discussions.DeleteCommitDiscussionNote(p.ID, c.ID, thread.ID, reply.ID); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %v", err)
	}

	set := ask(h.ada.Commits.SetCommitStatus(p.ID, c.ID, &gitlab.SetCommitStatusOptions{
		State: gitlab.Running, Name: new("lint"), Ref: new("main"), TargetURL: new("https://ci.example.org/1"), Description: new("looks"), Coverage: new(12.5),
	})).done(t, http.StatusCreated)
	same(t, "status", []any{set.SHA, set.Ref, set.Status, set.Name, set.TargetURL, set.Description, set.Coverage, set.Author.Username},
		[]any{c.ID, "main", "running", "lint", "https://ci.example.org/1", "looks", 12.5, "ada"})
	ask(h.ada.Commits.SetCommitStatus(p.ID, c.ID, &gitlab.SetCommitStatusOptions{State: gitlab.Success, Name: new("lint"), Ref: new("main")})).done(t, http.StatusCreated)
	ask(h.ada.Commits.SetCommitStatus(p.ID, c.ID, &gitlab.SetCommitStatusOptions{State: gitlab.Failed, Context: new("build")})).done(t, http.StatusCreated)
	type status struct{ Name, Status string }
	list := ask(h.ada.Commits.GetCommitStatuses(p.ID, c.ID, &gitlab.GetCommitStatusesOptions{Name: new("lint")})).ok(t)
	same(t, "statuses", mapped(list, func(s *gitlab.CommitStatus) status { return status{s.Name, s.Status} }), []status{{"lint", "success"}})
	read := ask(h.ada.Commits.GetCommit(p.ID, c.ID, nil)).ok(t)
	if read.Status == nil || *read.Status != gitlab.Failed {
		t.Errorf("status of the commit: %v, want failed", read.Status)
	}
}
