package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	playground "github.com/go-playground/webhooks/v6/gitlab"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// delivery is a request that a webhook sent.
type delivery struct {
	path   string
	header http.Header
	body   []byte
}

// hookReceiver records the requests of webhooks.
type hookReceiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []delivery
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, delivery{q.URL.Path, q.Header, body})
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) all() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// parsedHook waits for an event of a type that satisfies a condition.
func parsedHook[T any](t *testing.T, r *hookReceiver, path string, is func(*T) bool) *T {
	t.Helper()
	var found *T
	waitFor(t, "webhook", func() bool {
		for _, d := range r.all() {
			if d.path != path {
				continue
			}
			parsed, err := gitlab.ParseHook(gitlab.EventType(d.header.Get("X-Gitlab-Event")), d.body)
			if err != nil {
				t.Fatalf("%v: %s", err, d.body)
			}
			if event, ok := parsed.(*T); ok && is(event) {
				found = event
				return true
			}
		}
		return false
	})
	return found
}

// TestGoClientWebhooks creates webhooks with the client, triggers their events, and
// parses every request with two public parsers.
func TestGoClientWebhooks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h, r := newHosting(t, s), newHookReceiver(t)
		ask(h.root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{OutboundLocalRequestsWhitelist: &[]string{"127.0.0.0/8"}})).ok(t)
		ask(h.root.SystemHooks.AddHook(&gitlab.AddHookOptions{URL: new(r.URL + "/system"), PushEvents: new(true), MergeRequestsEvents: new(true)})).done(t, http.StatusCreated)
		p := h.project(t, "hooked")
		made := ask(h.ada.Projects.AddProjectHook(p.ID, &gitlab.AddProjectHookOptions{
			URL: new(r.URL + "/hook"), Name: new("all"), Token: new("secret"), PushEvents: new(true), TagPushEvents: new(true), IssuesEvents: new(true),
			ConfidentialIssuesEvents: new(true), NoteEvents: new(true), ConfidentialNoteEvents: new(true), MergeRequestsEvents: new(true), JobEvents: new(true),
			PipelineEvents: new(true), WikiPageEvents: new(true), DeploymentEvents: new(true), ReleasesEvents: new(true), EmojiEvents: new(true),
			CustomHeaders: &[]*gitlab.HookCustomHeader{{Key: "X-Custom", Value: "mine"}},
		})).done(t, http.StatusCreated)
		same(t, "hook", []any{made.Name, made.PushEvents, made.AlertStatus, made.CustomHeaders[0].Key, made.EnableSSLVerification}, []any{"all", true, "executable", "X-Custom", true})
		same(t, "hooks", len(ask(h.ada.Projects.ListProjectHooks(p.ID, nil)).ok(t)), 1)
		ask(h.ada.Projects.EditProjectHook(p.ID, made.ID, &gitlab.EditProjectHookOptions{URL: new(r.URL + "/hook"), Description: new("d")})).ok(t)
		send(h.ada.Projects.SetProjectCustomHeader(p.ID, made.ID, "X-More", &gitlab.SetHookCustomHeaderOptions{Value: new("v")})).ok(t)

		create := gitlab.FileCreate
		ask(h.ada.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{Branch: new("feature"), StartBranch: new("main"), CommitMessage: new("Add a"),
			Actions: []*gitlab.CommitActionOptions{{Action: &create, FilePath: new("a.txt"), Content: new("a")}}})).done(t, http.StatusCreated)
		push := parsedHook(t, r, "/hook", func(e *gitlab.PushEvent) bool { return e.Ref == "refs/heads/feature" })
		same(t, "push", []any{push.UserUsername, push.TotalCommitsCount, push.Commits[0].Title, push.Commits[0].Added, push.Project.PathWithNamespace, push.ObjectKind},
			[]any{"ada", int64(1), "Add a", []string{"a.txt"}, p.PathWithNamespace, "push"})
		parsedHook(t, r, "/system", func(e *gitlab.PushSystemEvent) bool { return e.Ref == "refs/heads/feature" })
		parsedHook(t, r, "/system", func(e *gitlab.ProjectSystemEvent) bool {
			return e.EventName == "project_create" && e.PathWithNamespace == p.PathWithNamespace
		})
		ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1"), Ref: new("main"), Message: new("One")})).done(t, http.StatusCreated)
		same(t, "tag", parsedHook(t, r, "/hook", func(e *gitlab.TagEvent) bool { return e.Ref == "refs/tags/v1" }).Message, "One")

		ask(h.ada.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("first"), Labels: &gitlab.LabelOptions{"bug"}})).done(t, http.StatusCreated)
		ask(h.ada.Issues.UpdateIssue(p.ID, 1, &gitlab.UpdateIssueOptions{Title: new("second"), StateEvent: new("close")})).ok(t)
		issue := parsedHook(t, r, "/hook", func(e *gitlab.IssueEvent) bool { return e.ObjectAttributes.Action == "close" })
		same(t, "issue", []any{issue.Changes.Title.Previous, issue.Changes.Title.Current, issue.ObjectAttributes.State, issue.User.Username, issue.Labels[0].Title},
			[]any{"first", "second", "closed", "ada", "bug"})
		ask(h.ada.Notes.CreateIssueNote(p.ID, 1, &gitlab.CreateIssueNoteOptions{Body: new("words")})).done(t, http.StatusCreated)
		same(t, "note", parsedHook(t, r, "/hook", func(e *gitlab.IssueCommentEvent) bool { return e.ObjectAttributes.Note == "words" }).Issue.Title, "second")
		ask(h.ada.AwardEmoji.CreateIssueAwardEmoji(p.ID, 1, &gitlab.CreateAwardEmojiOptions{Name: "rocket"})).done(t, http.StatusCreated)
		parsedHook(t, r, "/hook", func(e *gitlab.EmojiEvent) bool { return e.ObjectAttributes.Name == "rocket" })

		mr := ask(h.ada.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{Title: new("mr"), SourceBranch: new("feature"), TargetBranch: new("main")})).done(t, http.StatusCreated)
		merge := parsedHook(t, r, "/hook", func(e *gitlab.MergeEvent) bool { return e.ObjectAttributes.Action == "open" })
		same(t, "merge request", []any{merge.ObjectAttributes.IID, merge.ObjectAttributes.LastCommit.Title, merge.ObjectAttributes.Source.PathWithNamespace, merge.ObjectAttributes.State},
			[]any{mr.IID, "Add a", p.PathWithNamespace, "opened"})
		ask(h.ada.Notes.CreateMergeRequestNote(p.ID, mr.IID, &gitlab.CreateMergeRequestNoteOptions{Body: new("on it")})).done(t, http.StatusCreated)
		parsedHook(t, r, "/hook", func(e *gitlab.MergeCommentEvent) bool { return e.MergeRequest.Title == "mr" })
		ask(h.ada.Wikis.CreateWikiPage(p.ID, &gitlab.CreateWikiPageOptions{Title: new("Page"), Content: new("text")})).done(t, http.StatusCreated)
		same(t, "wiki", parsedHook(t, r, "/hook", func(e *gitlab.WikiPageEvent) bool { return e.ObjectAttributes.Action == "create" }).ObjectAttributes.Content, "text")
		ask(h.ada.Releases.CreateRelease(p.ID, &gitlab.CreateReleaseOptions{TagName: new("v1"), Name: new("One")})).done(t, http.StatusCreated)
		same(t, "release", parsedHook(t, r, "/hook", func(e *gitlab.ReleaseEvent) bool { return e.Action == "create" }).Tag, "v1")
		ask(h.ada.Commits.CreateCommit(p.ID, &gitlab.CreateCommitOptions{Branch: new("ci"), StartBranch: new("main"), CommitMessage: new("CI"), Actions: []*gitlab.CommitActionOptions{
			{Action: &create, FilePath: new(".gitlab-ci.yml"), Content: new("deploy:\n  script: x\n  when: manual\n  allow_failure: false\n")}}})).done(t, http.StatusCreated)
		pipeline := parsedHook(t, r, "/hook", func(e *gitlab.PipelineEvent) bool { return e.ObjectAttributes.Status == "manual" })
		same(t, "pipeline", []any{pipeline.Commit.Title, pipeline.ObjectAttributes.Ref, pipeline.Builds[0].Name}, []any{"CI", "ci", "deploy"})
		same(t, "job", parsedHook(t, r, "/hook", func(e *gitlab.JobEvent) bool { return e.BuildStatus == "manual" }).BuildName, "deploy")
		ask(h.ada.Deployments.CreateProjectDeployment(p.ID, &gitlab.CreateProjectDeploymentOptions{Environment: new("staging"), SHA: new(h.head(t, p, "main")), Ref: new("main"),
			Tag: new(false), Status: new(gitlab.DeploymentStatusSuccess)})).done(t, http.StatusCreated)
		same(t, "deployment", parsedHook(t, r, "/hook", func(e *gitlab.DeploymentEvent) bool { return e.Status == "success" }).Environment, "staging")
		// The client has no field for this trigger.
		flags, err := h.ada.NewRequest(http.MethodPut, fmt.Sprintf("projects/%d/hooks/%d", p.ID, made.ID), map[string]any{"feature_flag_events": true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		send(h.ada.Do(flags, nil)).ok(t)
		ask(h.ada.ProjectFeatureFlags.CreateProjectFeatureFlag(p.ID, &gitlab.CreateProjectFeatureFlagOptions{Name: new("cart"), Version: new("new_version_flag")})).done(t, http.StatusCreated)
		ask(h.ada.ProjectFeatureFlags.UpdateProjectFeatureFlag(p.ID, "cart", &gitlab.UpdateProjectFeatureFlagOptions{Active: new(false)})).ok(t)
		flag := parsedHook(t, r, "/hook", func(e *gitlab.FeatureFlagEvent) bool { return e.ObjectAttributes.Name == "cart" })
		same(t, "feature flag", []any{flag.ObjectAttributes.Active, flag.User.Username, flag.Project.PathWithNamespace}, []any{false, "ada", p.PathWithNamespace})
		send(h.ada.Projects.TriggerTestProjectHook(p.ID, made.ID, gitlab.ProjectHookEventPush)).done(t, http.StatusCreated)

		second, err := playground.New(playground.Options.Secret("secret"))
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for _, d := range r.all() {
			name := d.header.Get("X-Gitlab-Event")
			if d.path == "/system" || name == "Emoji Hook" || name == "Feature Flag Hook" { // it does not know these
				continue
			}
			q := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(d.body))
			q.Header = d.header
			if _, err := second.Parse(q, playground.PushEvents, playground.TagEvents, playground.IssuesEvents, playground.ConfidentialIssuesEvents, playground.CommentEvents,
				playground.ConfidentialCommentEvents, playground.MergeRequestEvents, playground.WikiPageEvents, playground.PipelineEvents, playground.JobEvents, playground.BuildEvents,
				playground.DeploymentEvents, playground.ReleaseEvents); err != nil {
				t.Errorf("%s: %v: %s", name, err, d.body)
			}
			read[name] = true
		}
		if len(read) < 9 {
			t.Errorf("the second parser read %v", read)
		}

		slack := ask(h.ada.Services.SetSlackService(p.ID, &gitlab.SetSlackServiceOptions{WebHook: new(r.URL + "/slack"), Username: new("bot"), Channel: new("general")})).ok(t)
		same(t, "slack", []any{slack.Active, slack.Properties.Username, slack.Properties.Channel}, []any{true, "bot", "general"})
		ask(h.ada.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("for the chat")})).done(t, http.StatusCreated)
		waitFor(t, "chat message", func() bool {
			return slices.ContainsFunc(r.all(), func(d delivery) bool {
				var m struct{ Text, Username, Channel string }
				return d.path == "/slack" && json.Unmarshal(d.body, &m) == nil && strings.Contains(m.Text, "for the chat") && m.Username == "bot" && m.Channel == "general"
			})
		})
		send(h.ada.Services.DeleteSlackService(p.ID)).ok(t)
		chatIntegrations(t, h, r, p)
		send(h.ada.Projects.DeleteProjectHook(p.ID, made.ID)).ok(t)
	})
}

