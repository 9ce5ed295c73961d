package compat

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientInstance(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		plain := s.client(t, newToken(t, root, newUser(t, root, "plain").ID, "api").Token)
		t.Run("version", func(t *testing.T) { goVersion(t, plain) })
		t.Run("statistics", func(t *testing.T) {
			if n := ask(root.ApplicationStatistics.GetApplicationStatistics()).ok(t); n.Users < 2 || n.ActiveUsers < 2 {
				t.Errorf("statistics: %+v", n)
			}
			ask(plain.ApplicationStatistics.GetApplicationStatistics()).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
		})
		t.Run("variables", func(t *testing.T) { goVariables(t, root, plain) })
		t.Run("settings", func(t *testing.T) { goSettings(t, root, plain) })
		t.Run("audit", func(t *testing.T) { goAudit(t, root, plain) })
		t.Run("limits", func(t *testing.T) { goLimits(t, s, root) })
	})
}

// number is the format of a version that clients parse.
var number = regexp.MustCompile(`^(1[89]|17\.1[1-9]|[2-9]\d)(\.\d+)+$`)

func goVersion(t *testing.T, c *gitlab.Client) {
	version := ask(c.Version.GetVersion()).ok(t)
	if !number.MatchString(version.Version) || version.Revision == "" {
		t.Errorf("version %+v, want 17.11.0 or later", version)
	}
	meta := ask(c.Metadata.GetMetadata()).ok(t)
	same(t, "metadata", *meta, gitlab.Metadata{Version: version.Version, Revision: version.Revision, Enterprise: true})
}

