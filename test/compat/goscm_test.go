package compat

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/drone/go-scm/scm"
	driver "github.com/drone/go-scm/scm/driver/gitlab"
	"github.com/drone/go-scm/scm/transport"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// scmResult returns the result of a call of go-scm, which must succeed.
func scmResult[T any](t *testing.T) func(value T, r *scm.Response, err error) T {
	t.Helper()
	return func(value T, r *scm.Response, err error) T {
		t.Helper()
		scmOK(t)(r, err)
		return value
	}
}

func scmOK(t *testing.T) func(r *scm.Response, err error) {
	t.Helper()
	return func(r *scm.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if r != nil && r.Status/100 != 2 {
			t.Fatalf("status %d", r.Status)
		}
	}
}

// TestGoSCM uses the driver of drone/go-scm like a CI server: it reads a repository,
// creates a webhook, parses its requests, and sets a commit status.
func TestGoSCM(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h, r := newHosting(t, s), newHookReceiver(t)
		ask(h.root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{OutboundLocalRequestsWhitelist: &[]string{"127.0.0.0/8"}})).ok(t)
		c, err := driver.New(s.url)
		if err != nil {
			t.Fatal(err)
		}
		c.Client = &http.Client{Transport: &transport.PrivateToken{Token: h.adaToken}}
		ctx := t.Context()
		p := h.project(t, "driven")
		name := p.PathWithNamespace

		same(t, "user", scmResult[*scm.User](t)(c.Users.Find(ctx)).Login, "ada")
		repo := scmResult[*scm.Repository](t)(c.Repositories.Find(ctx, name))
		same(t, "repository", []any{repo.Namespace, repo.Name, repo.Branch, repo.Private, repo.Perm.Admin, repo.Perm.Push}, []any{"ada", "driven", "main", true, true, true})
		listed := scmResult[[]*scm.Repository](t)(c.Repositories.List(ctx, scm.ListOptions{Size: 100}))
		same(t, "repositories", slices.ContainsFunc(listed, func(r *scm.Repository) bool { return r.Name == "driven" }), true)

		hook := scmResult[*scm.Hook](t)(c.Repositories.CreateHook(ctx, name, &scm.HookInput{Name: "ci", Target: r.URL + "/scm", Secret: "secret",
			Events: scm.HookEvents{Branch: true, Push: true, Tag: true, PullRequest: true, PullRequestComment: true, Issue: true, IssueComment: true}}))
		same(t, "hooks", len(scmResult[[]*scm.Hook](t)(c.Repositories.ListHooks(ctx, name, scm.ListOptions{}))), 1)
		same(t, "hook", scmResult[*scm.Hook](t)(c.Repositories.FindHook(ctx, name, hook.ID)).Target, r.URL+"/scm")

		head := scmResult[*scm.Reference](t)(c.Git.FindBranch(ctx, name, "main")).Sha
		scmOK(t)(c.Git.CreateBranch(ctx, name, &scm.ReferenceInput{Name: "work", Sha: head}))
		by := scm.Signature{Name: "Ada", Email: "ada@example.org"}
		scmOK(t)(c.Contents.Create(ctx, name, "dir/a.txt", &scm.ContentParams{Branch: "work", Message: "Add a", Data: []byte("a\n"), Signature: by}))
		file := scmResult[*scm.Content](t)(c.Contents.Find(ctx, name, "dir/a.txt", "work"))
		same(t, "file", string(file.Data), "a\n")
		scmOK(t)(c.Contents.Update(ctx, name, "dir/a.txt", &scm.ContentParams{Branch: "work", Message: "Change a", Data: []byte("b\n"), Sha: file.Sha, BlobID: file.BlobID, Signature: by}))
		same(t, "directory", scmResult[[]*scm.ContentInfo](t)(c.Contents.List(ctx, name, "dir", "work", scm.ListOptions{}))[0].Path, "dir/a.txt")
		commits := scmResult[[]*scm.Commit](t)(c.Git.ListCommits(ctx, name, scm.CommitListOptions{Ref: "work"}))
		same(t, "commits", []any{len(commits), commits[0].Message}, []any{3, "Change a"})
		same(t, "branches", len(scmResult[[]*scm.Reference](t)(c.Git.ListBranches(ctx, name, scm.ListOptions{}))), 2)
		same(t, "changes", scmResult[[]*scm.Change](t)(c.Git.CompareChanges(ctx, name, head, commits[0].Sha, scm.ListOptions{}))[0].Path, "dir/a.txt")

		scmResult[*scm.Status](t)(c.Repositories.CreateStatus(ctx, name, commits[0].Sha, &scm.StatusInput{State: scm.StateSuccess, Label: "ci/build", Desc: "It works", Target: "https://ci.example.org/1"}))
		same(t, "status", scmResult[[]*scm.Status](t)(c.Repositories.ListStatus(ctx, name, commits[0].Sha, scm.ListOptions{}))[0].Label, "ci/build")

		pr := scmResult[*scm.PullRequest](t)(c.PullRequests.Create(ctx, name, &scm.PullRequestInput{Title: "Change", Body: "Why", Source: "work", Target: "main"}))
		same(t, "pull request", []any{pr.Source, pr.Target, pr.Sha, pr.Author.Login}, []any{"work", "main", commits[0].Sha, "ada"})
		scmResult[*scm.Comment](t)(c.PullRequests.CreateComment(ctx, name, pr.Number, &scm.CommentInput{Body: "/retest"}))
		same(t, "changed files", scmResult[[]*scm.Change](t)(c.PullRequests.ListChanges(ctx, name, pr.Number, scm.ListOptions{}))[0].Path, "dir/a.txt")
		ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1"), Ref: new("main")})).done(t, http.StatusCreated)
		scmOK(t)(c.PullRequests.Merge(ctx, name, pr.Number))

		// Every request is parsed, unless the driver does not know its type.
		parse := func(ctx context.Context, d delivery) scm.Webhook {
			q := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(d.body))
			q.Header = d.header
			w, err := c.Webhooks.Parse(q, func(scm.Webhook) (string, error) { return "secret", nil })
			if err != nil && !errors.Is(err, scm.ErrUnknownEvent) {
				t.Errorf("%s: %v: %s", d.header.Get("X-Gitlab-Event"), err, d.body)
			}
			return w
		}
		for what, is := range map[string]func(scm.Webhook) bool{
			"push": func(w scm.Webhook) bool {
				e, ok := w.(*scm.PushHook)
				return ok && e.Ref == "refs/heads/work" && e.After == commits[0].Sha && e.Commit.Message == "Change a" && e.Sender.Login == "ada" && e.Repo.Namespace == "ada"
			},
			"tag": func(w scm.Webhook) bool {
				e, ok := w.(*scm.PushHook)
				return ok && e.Ref == "refs/tags/v1"
			},
			"opened": func(w scm.Webhook) bool {
				e, ok := w.(*scm.PullRequestHook)
				return ok && e.Action == scm.ActionOpen && e.PullRequest.Number == pr.Number && e.PullRequest.Sha == commits[0].Sha && e.PullRequest.Source == "work" && e.Repo.Name == "driven"
			},
			"merged": func(w scm.Webhook) bool {
				e, ok := w.(*scm.PullRequestHook)
				return ok && e.Action == scm.ActionMerge && e.PullRequest.Merged
			},
			"comment": func(w scm.Webhook) bool {
				e, ok := w.(*scm.PullRequestCommentHook)
				if ok {
					return e.Comment.Body == "/retest" && e.PullRequest.Number == pr.Number
				}
				i, ok := w.(*scm.IssueCommentHook)
				return ok && i.Comment.Body == "/retest" && i.Issue.Number == pr.Number
			},
		} {
			waitFor(t, what, func() bool {
				return slices.ContainsFunc(r.all(), func(d delivery) bool { return is(parse(ctx, d)) })
			})
		}
		scmOK(t)(c.Repositories.DeleteHook(ctx, name, hook.ID))
	})
}
