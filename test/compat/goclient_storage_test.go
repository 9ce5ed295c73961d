package compat

import (
	"net/http"
	"os"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientStorageMoves moves repositories to another storage.
func TestGoClientStorageMoves(t *testing.T) {
	t.Parallel()
	// Each server has a separate second storage.
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		goStorageMoves(t, start(t, "SVC_STORAGES=second="+t.TempDir()))
	})
	if os.Getenv("TEST_POSTGRES") == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		goStorageMoves(t, start(t, "SVC_STORAGES=second="+t.TempDir(), "SVC_DATABASE_URL="+newDatabase(t)))
	})
}

func goStorageMoves(t *testing.T, s *server) {
	root := s.client(t, rootToken)
	plain := s.client(t, newToken(t, root, newUser(t, root, "plain").ID, "api").Token)
	p := ask(root.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("mover"), InitializeWithReadme: new(true)})).ok(t)
	g := ask(root.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("movers"), Path: new("movers")})).ok(t)
	snip := ask(root.Snippets.CreateSnippet(&gitlab.CreateSnippetOptions{
		Title: new("s"), Visibility: new(gitlab.PrivateVisibility), Files: &[]*gitlab.CreateSnippetFileOptions{{FilePath: new("a.txt"), Content: new("text")}},
	})).ok(t)

	one := ask(root.ProjectRepositoryStorageMove.ScheduleStorageMoveForProject(p.ID, gitlab.ScheduleStorageMoveForProjectOptions{DestinationStorageName: new("second")})).
		done(t, http.StatusCreated)
	same(t, "scheduled", []any{one.State, one.SourceStorageName, one.DestinationStorageName, one.Project.ID, one.Project.PathWithNamespace},
		[]any{"scheduled", "default", "second", p.ID, "root/mover"})
	ask(plain.ProjectRepositoryStorageMove.RetrieveAllStorageMoves(gitlab.RetrieveAllProjectStorageMovesOptions{})).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	ask(root.SnippetRepositoryStorageMove.ScheduleStorageMoveForSnippet(snip.ID, gitlab.ScheduleStorageMoveForSnippetOptions{DestinationStorageName: new("default")})).
		refused(t, http.StatusBadRequest, "{message: {destination_storage_name: [is the storage that the repository is on]}}")

	two := ask(root.SnippetRepositoryStorageMove.ScheduleStorageMoveForSnippet(snip.ID, gitlab.ScheduleStorageMoveForSnippetOptions{})).done(t, http.StatusCreated)
	same(t, "snippet", []any{two.Snippet.ID, two.DestinationStorageName}, []any{snip.ID, "second"})
	three := ask(root.GroupRepositoryStorageMove.ScheduleStorageMoveForGroup(g.ID, gitlab.ScheduleStorageMoveForGroupOptions{})).done(t, http.StatusCreated)
	same(t, "group", []any{three.Group.ID, three.Group.Name, three.Group.WebURL}, []any{g.ID, "movers", s.url + "/groups/movers"})
	until(t, func() string { return ask(root.ProjectRepositoryStorageMove.GetStorageMove(one.ID)).ok(t).State })
	until(t, func() string { return ask(root.SnippetRepositoryStorageMove.GetStorageMove(two.ID)).ok(t).State })
	until(t, func() string { return ask(root.GroupRepositoryStorageMove.GetStorageMove(three.ID)).ok(t).State })
	same(t, "text of the snippet", string(ask(root.Snippets.SnippetContent(snip.ID)).ok(t)), "text")
	same(t, "of the project", ask(root.ProjectRepositoryStorageMove.GetStorageMoveForProject(p.ID, one.ID)).ok(t).ID, one.ID)
	same(t, "all of the project", len(ask(root.ProjectRepositoryStorageMove.RetrieveAllStorageMovesForProject(p.ID, gitlab.RetrieveAllProjectStorageMovesOptions{})).ok(t)), 1)
	same(t, "all", len(ask(root.ProjectRepositoryStorageMove.RetrieveAllStorageMoves(gitlab.RetrieveAllProjectStorageMovesOptions{})).ok(t)), 1)
	ask(root.RepositoryFiles.CreateFile(p.ID, "late.txt", &gitlab.CreateFileOptions{Branch: new("main"), Content: new("late"), CommitMessage: new("late")})).done(t, http.StatusCreated)
	same(t, "where it is", ask(root.Projects.GetProject(p.ID, nil)).ok(t).RepositoryStorage, "second")

	res, err := root.GroupRepositoryStorageMove.ScheduleAllStorageMoves(gitlab.ScheduleAllGroupStorageMovesOptions{SourceStorageName: new("default")})
	if err != nil || res.StatusCode != http.StatusAccepted {
		t.Errorf("all groups: %v, %v", res, err)
	}
}

// until waits until a move has ended.
func until(t *testing.T, state func() string) {
	t.Helper()
	waitFor(t, "the move is done", func() bool {
		now := state()
		if now == "failed" || now == "cleanup failed" {
			t.Fatalf("the move is %q", now)
		}
		return now == "finished"
	})
}
