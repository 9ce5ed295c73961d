package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientInbox uses to-do items, emoji reactions and user preferences.
func TestGoClientInbox(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("inbox")})).done(t, http.StatusCreated)
		i := ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("It breaks"), AssigneeIDs: &[]int64{u.ID}})).done(t, http.StatusCreated)
		list := ask(self.Todos.ListTodos(&gitlab.ListTodosOptions{Action: new(gitlab.TodoAssigned), ProjectID: &p.ID})).ok(t)
		if len(list) != 1 {
			t.Fatalf("to-do items: %+v", list)
		}
		one := list[0]
		same(t, "to-do item", []any{one.ActionName, one.TargetType, one.Target.IID, one.Body, one.State, one.Author.Username, one.Project.PathWithNamespace},
			[]any{gitlab.TodoAssigned, gitlab.TodoTargetIssue, i.IID, "It breaks", "pending", "ada", "ada/inbox"})
		if _, err := self.Todos.MarkTodoAsDone(one.ID); err != nil {
			t.Error(err)
		}
		same(t, "pending", len(ask(self.Todos.ListTodos(nil)).ok(t)), 0)
		same(t, "done", len(ask(self.Todos.ListTodos(&gitlab.ListTodosOptions{State: new("done")})).ok(t)), 1)
		made := ask(self.Issues.CreateTodo(p.ID, i.IID)).done(t, http.StatusCreated)
		same(t, "marked", made.ActionName, gitlab.TodoMarked)
		if _, err := self.Todos.MarkAllTodosAsDone(); err != nil {
			t.Error(err)
		}
		same(t, "pending", len(ask(self.Todos.ListTodos(nil)).ok(t)), 0)

		up := ask(self.AwardEmoji.CreateIssueAwardEmoji(p.ID, i.IID, &gitlab.CreateAwardEmojiOptions{Name: "thumbsup"})).done(t, http.StatusCreated)
		same(t, "reaction", []any{up.Name, up.User.Username, up.AwardableID, up.AwardableType}, []any{"thumbsup", "ada", i.ID, "Issue"})
		same(t, "votes", ask(self.Issues.GetIssue(p.ID, i.IID)).ok(t).Upvotes, int64(1))
		same(t, "reactions", len(ask(self.AwardEmoji.ListIssueAwardEmoji(p.ID, i.IID, nil)).ok(t)), 1)
		n := ask(self.Notes.CreateIssueNote(p.ID, i.IID, &gitlab.CreateIssueNoteOptions{Body: new("Why?")})).done(t, http.StatusCreated)
		on := ask(self.AwardEmoji.CreateIssuesAwardEmojiOnNote(p.ID, i.IID, n.ID, &gitlab.CreateAwardEmojiOptions{Name: "tada"})).done(t, http.StatusCreated)
		same(t, "reaction to a note", ask(self.AwardEmoji.GetIssuesAwardEmojiOnNote(p.ID, i.IID, n.ID, on.ID)).ok(t).Name, "tada")
		if _, err := self.AwardEmoji.DeleteIssueAwardEmoji(p.ID, i.IID, up.ID); err != nil {
			t.Error(err)
		}
		same(t, "votes", ask(self.Issues.GetIssue(p.ID, i.IID)).ok(t).Upvotes, int64(0))
	})
}
