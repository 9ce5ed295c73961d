package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientReview reviews a merge request with draft notes.
func TestGoClientReview(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("review"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
		ask(self.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{
			Branch: new("work"), StartBranch: new("main"), CommitMessage: new("Work"),
			Actions: []*gitlab.CommitActionOptions{{Action: new(gitlab.FileCreate), FilePath: new("work.txt"), Content: new("one\ntwo\n")}},
		})).done(t, http.StatusCreated)
		m := ask(self.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{
			SourceBranch: new("work"), TargetBranch: new("main"), Title: new("Work"), ReviewerIDs: &[]int64{u.ID},
		})).done(t, http.StatusCreated)
		d := ask(self.DraftNotes.CreateDraftNote(p.ID, m.IID, &gitlab.CreateDraftNoteOptions{
			Note: new("Why two?"), CommitID: &m.SHA,
			Position: &gitlab.PositionOptions{
				BaseSHA: &m.DiffRefs.BaseSha, StartSHA: &m.DiffRefs.StartSha, HeadSHA: &m.DiffRefs.HeadSha, PositionType: new("text"), NewPath: new("work.txt"), NewLine: new(int64(2)),
			},
		})).done(t, http.StatusCreated)
		same(t, "draft", []any{d.Note, d.AuthorID, d.CommitID, d.Position.NewPath, d.Position.NewLine, d.LineCode != ""}, []any{"Why two?", u.ID, m.SHA, "work.txt", int64(2), true})
		d = ask(self.DraftNotes.UpdateDraftNote(p.ID, m.IID, d.ID, &gitlab.UpdateDraftNoteOptions{Note: new("Why?")})).ok(t)
		same(t, "updated", ask(self.DraftNotes.GetDraftNote(p.ID, m.IID, d.ID)).ok(t).Note, "Why?")
		other := ask(self.DraftNotes.CreateDraftNote(p.ID, m.IID, &gitlab.CreateDraftNoteOptions{Note: new("General")})).done(t, http.StatusCreated)
		gone := ask(self.DraftNotes.CreateDraftNote(p.ID, m.IID, &gitlab.CreateDraftNoteOptions{Note: new("Gone")})).done(t, http.StatusCreated)
		if list := ask(self.DraftNotes.ListDraftNotes(p.ID, m.IID, nil)).ok(t); len(list) != 3 {
			t.Errorf("drafts: %+v", list)
		}
		if list := ask(root.DraftNotes.ListDraftNotes(p.ID, m.IID, nil)).ok(t); len(list) != 0 {
			t.Errorf("drafts of another user: %+v", list)
		}
		for name, call := range map[string]func() (*gitlab.Response, error){
			"delete":  func() (*gitlab.Response, error) { return self.DraftNotes.DeleteDraftNote(p.ID, m.IID, gone.ID) },
			"publish": func() (*gitlab.Response, error) { return self.DraftNotes.PublishDraftNote(p.ID, m.IID, other.ID) },
		} {
			if res, err := call(); err != nil || res.StatusCode != http.StatusNoContent {
				t.Errorf("%s: %v", name, err)
			}
		}
		if res, err := self.DraftNotes.PublishAllDraftNotes(p.ID, m.IID); err != nil || res.StatusCode != http.StatusNoContent {
			t.Errorf("publish all: %v", err)
		}
		if list := ask(self.DraftNotes.ListDraftNotes(p.ID, m.IID, nil)).ok(t); len(list) != 0 {
			t.Errorf("drafts: %+v", list)
		}
		threads := ask(self.Discussions.ListMergeRequestDiscussions(p.ID, m.IID, nil)).ok(t)
		same(t, "threads", []any{len(threads), threads[0].Notes[0].Body, threads[1].Notes[0].Position.NewLine}, []any{2, "General", int64(2)})
		same(t, "commit of a note", threads[1].Notes[0].CommitID, m.SHA)
		next := ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{
			Title: new("Later"), MergeRequestToResolveDiscussionsOf: &m.IID, DiscussionToResolve: &threads[0].ID,
		})).done(t, http.StatusCreated)
		threads = ask(self.Discussions.ListMergeRequestDiscussions(p.ID, m.IID, nil)).ok(t)
		same(t, "follow-up", []any{next.Title, next.Description != "", threads[0].Notes[0].Resolved, threads[1].Notes[0].Resolved}, []any{"Later", true, true, false})
		reviewers := ask(self.MergeRequests.GetMergeRequestReviewers(p.ID, m.IID)).ok(t)
		same(t, "reviewers", []any{len(reviewers), reviewers[0].State}, []any{1, "reviewed"})
	})
}
