package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getsentry/sentry-go"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestErrorTracking enables error tracking with the public client, and receives
// errors from programs with the public SDKs.
func TestErrorTracking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
			Email: new("ada@example.org"), Name: new("Ada"), Username: new("ada"), Password: new(password), SkipConfirmation: new(true),
		})).ok(t)
		p := ask(root.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("Shop"), Path: new("shop")})).ok(t)
		ask(root.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: new(u.ID), AccessLevel: new(gitlab.DeveloperPermissions)})).ok(t)
		dsn := goErrorTracking(t, root, p.ID)
		b := newBrowser(t, s)
		b.signIn(t, "ada")
		at := s.url + "/root/shop/-/error_tracking"
		t.Run("sentry-go", func(t *testing.T) { goPanics(t, b, at, dsn) })
		t.Run("sentry-node", func(t *testing.T) { nodeFalls(t, b, at, dsn) })
	}, "SVC_ERROR_BACKEND_NAME=sentry")
}

// goErrorTracking enables error tracking and returns the DSN for SDKs.
func goErrorTracking(t *testing.T, root *gitlab.Client, id int64) string {
	t.Helper()
	ask(root.ErrorTracking.GetErrorTrackingSettings(id)).missing(t)
	var set struct{ Active, Integrated bool }
	r, err := root.NewRequest(http.MethodPut, fmt.Sprintf("projects/%d/error_tracking/settings", id), map[string]bool{"active": true, "integrated": true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Do(r, &set); err != nil || !set.Active || !set.Integrated {
		t.Fatalf("set up %+v: %v", set, err)
	}
	off := ask(root.ErrorTracking.EnableDisableErrorTracking(id, &gitlab.EnableDisableErrorTrackingOptions{Active: new(false)})).ok(t)
	same(t, "turned off", off.Active, false)
	on := ask(root.ErrorTracking.EnableDisableErrorTracking(id, &gitlab.EnableDisableErrorTrackingOptions{Active: new(true), Integrated: new(true)})).ok(t)
	same(t, "turned on", on.Active && on.Integrated, true)
	same(t, "read again", ask(root.ErrorTracking.GetErrorTrackingSettings(id)).ok(t).Integrated, true)
	made := ask(root.ErrorTracking.CreateClientKey(id)).done(t, http.StatusCreated)
	list := ask(root.ErrorTracking.ListClientKeys(id, nil)).ok(t)
	if len(list) != 2 || list[1].SentryDsn != made.SentryDsn || !strings.Contains(made.SentryDsn, made.PublicKey) {
		t.Fatalf("keys: %+v", list)
	}
	send(root.ErrorTracking.DeleteClientKey(id, list[0].ID)).done(t, http.StatusNoContent)
	return made.SentryDsn
}

var errNoPears = errors.New("there are no pears")

func pick() { panic(fmt.Errorf("pick: %w", errNoPears)) }

// goPanics reports a recovered panic with the Go SDK.
func goPanics(t *testing.T, b *browser, at, dsn string) {
	client, err := sentry.NewClient(sentry.ClientOptions{Dsn: dsn, Release: "orchard@2", Environment: "production", AttachStacktrace: true})
	if err != nil {
		t.Fatal(err)
	}
	hub := sentry.NewHub(client, sentry.NewScope())
	hub.Scope().SetTag("tree", "old")
	for i := range 2 {
		hub.Scope().SetUser(sentry.User{ID: fmt.Sprint(i)})
		func() {
			defer func() { hub.Recover(recover()) }()
			pick()
		}()
	}
	if id := hub.CaptureMessage("the orchard is closed"); id == nil {
		t.Error("the message was not taken")
	}
	if !hub.Flush(10 * time.Second) {
		t.Fatal("the SDK could not send")
	}
	list, _ := b.open(t, at+"?search=pears", nil)
	if !strings.Contains(list, "<b>2</b> events") || !strings.Contains(list, "<b>2</b> users") {
		t.Fatalf("the list has no two events of two users: %s", list)
	}
	page := b.follow(t, list)
	for _, want := range []string{"there are no pears", "errors.errorString", "pick", "orchard@2", "production", `<span class="muted">tree</span> old`, "sentry.go"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if list, _ := b.open(t, at+"?search=orchard+is+closed", nil); !strings.Contains(list, "<b>1</b> event") {
		t.Errorf("the message is not there: %s", list)
	}
}

var detailsLink = regexp.MustCompile(`href="(/[^"]+/details)"`)

// follow opens the first error of a list.
func (b *browser) follow(t *testing.T, list string) string {
	t.Helper()
	m := detailsLink.FindStringSubmatch(list)
	if m == nil {
		t.Fatalf("the list has no error: %s", list)
	}
	page, _ := b.open(t, b.s.url+m[1], nil)
	return html.UnescapeString(page)
}

// packages installs the SDKs in the versions of the lock file, once.
var packages = sync.OnceValue(func() error {
	if _, err := os.Stat(filepath.Join("node", "node_modules", "@sentry", "node", "package.json")); err == nil {
		return nil
	}
	fetch := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	fetch.Dir = "node"
	if out, err := fetch.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// nodeFalls runs a program with an uncaught exception.
func nodeFalls(t *testing.T, b *browser, at, dsn string) {
	if err := packages(); err != nil {
		t.Fatalf("the SDK is missing, run scripts/setup: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "uncaught.js")
	cmd.Dir = "node"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "COMPAT_DSN=" + dsn}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "TypeError") {
		t.Fatalf("the program ended with %v: %s", err, out)
	}
	list, _ := b.open(t, at+"?environment=staging", nil)
	if !strings.Contains(list, "<b>1</b> event") {
		t.Fatalf("the list has no event: %s", list)
	}
	page := b.follow(t, list)
	for _, want := range []string{
		"TypeError", "checkOut", "return cart.items.length; // cart is undefined", "function checkOut(cart) {", "uncaught.js", "shop@1.2.3", "Unhandled",
		"put a pear into the cart", `<span class="muted">page</span> cart`, "sentry.javascript.node " + nodeVersion(t),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// nodeVersion returns the version of the SDK in the lock file.
func nodeVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("node", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ DevDependencies map[string]string }
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p.DevDependencies["@sentry/node"]
}