// chatIntegrations configures the chat integrations that the client supports, for a
// project and for a group, and reads their settings.
func chatIntegrations(t *testing.T, h *hosting, r *hookReceiver, p *gitlab.Project) {
	t.Helper()
	discord := ask(h.ada.Services.SetDiscordService(p.ID, &gitlab.SetDiscordServiceOptions{WebHook: new(r.URL + "/discord"), BranchesToBeNotified: new("all")})).ok(t)
	same(t, "discord", []any{discord.Active, discord.Slug, discord.Properties.BranchesToBeNotified}, []any{true, "discord", "all"})
	telegram := ask(h.ada.Services.SetTelegramService(p.ID, &gitlab.SetTelegramServiceOptions{Token: new("1:x"), Room: new("@room"), PushEvents: new(false)})).ok(t)
	same(t, "telegram", []any{telegram.Properties.Room, telegram.PushEvents, telegram.IssuesEvents}, []any{"@room", false, true})
	ask(h.ada.Services.SetMatrixService(p.ID, &gitlab.SetMatrixServiceOptions{Hostname: new(r.URL), Token: new("x"), Room: new("!r:example.org")})).ok(t)
	same(t, "matrix", ask(h.ada.Services.GetMatrixService(p.ID)).ok(t).Properties.Room, "!r:example.org")
	ask(h.ada.Services.SetMicrosoftTeamsService(p.ID, &gitlab.SetMicrosoftTeamsServiceOptions{WebHook: new(r.URL + "/teams")})).ok(t)
	ask(h.ada.Services.SetMattermostService(p.ID, &gitlab.SetMattermostServiceOptions{WebHook: new(r.URL + "/mattermost"), Channel: new("town")})).ok(t)
	ask(h.ada.Integrations.SetProjectGoogleChatSettings(p.ID, &gitlab.SetProjectGoogleChatOptions{Webhook: new(r.URL + "/google")})).ok(t)
	same(t, "integrations", len(ask(h.ada.Services.ListServices(p.ID)).ok(t)), 6)
	ask(h.ada.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("for every chat")})).done(t, http.StatusCreated)
	for _, path := range []string{"/discord", "/teams", "/mattermost", "/google", "/_matrix/client/v3/rooms/!r:example.org/send/m.room.message/"} {
		waitFor(t, "message at "+path, func() bool {
			return slices.ContainsFunc(r.all(), func(d delivery) bool {
				return strings.HasPrefix(d.path, path) && bytes.Contains(d.body, []byte("for every chat"))
			})
		})
	}
	for _, remove := range []func(any, ...gitlab.RequestOptionFunc) (*gitlab.Response, error){
		h.ada.Services.DeleteDiscordService, h.ada.Services.DeleteTelegramService, h.ada.Services.DeleteMatrixService, h.ada.Services.DeleteMicrosoftTeamsService,
		h.ada.Services.DeleteMattermostService, h.ada.Integrations.DisableProjectGoogleChat,
	} {
		send(remove(p.ID)).ok(t)
	}

	g := h.group(t, "chatting")
	ask(h.ada.Integrations.SetGroupMicrosoftTeamsNotifications(g.ID, &gitlab.SetMicrosoftTeamsNotificationsOptions{Webhook: new(r.URL + "/teams")})).ok(t)
	ask(h.ada.Integrations.SetGroupSlackSettings(g.ID, &gitlab.SetGroupSlackOptions{Webhook: new(r.URL + "/slack"), Username: new("bot")})).ok(t)
	same(t, "slack of a group", ask(h.ada.Integrations.GetGroupSlackSettings(g.ID)).ok(t).Properties.Username, "bot")
	ask(h.ada.Integrations.GetGroupMicrosoftTeamsNotifications(g.ID)).ok(t)
	same(t, "integrations of a group", len(ask(h.ada.Integrations.ListActiveGroupIntegrations(g.ID, nil)).ok(t)), 2)
	send(h.ada.Integrations.DisableGroupSlack(g.ID)).ok(t)
}
