package compat

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientEnforced changes settings that a group enforces for its projects,
// integrations other than chat services, and the images of an alert.
func TestGoClientEnforced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h := newHosting(t, s)
		g := h.group(t, "strict")
		p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("p"), NamespaceID: &g.ID})).done(t, http.StatusCreated)

		settings := h.ada.MergeRequestApprovalSettings
		same(t, "settings", ask(settings.GetGroupMergeRequestApprovalSettings(g.ID)).ok(t).AllowAuthorApproval, gitlab.MergeRequestApprovalSetting{Value: true})
		ask(settings.UpdateGroupMergeRequestApprovalSettings(g.ID, &gitlab.UpdateGroupMergeRequestApprovalSettingsOptions{AllowAuthorApproval: new(false), RequireReauthenticationToApprove: new(true)})).ok(t)
		of := ask(settings.GetProjectMergeRequestApprovalSettings(p.ID)).ok(t)
		same(t, "inherited", []any{of.AllowAuthorApproval, of.RequirePasswordToApprove.Value, of.AllowCommitterApproval.Locked},
			[]any{gitlab.MergeRequestApprovalSetting{Locked: true, InheritedFrom: "group"}, true, false})

		emails := ask(h.ada.Services.SetPipelinesEmailService(p.ID, &gitlab.SetPipelinesEmailServiceOptions{Recipients: new("team@example.org"), BranchesToBeNotified: new("all"), PipelineEvents: new(true)})).ok(t)
		same(t, "emails", []any{emails.Active, emails.PipelineEvents, emails.Properties.Recipients, emails.Properties.BranchesToBeNotified}, []any{true, true, "team@example.org", "all"})
		same(t, "read", ask(h.ada.Services.GetPipelinesEmailService(p.ID)).ok(t).Properties.Recipients, "team@example.org")
		send(h.ada.Services.DeletePipelinesEmailService(p.ID)).ok(t)
		ask(h.ada.Services.SetExternalWikiService(p.ID, &gitlab.SetExternalWikiServiceOptions{ExternalWikiURL: new("https://wiki.example.org")})).ok(t)
		same(t, "wiki", ask(h.ada.Services.GetExternalWikiService(p.ID)).ok(t).Properties.ExternalWikiURL, "https://wiki.example.org")
		send(h.ada.Services.DeleteExternalWikiService(p.ID)).ok(t)

		var made struct{ Token string }
		create, err := h.ada.NewRequest(http.MethodPost, fmt.Sprintf("projects/%d/alert_management/http_integrations", p.ID), map[string]any{"name": "i", "type": "http"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		send(h.ada.Do(create, &made)).done(t, http.StatusCreated)
		alert, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/strict/p/alerts/notify.json", strings.NewReader(`{"title":"Slow"}`))
		if err != nil {
			t.Fatal(err)
		}
		alert.Header.Set("Content-Type", "application/json")
		alert.Header.Set("Authorization", "Bearer "+made.Token)
		answer, err := http.DefaultClient.Do(alert)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		var picture bytes.Buffer
		if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
			t.Fatal(err)
		}
		added := ask(h.ada.AlertManagement.UploadMetricImage(p.ID, 1, &picture, "graph.png", &gitlab.UploadMetricImageOptions{URL: new("https://example.org"), URLText: new("Graph")})).done(t, http.StatusCreated)
		same(t, "image", []any{added.Filename, added.URL, added.URLText}, []any{"graph.png", "https://example.org", "Graph"})
		ask(h.ada.AlertManagement.UpdateMetricImage(p.ID, 1, added.ID, &gitlab.UpdateMetricImageOptions{URLText: new("Latency")})).ok(t)
		same(t, "images", ask(h.ada.AlertManagement.ListMetricImages(p.ID, 1, nil)).ok(t)[0].URLText, "Latency")
		send(h.ada.AlertManagement.DeleteMetricImage(p.ID, 1, added.ID)).ok(t)
	})
}