func goVariables(t *testing.T, root, plain *gitlab.Client) {
	made := ask(root.InstanceVariables.CreateVariable(&gitlab.CreateInstanceVariableOptions{
		Key: new("DEPLOY_KEY"), Value: new(hidden), Description: new("for the deploy job"),
		VariableType: new(gitlab.FileVariableType), Masked: new(true), Protected: new(true), Raw: new(true),
	})).done(t, http.StatusCreated)
	want := &gitlab.InstanceVariable{
		Key: "DEPLOY_KEY", Value: hidden, Description: "for the deploy job",
		VariableType: gitlab.FileVariableType, Masked: true, Protected: true, Raw: true,
	}
	same(t, "variable", made, want)
	same(t, "variable, read again", ask(root.InstanceVariables.GetVariable("DEPLOY_KEY")).ok(t), want)
	other := ask(root.InstanceVariables.CreateVariable(&gitlab.CreateInstanceVariableOptions{Key: new("EMPTY"), Value: new("")})).ok(t)
	same(t, "defaults", other, &gitlab.InstanceVariable{Key: "EMPTY", VariableType: gitlab.EnvVariableType})
	list, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.InstanceVariable, *gitlab.Response, error) {
		return root.InstanceVariables.ListVariables(&gitlab.ListInstanceVariablesOptions{ListOptions: gitlab.ListOptions{PerPage: 1}}, p)
	})
	if err != nil {
		t.Error(err)
	}
	same(t, "list", list, []*gitlab.InstanceVariable{want, other})

	want.Value, want.Masked, want.VariableType = hidden+"2", false, gitlab.EnvVariableType
	same(t, "changed", ask(root.InstanceVariables.UpdateVariable("DEPLOY_KEY", &gitlab.UpdateInstanceVariableOptions{
		Value: &want.Value, Masked: new(false), VariableType: new(gitlab.EnvVariableType),
	})).done(t, http.StatusOK), want)

	create := func(key, value string, masked bool) answer[*gitlab.InstanceVariable] {
		return ask(root.InstanceVariables.CreateVariable(&gitlab.CreateInstanceVariableOptions{Key: &key, Value: &value, Masked: &masked}))
	}
	create("EMPTY", "x", false).refused(t, http.StatusBadRequest, "{message: {key: [(EMPTY) has already been taken]}}")
	create("NOT-A-KEY", "x", false).refused(t, http.StatusBadRequest, "{message: {key: [can contain only letters, digits and '_'.]}}")
	create("SHORT", "x", true).refused(t, http.StatusBadRequest, "{message: {value: [is invalid: a masked value is one line of at least 8 characters without spaces]}}")
	ask(root.InstanceVariables.CreateVariable(&gitlab.CreateInstanceVariableOptions{})).
		refused(t, http.StatusBadRequest, "{error: key is missing, value is missing}")
	ask(root.InstanceVariables.GetVariable("NO_SUCH")).missing(t)
	ask(plain.InstanceVariables.ListVariables(nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")

	send(root.InstanceVariables.RemoveVariable("DEPLOY_KEY")).done(t, http.StatusNoContent)
	ask(root.InstanceVariables.GetVariable("DEPLOY_KEY")).missing(t)
}

func goSettings(t *testing.T, root, plain *gitlab.Client) {
	before := ask(root.Settings.GetSettings()).ok(t)
	same(t, "lifetime of tokens, length of passwords", []int64{before.MaxPersonalAccessTokenLifetime, before.MinimumPasswordLength}, []int64{365, 8})
	changed := ask(root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{
		DefaultProjectsLimit: new(int64(11)), UserDefaultExternal: new(true), CanCreateGroup: new(false), MinimumPasswordLength: new(int64(12)),
		AssetProxyEnabled: new(false), AssetProxyAllowlist: &[]string{"example.org", "*.example.net"},
	})).done(t, http.StatusOK)
	same(t, "image proxy", []any{before.AssetProxyEnabled, changed.AssetProxyEnabled, changed.AssetProxyAllowlist}, []any{true, false, []string{"example.org", "*.example.net"}})
	same(t, "limit, external, groups, length", []any{changed.DefaultProjectsLimit, changed.UserDefaultExternal, changed.CanCreateGroup, changed.MinimumPasswordLength},
		[]any{int64(11), true, false, int64(12)})
	u := newUser(t, root, "defaults")
	same(t, "what a new user gets", []any{u.ProjectsLimit, u.External, u.CanCreateGroup}, []any{int64(11), true, false})
	ask(root.Users.CreateUser(&gitlab.CreateUserOptions{Username: new("weak"), Name: new("W"), Email: new("weak@example.org"), Password: new("eight888")})).
		refused(t, http.StatusBadRequest, "{message: {password: [is too short (minimum is 12 characters)]}}")

	ask(root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{MinimumPasswordLength: new(int64(4))})).
		refused(t, http.StatusBadRequest, "{message: {minimum_password_length: [must be greater than or equal to 8]}}")
	ask(plain.Settings.GetSettings()).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	ask(root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{
		DefaultProjectsLimit: &before.DefaultProjectsLimit, UserDefaultExternal: new(false), CanCreateGroup: new(true), MinimumPasswordLength: new(int64(8)),
		AssetProxyEnabled: new(true), AssetProxyAllowlist: &[]string{},
	})).ok(t)
}

