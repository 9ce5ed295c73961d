package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/outbound"
	"svc/internal/transfer/archive"
)

// taken is an Output in memory.
type taken struct {
	rows  map[archive.Part][]any
	files map[string]string
}

func newTaken() *taken { return &taken{map[archive.Part][]any{}, map[string]string{}} }

func (t *taken) Row(p archive.Part, row any) error {
	t.rows[p] = append(t.rows[p], row)
	return nil
}

func (t *taken) File(p archive.Part, name string, fill func(io.Writer) (bool, error)) error {
	var b strings.Builder
	ok, err := fill(&b)
	if ok && err == nil {
		t.files[string(p)+"/"+name] = b.String()
	}
	return err
}

func (*taken) Next() {}

// source serves answers by path, below the API.
type source map[string]http.HandlerFunc

func (s source) start(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4")
		handler := s[path]
		if !ok || handler == nil {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// small are limits that a test reaches.
func small() Limits {
	return Limits{Body: 1 << 20, Total: 8 << 20, Held: 2 << 20, Items: 100, File: 1 << 10, Wait: time.Hour, Request: time.Minute, Tries: 2, Pause: time.Millisecond}
}

func open(t testing.TB, url string, l Limits) *Client {
	t.Helper()
	c, err := Open(Options{URL: url, Token: "token", Policy: outbound.Policy{Local: true}, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// read runs a step of a project with the ID 7.
func read(t testing.TB, c *Client, step string) (*taken, []Skipped, error) {
	t.Helper()
	out := newTaken()
	var skipped []Skipped
	r := &Reader{
		Client: c, State: &State{ID: 7, FullPath: "group/app", Path: "app", Files: []File{{Secret: strings.Repeat("a", 32), Name: "../../etc/passwd"}}}, Members: true, Digests: true,
		Skip:     func(s Skipped) { skipped = append(skipped, s) },
		Settings: func(map[string]json.RawMessage) json.RawMessage { return nil }, Rules: func(map[string]json.RawMessage) json.RawMessage { return nil },
		GroupSettings: func(map[string]json.RawMessage) archive.SettingsRow { return archive.SettingsRow{} },
	}
	for _, s := range append(r.ProjectSteps("group/app"), r.GroupSteps("group", true)...) {
		if s.Name == step {
			return out, skipped, s.Run(t.Context(), out)
		}
	}
	t.Fatalf("there is no step %s", step)
	return nil, nil, nil
}

// TestHostileSource reads sources that do what they should not. Each gives an error in
// words, or leaves out what is wrong.
func TestHostileSource(t *testing.T) {
	t.Parallel()
	pages := func(link func(page string) string) http.HandlerFunc {
		n := atomic.Int64{}
		return func(w http.ResponseWriter, r *http.Request) {
			if link != nil {
				w.Header().Set("Link", link(r.URL.Query().Get("page")))
			} else {
				w.Header().Set("X-Next-Page", fmt.Sprint(n.Load()+2))
			}
			fmt.Fprintf(w, `[{"iid":%d,"project_id":7,"title":"x"}]`, n.Add(1))
		}
	}
	var noted atomic.Int64
	for _, c := range []struct {
		name, step string
		from       source
		want       string // of the error
	}{
		{"endless pages", "issues", source{"/projects/7/issues": pages(nil)}, "more than 100 items"},
		{"a page that leads to itself", "issues", source{"/projects/7/issues": pages(func(string) string { return `<http://127.0.0.1:1/elsewhere?page=2>; rel="next"` })}, "repeats a page"},
		{"a huge body", "planning", source{"/projects/7/labels": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[{"name":"`)
			for range 64 {
				if _, err := w.Write(bytes.Repeat([]byte("a"), 64<<10)); err != nil {
					return
				}
			}
		}}, "too large"},
		{"a body of endless items", "planning", source{"/projects/7/labels": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[1`)
			for range 200_000 {
				if _, err := io.WriteString(w, `,1`); err != nil {
					return
				}
			}
		}}, "more than 10000 items"},
		{"endless notes of an issue", "issues", source{"/projects/7/issues": says(`[{"iid":1,"project_id":7}]`), "/projects/7/issues/1/discussions": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Next-Page", fmt.Sprint(len(r.URL.RawQuery)+int(noted.Add(1))))
			_, _ = io.WriteString(w, `[{"id":"ab","notes":[{"id":1,"body":"`+strings.Repeat("a", 900<<10)+`"}]}]`)
		}}, "everything that belongs to it"},
		{"many empty notes of an issue", "issues", source{"/projects/7/issues": says(`[{"iid":1,"project_id":7}]`), "/projects/7/issues/1/discussions": func(w http.ResponseWriter, _ *http.Request) {
			thread := `{"id":"ab","notes":[{}` + strings.Repeat(`,{}`, 3000) + `]}`
			_, _ = io.WriteString(w, `[`+thread+`,`+thread+`,`+thread+`]`)
		}}, "everything that belongs to it"},
		{"a project with many topics", "project", source{"/projects/group%2Fapp": says(`{"id":7,"topics":[""` + strings.Repeat(`,""`, 5000) + `]}`)}, "too many values"},
		{"no list", "planning", source{"/projects/7/labels": says(`{"a":1}`)}, "does not answer with a list"},
		{"no JSON", "planning", source{"/projects/7/labels": says(`<html>`)}, "does not answer with JSON"},
		{"an answer that breaks off", "planning", source{"/projects/7/labels": says(`[{"name":"a"},`)}, "breaks off"},
		{"no project", "project", source{"/projects/group%2Fapp": says(`[]`)}, "does not answer like a server of the v4 API"},
		{"a project without an ID", "project", source{"/projects/group%2Fapp": says(`{"id":-1}`)}, "does not answer like a server of the v4 API"},
		{"a redirect to metadata", "project", source{"/projects/group%2Fapp": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		}}, "redirects to another address"},
		{"an absurd pause", "project", source{"/projects/group%2Fapp": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		}}, "asks for a pause of"},
		{"a limit without an end", "project", source{"/projects/group%2Fapp": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }}, "limits the rate of requests"},
		{"a token that is refused", "project", source{"/projects/group%2Fapp": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }}, "refused the access token"},
		{"an error that stays", "issues", source{"/projects/7/issues": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}, "HTTP 502"},
		{"no repository", "repository", source{}, "repository was not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, open(t, c.from.start(t).URL, small()), c.step)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// TestSlowSource ends a request whose answer comes byte by byte.
func TestSlowSource(t *testing.T) {
	t.Parallel()
	s := source{"/projects/7/labels": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `[`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}}.start(t)
	l := small()
	l.Request = 50 * time.Millisecond
	_, _, err := read(t, open(t, s.URL, l), "planning")
	if err == nil || !strings.Contains(err.Error(), "too slowly") && !strings.Contains(err.Error(), "in time") {
		t.Errorf("the error is %v", err)
	}
}

// TestSourcePause waits as the source asks, and then goes on.
func TestSourcePause(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := source{"/projects/7/labels": func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.Header().Set("RateLimit-Remaining", "0")
			w.Header().Set("RateLimit-Reset", "1")
			_, _ = io.WriteString(w, `[{"name":"a","color":"#ff0000"}]`)
		}
	}}.start(t)
	out, _, err := read(t, open(t, s.URL, small()), "planning")
	if err != nil || len(out.rows[archive.LabelPart]) != 1 || asked.Load() != 2 {
		t.Errorf("%v, after %d requests: %v", out.rows, asked.Load(), err)
	}
	// A pause ends with the context.
	c := open(t, s.URL, small())
	c.pause = time.Now().Add(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one[userJSON](ctx, c, "/user", nil); err == nil {
		t.Error("a request was sent during the pause")
	}
}

// TestLocalSource does not reach the local network, and the token goes nowhere else.
func TestLocalSource(t *testing.T) {
	t.Parallel()
	s := source{"/projects/group%2Fapp": says(`{"id":7}`)}.start(t)
	c, err := Open(Options{URL: s.URL, Token: "token", Limits: small()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := read(t, c, "project"); err == nil || !strings.Contains(err.Error(), "local network") {
		t.Errorf("the API: %v", err)
	}
	if _, _, err := read(t, c, "repository"); err == nil || !strings.Contains(err.Error(), "local network") {
		t.Errorf("the repository: %v", err)
	}
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	s = source{
		"/projects/group%2Fapp": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
		"/projects/7/labels": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("page") == "" {
				w.Header().Set("Link", `<`+other.URL+`/api/v4/x?page=2&per_page=50>; rel="next"`)
			}
			_, _ = io.WriteString(w, `[{"name":"of page `+r.URL.Query().Get("page")+`"}]`)
		},
	}.start(t)
	c = open(t, s.URL, small())
	if _, _, err := read(t, c, "project"); err == nil {
		t.Error("a redirect was followed")
	}
	out, _, err := read(t, c, "planning")
	if err != nil || len(out.rows[archive.LabelPart]) != 2 || elsewhere.Load() != 0 {
		t.Errorf("%v, %v, and %d requests to another server", out.rows, err, elsewhere.Load())
	}
}

// TestWrongItems leaves out what is wrong, and takes the rest.
func TestWrongItems(t *testing.T) {
	t.Parallel()
	empty := says(`[]`)
	secret := strings.Repeat("b", 32)
	from := source{
		"/projects/7/issues": says(`[
			{"iid":"one","title":"wrong type"},
			{"iid":1,"project_id":7,"title":"first","description":"see /uploads/` + secret + `/a%2F..%2Fb.txt","created_at":"2026-01-02T03:04:05Z"},
			{"iid":1,"project_id":7,"title":"first again, the list has changed"},
			{"iid":2,"project_id":8,"title":"of another project"},
			{"iid":-3,"project_id":7,"title":"negative"},
			{"iid":4,"project_id":7,"title":"bad time","created_at":"yesterday"},
			{"iid":5,"project_id":7,"title":"more\u0000","labels":["a\u0000b"],"author":{"id":3,"username":"eve"},"assignees":[{"id":-1},{"id":3,"username":"eve"}]}]`),
		"/projects/7/issues/1/discussions": says(`[{"id":"../x","notes":[{"id":1,"body":"a"},{"id":1,"body":"twice"},{"id":2,"system":true,"body":"mentioned in issue other/project#5"}]}]`),
		"/projects/7/issues/1/links":       says(`[{"iid":9,"project_id":8,"link_type":"relates_to"}]`),
		"/projects/7/issues/1/award_emoji": empty, "/projects/7/issues/5/award_emoji": says(`[{"name":"x","user":null},"wrong"]`),
	}
	c := open(t, from.start(t).URL, small())
	out := newTaken()
	var skipped []Skipped
	r := &Reader{Client: c, State: &State{ID: 7, FullPath: "group/app"}, Skip: func(s Skipped) { skipped = append(skipped, s) }}
	if err := r.issues(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	issues := out.rows[archive.IssuePart]
	if len(issues) != 2 || issues[1].(archive.IssueRow).Title != "more" || issues[1].(archive.IssueRow).Labels[0] != "ab" || len(issues[1].(archive.IssueRow).Assignees) != 1 {
		t.Errorf("the issues are %+v", issues)
	}
	if notes := out.rows[archive.NotePart]; len(notes) != 1 || notes[0].(archive.NoteRow).Discussion != "01" {
		t.Errorf("the notes are %+v", notes)
	}
	if len(out.rows[archive.IssueLinkPart]) != 0 {
		t.Error("there is a link to another project")
	}
	why := fmt.Sprint(skipped)
	for _, want := range []string{"iid has the wrong type (string)", "parsing time", "of another project", "negative", "Links to issues of other projects", "Mentions in other projects", "it is a string instead of an object"} {
		if !strings.Contains(why, want) {
			t.Errorf("the report does not have %q: %s", want, why)
		}
	}
	// Names of files do not lead anywhere.
	files := source{"/projects/7/uploads/" + secret + "/a%2F..%2Fb.txt": says("content")}
	r.Client = open(t, files.start(t).URL, small())
	if err := r.uploads(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	rows := out.rows[archive.UploadPart]
	if len(rows) != 1 || rows[0].(archive.UploadRow).Name != "file" || out.files["uploads/"+secret] != "content" {
		t.Errorf("the uploads are %+v, %v", rows, out.files)
	}
}

// TestHostileTree leaves out groups and projects whose paths lead elsewhere.
func TestHostileTree(t *testing.T) {
	t.Parallel()
	from := source{
		"/groups/group": says(`{"id":1,"name":"Group","full_path":"../x"}`),
		"/groups/1/descendant_groups": says(`[{"id":2,"name":"b","full_path":"group/b"},{"id":3,"name":"c","full_path":"group/missing/c"},{"id":4,"full_path":"group/../../etc"},
			{"id":5,"full_path":"other/d"},{"id":2,"full_path":"group/again"},{"id":6,"full_path":"group/b"},{"id":7,"full_path":"group/b/e"}]`),
		"/groups/1/projects": says(`[{"id":1,"path_with_namespace":"group/one"},{"id":2,"path_with_namespace":"group/b/e/two"},{"id":3,"path_with_namespace":"other/three"},
			{"id":4,"path_with_namespace":"group/../four"},{"id":1,"path_with_namespace":"group/five"},{"id":6,"path_with_namespace":"group/b/e/ six"}]`),
	}
	r := &Reader{Client: open(t, from.start(t).URL, small()), State: &State{}, Skip: func(Skipped) {}}
	if err := r.tree(t.Context(), "group"); err != nil {
		t.Fatal(err)
	}
	if err := r.projects(t.Context()); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range append(r.Groups, r.Projects...) {
		paths = append(paths, p.Path)
	}
	if got, want := strings.Join(paths, " "), "group group/b group/b/e group/one group/b/e/two"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.org": "https://example.org", " https://example.org/ ": "https://example.org", "http://example.org:8080/git/": "http://example.org:8080/git",
		"https://example.org/api/v4/": "https://example.org",
	} {
		if got, err := ParseURL(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "example.org", "ftp://example.org", "https://", "https://a:b@example.org", "https://example.org?x", "https://example.org/#x", "https:example.org", "https://example.org/\n" + strings.Repeat("a", 2000)} {
		if got, err := ParseURL(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// answering is a transport that answers each request with the same text.
type answering string

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

// FuzzAnswers has every step read one text as the answer to all its requests. None may
// panic, and what they return can be encoded.
func FuzzAnswers(f *testing.F) {
	f.Add(`[{"id":1,"iid":1,"project_id":7,"title":"x","author":{"id":1,"username":"a"},"notes":[{"id":1,"body":"/uploads/` + strings.Repeat("a", 32) + `/x","type":"DiffNote","position":{"new_path":"a","head_sha":"b","position_type":"text"}}],"tag_name":"v","state":"merged","head_commit_sha":"a","real_size":"1+"}]`)
	f.Add(`{"id":1,"full_path":"a","approved_by":[{"user":null}]}`)
	f.Add(`[null,1,"x",{}]`)
	f.Add(`[{"system":true,"body":"mentioned in issue #1","lists":[{}],"push_access_levels":[{"user_id":3},{"group_id":1}]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Open(Options{URL: "http://source.example", Token: "t", Limits: Limits{Items: 200, Tries: 1, Body: 1 << 16, File: 1 << 10, Pause: 1}})
		if err != nil {
			t.Fatal(err)
		}
		c.client.Transport = answering(text)
		r := &Reader{
			Client: c, State: &State{ID: 7, FullPath: "group/app", Groups: []Place{{ID: 1, Path: "group/app"}}}, Members: true, Digests: true, Skip: func(Skipped) {},
			Settings: func(map[string]json.RawMessage) json.RawMessage { return nil }, Rules: func(map[string]json.RawMessage) json.RawMessage { return nil },
			GroupSettings: func(map[string]json.RawMessage) archive.SettingsRow { return archive.SettingsRow{} },
		}
		out := newTaken()
		for _, s := range append(r.ProjectSteps("group/app"), r.GroupSteps("group/app", true)...) {
			if s.Name == "repository" || s.Name == "snippets" || s.Name == "groups" { // they read repositories
				continue
			}
			if err := s.Run(t.Context(), out); err != nil && err.Error() == "" {
				t.Errorf("%s fails without a reason", s.Name)
			}
		}
		for part, rows := range out.rows {
			if _, err := json.Marshal(rows); err != nil {
				t.Errorf("%s: %v", part, err)
			}
		}
		if _, err := json.Marshal(r.State); err != nil {
			t.Error(err)
		}
	})
}