func goAudit(t *testing.T, root, plain *gitlab.Client) {
	u := newUser(t, root, "audited")
	if err := root.Users.BlockUser(u.ID); err != nil {
		t.Fatal(err)
	}
	list := ask(root.AuditEvents.ListInstanceAuditEvents(&gitlab.ListAuditEventsOptions{ListOptions: gitlab.ListOptions{PerPage: 2}}))
	events := list.ok(t)
	if len(events) != 2 || list.res.TotalItems < 5 {
		t.Fatalf("%d events of %d, want 2 of many", len(events), list.res.TotalItems)
	}
	blocked, created := events[0], events[1]
	same(t, "types", []string{blocked.EventType, created.EventType}, []string{"user_blocked", "user_created"})
	recent(t, "created_at", blocked.CreatedAt)
	same(t, "author, entity", []any{blocked.AuthorID, blocked.EntityID, blocked.EntityType}, []any{int64(1), u.ID, "User"})
	d := blocked.Details
	same(t, "details", []any{d.AuthorName, d.TargetType, d.TargetDetails, d.TargetID, d.IPAddress, d.From, d.To},
		[]any{"Administrator", "User", "audited", float64(u.ID), "127.0.0.1", "active", "blocked"})
	same(t, "one event", ask(root.AuditEvents.GetInstanceAuditEvent(blocked.ID)).ok(t), blocked)

	// Keyset and offset pagination return the same events.
	collect := func(o gitlab.ListAuditEventsOptions) []int64 {
		t.Helper()
		o.PerPage = 3
		all, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.AuditEvent, *gitlab.Response, error) {
			return root.AuditEvents.ListInstanceAuditEvents(&o, p)
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, e := range all {
			ids = append(ids, e.ID)
		}
		return ids
	}
	offset := collect(gitlab.ListAuditEventsOptions{})
	keyset := collect(gitlab.ListAuditEventsOptions{ListOptions: gitlab.ListOptions{Pagination: "keyset", OrderBy: "id", Sort: "desc"}})
	same(t, "keyset", keyset, offset)
	if !slices.IsSortedFunc(keyset, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("events are not the newest first: %v", keyset)
	}
	hour := time.Now().Add(time.Hour)
	if ids := collect(gitlab.ListAuditEventsOptions{CreatedAfter: &hour}); len(ids) != 0 {
		t.Errorf("events after the next hour: %v", ids)
	}
	same(t, "events before the next hour", collect(gitlab.ListAuditEventsOptions{CreatedBefore: &hour}), offset)
	ask(root.AuditEvents.GetInstanceAuditEvent(987654)).missing(t)
	ask(plain.AuditEvents.ListInstanceAuditEvents(nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
}

// goLimits enables a rate limit. The client throttles itself according to the
// headers; one that does not waits and retries when it exceeds the limit.
func goLimits(t *testing.T, s *server, root *gitlab.Client) {
	ask(root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{
		ThrottleAuthenticatedAPIEnabled:           new(true),
		ThrottleAuthenticatedAPIRequestsPerPeriod: new(int64(3)),
		ThrottleAuthenticatedAPIPeriodInSeconds:   new(int64(3)),
	})).ok(t)
	over := 0
	hasty, err := gitlab.NewClient(rootToken, gitlab.WithBaseURL(s.url), gitlab.WithCustomLimiter(noLimit{}),
		gitlab.WithResponseLogHook(func(_ retryablehttp.Logger, res *http.Response) {
			if res.StatusCode == http.StatusTooManyRequests {
				over++
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	first := ask(hasty.Users.CurrentUser())
	first.ok(t)
	same(t, "RateLimit-Limit, per minute", first.res.Header.Get("RateLimit-Limit"), "60")
	for range 4 {
		ask(hasty.Users.CurrentUser()).ok(t)
	}
	if over == 0 {
		t.Error("five requests at once are within a limit of three")
	}
	ask(root.Settings.UpdateSettings(&gitlab.UpdateSettingsOptions{ThrottleAuthenticatedAPIEnabled: new(false)})).ok(t)
}

// TestGoClientNames starts the server with the names that clients of the public
// service expect.
func TestGoClientNames(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		token := newToken(t, root, u.ID, "api")
		if !regexp.MustCompile(`^glpat-[A-Za-z0-9_-]{20,}$`).MatchString(token.Token) {
			t.Error("the token is not named after the service")
		}
		same(t, "user of the token", ask(s.client(t, token.Token).Users.CurrentUser()).ok(t).Username, "ada")

		ask(root.InstanceVariables.CreateVariable(&gitlab.CreateInstanceVariableOptions{Key: new("A"), Value: new("b")})).ok(t)
		for _, name := range []string{"Gitlab::Audit::InstanceScope", "Svc::Audit::InstanceScope"} {
			events := ask(root.AuditEvents.ListInstanceAuditEvents(nil, query("entity_type", name))).ok(t)
			if len(events) != 1 || events[0].EntityType != "Gitlab::Audit::InstanceScope" || events[0].EventType != "ci_instance_variable_created" {
				t.Errorf("events with the type %s: %+v", name, events)
			}
		}
		goFileHead(t, root)
	}, "SVC_SERVICE_NAME=gitlab", "SVC_ERROR_BACKEND_NAME=sentry")
}

// query adds a parameter for which the client has no option.
func query(name, value string) gitlab.RequestOptionFunc {
	return func(r *retryablehttp.Request) error {
		q := r.URL.Query()
		q.Set(name, value)
		r.URL.RawQuery = q.Encode()
		return nil
	}
}

// noLimit disables the rate limit of the client.
type noLimit struct{}

// Wait implements gitlab.RateLimiter.
func (noLimit) Wait(context.Context) error { return nil }
