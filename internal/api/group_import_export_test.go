package api_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
	"svc/internal/project"
)

// sendImport uploads a file to be imported as a group, with the fields as name,
// value pairs.
func sendImport(t testing.TB, s *apptest.Server, token string, file []byte, fields ...string) apptest.Answer {
	t.Helper()
	return sendExport(t, s, "/groups/import", token, file, fields...)
}

// sendExport sends a form with an export file and the fields.
func sendExport(t testing.TB, s *apptest.Server, path, token string, file []byte, fields ...string) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	if file != nil {
		part, err := form.CreateFormFile("file", "export.tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(file)
	}
	_ = form.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v4"+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	if token != "" {
		r.Header.Set("PRIVATE-TOKEN", token)
	}
	return s.Exchange(t, r)
}

// settled waits until the background jobs are done.
func settled(t testing.TB, s *apptest.Server) {
	t.Helper()
	if err := s.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// exported exports a group and returns the file.
func exported(t testing.TB, s *apptest.Server, token string, group int64) []byte {
	t.Helper()
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/export", group), As: token, Status: 202, Want: `{"message":"202 Accepted"}`})
	settled(t, s)
	a := s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/%d/export/download", group), As: token, Status: 200, WantHeader: map[string]string{"Content-Type": "application/gzip"}})
	return a.Body
}

// imported imports a file and returns the ID of the import.
func imported(t testing.TB, s *apptest.Server, token string, file []byte, fields ...string) int64 {
	t.Helper()
	a := sendImport(t, s, token, file, fields...)
	if a.Status != 202 || strings.TrimSpace(string(a.Body)) != `{"message":"202 Accepted"}` {
		t.Fatalf("status %d: %s", a.Status, a.Body)
	}
	settled(t, s)
	var list []struct{ ID int64 }
	s.Send(t, apptest.Call{Do: "GET /group_imports", As: token}).JSON(t, &list)
	if want := fmt.Sprintf("%s/api/v4/group_imports/%d", s.URL, list[0].ID); a.Header.Get("Location") != want {
		t.Errorf("Location %s, want %s", a.Header.Get("Location"), want)
	}
	return list[0].ID
}

// entries returns the contents of the entries of an export file, by name.
func entries(t testing.TB, file []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(text)
	}
}

func TestGroupTransfer(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		g := group(t, s, alice, "top", `,"visibility":"public","description":"Ours","project_creation_level":"maintainer","default_branch":"trunk"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		at, below := fmt.Sprintf("/groups/%d", g), fmt.Sprintf("/groups/%d", sub)
		var label, milestone struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"bug <b>","color":"#ff0000","description":"Wrong"}`, Status: 201}).JSON(t, &label)
		s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"gone"}`, Status: 201}).JSON(t, &milestone)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/milestones/%d", at, milestone.ID), As: alice, Status: 204})
		s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: `{"title":"1.0","due_date":"2030-01-02"}`, Status: 201}).JSON(t, &milestone)
		var board struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + below + "/boards", As: alice, JSON: `{"name":"Work"}`, Status: 201}).JSON(t, &board)
		lists := fmt.Sprintf("POST %s/boards/%d/lists", below, board.ID)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("PUT %s/boards/%d", below, board.ID), As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d,"assignee_id":%d,"weight":3,"labels":"bug <b>"}`, milestone.ID, bobID), Status: 200},
			{Do: lists, As: alice, JSON: fmt.Sprintf(`{"label_id":%d}`, label.ID), Status: 201},
			{Do: lists, As: alice, JSON: fmt.Sprintf(`{"assignee_id":%d}`, carolID), Status: 201},
			{Do: lists, As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d}`, milestone.ID), Status: 201},
			{Do: "POST " + at + "/badges", As: alice, JSON: `{"name":"B","link_url":"https://example.org/%{project_path}","image_url":"https://example.org/x.svg"}`, Status: 201},
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30,"expires_at":"2100-01-01"}`, bobID), Status: 201},
			{Do: "POST " + below + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, carolID), Status: 201},
			{Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"home","content":"# Hi"}`, Status: 201},

			{Name: "none yet", Do: "GET " + at + "/export", As: alice, Status: 200, Want: fmt.Sprintf(`{"id":%d,"path":"top","path_with_namespace":"top","export_status":"none","progress":0}`, g), Not: []string{"_links"}},
			{Name: "nothing to download", Do: "GET " + at + "/export/download", As: alice, Status: 404, Want: `{"message":"404 Not found or has expired"}`},
			{Name: "not for members", Do: "POST " + at + "/export", As: bob, Status: 403},
			{Name: "nor others", Do: "POST " + at + "/export", As: carol, Status: 403},
			{Name: "nor anonymous", Do: "POST " + at + "/export", Status: 401},
		})
		file := exported(t, s, alice, g)
		s.Table(t, []apptest.Call{
			{Name: "ready", Do: "GET " + at + "/export", As: alice, Status: 200,
				Want: fmt.Sprintf(`{"export_status":"finished","progress":100,"error":null,"size":%d,"expires_at":"<any>","_links":{"api_url":"%s/api/v4/groups/%d/export/download"}}`, len(file), s.URL, g)},
			{Name: "not for members either", Do: "GET " + at + "/export/download", As: bob, Status: 403},
			{Name: "recorded", Do: "GET " + at + "/audit_events", As: alice, Status: 200, Want: `[{"event_type":"group_export_created"},{},{}]`},
		})
		notified(t, post, "Export of top is ready", "can download the file until", s.URL+"/groups/top/-/settings/export")
		have := entries(t, file)
		for name, want := range map[string]string{
			"manifest.json":              `"full_path": "top"`,
			"groups/1/group.ndjson":      `"project_creation_level":"maintainer"`,
			"groups/1/labels.ndjson":     `{"name":"bug <b>","color":"#ff0000","description":"Wrong",`,
			"groups/1/milestones.ndjson": `{"iid":2,"title":"1.0",`,
			"groups/1/badges.ndjson":     `"link_url":"https://example.org/%{project_path}"`,
			"groups/1/members.ndjson":    `"access_level":30,"expires_at":"2100-01-01"`,
			"groups/1/wiki.bundle":       "# v2 git bundle",
			"groups/2/group.ndjson":      `{"path":"sub","name":"SUB",`,
			"groups/2/boards.ndjson":     `{"label":{"group":1,"title":"bug <b>"}}`,
			"totals.json":                `"members": 4`,
		} {
			if !strings.Contains(have[name], want) {
				t.Errorf("%s is %s", name, have[name])
			}
		}

		// An imported top-level group is private. Only imports by administrators map
		// members.
		id := imported(t, s, alice, file, "name", "Copy", "path", "copy")
		var made struct {
			GroupID int64 `json:"group_id"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /group_imports/%d", id), As: alice, Status: 200, Want: `{"name":"Copy","path":"copy","parent_id":null,"status":"finished","progress":100,"error":null,
			"imported":{"groups":2,"avatars":0,"labels":1,"milestones":1,"boards":1,"badges":1,"members":4,"wikis":1},
			"unmapped":[{"thing":"member","group":"","name":"alice","reason":"members and assignees are mapped only in imports by an administrator"},{"thing":"member","group":"","name":"bob"},
				{"thing":"board","group":"sub","name":"Work, its assignee bob","reason":"<any>"},{"thing":"board","group":"sub","name":"Work, the list of assignee carol"},
				{"thing":"member","group":"sub","name":"alice"},{"thing":"member","group":"sub","name":"carol"}],
			"unmapped_total":{"member":4,"board":2}}`}).JSON(t, &made)
		notified(t, post, "Group copy was imported", "imported from the file that you uploaded", fmt.Sprintf("%s/-/group_imports/%d", s.URL, id))
		copied := fmt.Sprintf("/groups/%d", made.GroupID)
		s.Table(t, []apptest.Call{
			{Do: "GET " + copied, As: alice, Status: 200, Want: `{"name":"Copy","full_path":"copy","full_name":"Copy","visibility":"private","description":"Ours","project_creation_level":"maintainer","default_branch":"trunk"}`},
			{Do: "GET /groups/copy%2Fsub", As: alice, Status: 200, Want: `{"name":"SUB","full_name":"Copy / SUB","visibility":"private"}`},
			{Do: "GET " + copied + "/labels", As: alice, Status: 200, Want: `[{"name":"bug <b>","color":"#ff0000","description":"Wrong"}]`},
			{Do: "GET " + copied + "/milestones", As: alice, Status: 200, Want: `[{"iid":2,"title":"1.0","due_date":"2030-01-02"}]`},
			{Name: "numbers go on", Do: "POST " + copied + "/milestones", As: alice, JSON: `{"title":"2.0"}`, Status: 201, Want: `{"iid":3}`},
			{Do: "GET " + copied + "/badges", As: alice, Status: 200, Want: `[{"name":"B"}]`},
			{Do: "GET " + copied + "/members", As: alice, Status: 200, Want: `[{"username":"alice","access_level":50}]`},
			{Do: "GET /groups/copy%2Fsub/boards", As: alice, Status: 200, Want: `[{"name":"Work","milestone":{"title":"1.0"},"assignee":null,"weight":3,"labels":[{"name":"bug <b>"}],
				"lists":[{"label":{"name":"bug <b>"}},{"milestone":{"title":"1.0"}}]}]`},
			{Do: "GET " + copied + "/wikis/home", As: alice, Status: 200, Want: `{"content":"# Hi"}`},
			{Name: "for those who may", Do: "GET " + copied, As: bob, Status: 404},
			{Name: "recorded", Do: "GET " + copied + "/audit_events", As: alice, Status: 200, Want: `[{"event_type":"group_imported","details":{"custom_message":"Group imported with 0 members, 1 subgroups"}}]`},
			{Name: "another user's import", Do: fmt.Sprintf("GET /group_imports/%d", id), As: bob, Status: 404},
			{Name: "an administrator", Do: fmt.Sprintf("GET /group_imports/%d", id), As: apptest.RootToken, Status: 200},
		})

		// An imported subgroup has the visibility of its parent.
		open := group(t, s, alice, "open", `,"visibility":"internal"`)
		imported(t, s, alice, file, "name", "Copy", "path", "copy", "parent_id", fmt.Sprint(open))
		s.Table(t, []apptest.Call{
			{Do: "GET /groups/open%2Fcopy", As: alice, Status: 200, Want: fmt.Sprintf(`{"visibility":"internal","parent_id":%d,"full_name":"OPEN / Copy"}`, open)},
			{Do: "GET /groups/open%2Fcopy%2Fsub", As: carol, Status: 200, Want: `{"visibility":"internal","full_name":"OPEN / Copy / SUB"}`},
			{Do: fmt.Sprintf("GET /groups/%d/descendant_groups", open), As: alice, Status: 200, Want: `[{},{}]`},
		})

		// A new export replaces the previous one; exports are deleted after a week.
		exported(t, s, alice, g)
		s.Clock.Move(8 * 24 * time.Hour)
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/export/download", As: alice, Status: 404, Want: `{"message":"404 Not found or has expired"}`},
			{Do: "GET " + at + "/export", As: alice, Status: 200, Want: `{"export_status":"none"}`},
		})
	})
}

// TestGroupMembersAreNotProbed checks that an export by an owner does not reveal the
// email addresses of members, and that an import does not reveal which addresses
// have accounts.
func TestGroupMembersAreNotProbed(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		carolID, _ := s.User(t, "carol")
		malloryID, mallory := s.User(t, "mallory")
		g := group(t, s, alice, "top", "")
		at := fmt.Sprintf("/groups/%d", g)
		var board struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/boards", As: alice, JSON: `{"name":"Work"}`, Status: 201}).JSON(t, &board)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID), Status: 201},
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, carolID), Status: 201},
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, malloryID), Status: 201},
			{Do: fmt.Sprintf("PUT %s/boards/%d", at, board.ID), As: alice, JSON: fmt.Sprintf(`{"assignee_id":%d}`, bobID), Status: 200},
		})
		sum := sha256.Sum256([]byte("bob@example.org"))
		digest := hex.EncodeToString(sum[:])

		// An export by an owner has no digests of addresses; one by an administrator
		// has.
		for name, text := range entries(t, exported(t, s, alice, g)) {
			if strings.Contains(text, digest) || strings.Contains(text, "@example.org") {
				t.Errorf("%s of the export by an owner has an address: %s", name, text)
			}
		}
		file := exported(t, s, apptest.RootToken, g)
		if have := entries(t, file); !strings.Contains(have["groups/1/members.ndjson"], digest) || !strings.Contains(have["groups/1/boards.ndjson"], digest) {
			t.Errorf("the export by an administrator has no digests: %v", have)
		}
		// The owner goes on seeing only the export without digests.
		s.Check(t, apptest.Call{Do: "GET " + at + "/export", As: alice, Status: 200, Want: `{"export_status":"finished"}`})
		own := s.Check(t, apptest.Call{Do: "GET " + at + "/export/download", As: alice, Status: 200}).Body
		for name, text := range entries(t, own) {
			if strings.Contains(text, digest) {
				t.Errorf("an owner gets %s of the file of an administrator: %s", name, text)
			}
		}

		// The import report is the same for addresses with and without an account:
		// carol's is changed, bob's still has one.
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE emails SET email = 'elsewhere@example.org' WHERE user_id = ?`, carolID); err != nil {
			t.Fatal(err)
		}
		id := imported(t, s, mallory, file, "name", "Probe", "path", "probe")
		const reason = "members and assignees are mapped only in imports by an administrator"
		s.Table(t, []apptest.Call{
			{Name: "the same for all users", Do: fmt.Sprintf("GET /group_imports/%d", id), As: mallory, Status: 200, Want: fmt.Sprintf(`{"unmapped":[
				{"thing":"board","name":"Work, its assignee bob","reason":%[1]q},
				{"thing":"member","name":"alice","reason":%[1]q},{"thing":"member","name":"bob","reason":%[1]q},
				{"thing":"member","name":"carol","reason":%[1]q},{"thing":"member","name":"mallory","reason":%[1]q}],"unmapped_total":{"member":4,"board":1}}`, reason)},
			{Name: "no user is added without consent", Do: "GET /groups/probe/members", As: mallory, Status: 200, Want: `[{"username":"mallory","access_level":50}]`},
			{Name: "nor assigned", Do: "GET /groups/probe/boards", As: mallory, Status: 200, Want: `[{"name":"Work","assignee":null}]`},
		})
		id = imported(t, s, apptest.RootToken, file, "name", "Copy", "path", "copy")
		s.Table(t, []apptest.Call{
			{Name: "an administrator maps members", Do: fmt.Sprintf("GET /group_imports/%d", id), As: apptest.RootToken, Status: 200,
				Want: `{"unmapped":[{"thing":"member","name":"carol","reason":"no account has confirmed this email address"}],"unmapped_total":{"member":1}}`},
			{Do: "GET /groups/copy/members?query=bob", As: apptest.RootToken, Status: 200, Want: `[{"username":"bob","access_level":30}]`},
			{Do: "GET /groups/copy/boards", As: apptest.RootToken, Status: 200, Want: `[{"assignee":{"username":"bob"}}]`},
		})
	})
}

// notified checks that alice has received one email with this subject, and that it
// contains these texts.
func notified(t testing.TB, post *mailtest.Server, subject string, words ...string) {
	t.Helper()
	var found []mailtest.Email
	for _, l := range post.Take() {
		if l.To == "alice@example.org" && l.Subject == subject {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d emails have the subject %q", len(found), subject)
	}
	for _, word := range words {
		if !strings.Contains(found[0].Text, word) {
			t.Errorf("the email does not contain %q: %s", word, found[0].Text)
		}
	}
}

// TestGroupImport checks the imports that are refused at once, and those that fail
// in the background and leave nothing behind.
func TestGroupImport(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, reader := s.User(t, "reader", "read_api")
		g := group(t, s, alice, "top", `,"visibility":"public","subgroup_creation_level":"owner"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, bobID, project.Maintainer), Status: 201})
		file := exported(t, s, alice, g)
		hidden := group(t, s, alice, "hidden", "")
		for _, row := range []struct {
			name, as string
			file     []byte
			fields   []string
			status   int
			want     string
		}{
			{"nobody", "", file, []string{"name", "N", "path", "n"}, 401, `401 Unauthorized`},
			{"a token that reads", reader, file, []string{"name", "N", "path", "n"}, 403, `insufficient_scope`},
			{"no file", alice, nil, []string{"name", "N", "path", "n"}, 400, `file is missing`},
			{"no name", alice, file, []string{"path", "n"}, 400, `name is missing`},
			{"no path", alice, file, []string{"name", "N"}, 400, `path is missing`},
			{"a bad path", alice, file, []string{"name", "N", "path", "a b"}, 400, `can contain only letters`},
			{"a path that is taken", alice, file, []string{"name", "N", "path", "Top"}, 400, `has already been taken`},
			{"a user's", alice, file, []string{"name", "N", "path", "bob"}, 400, `has already been taken`},
			{"not below this one", bob, file, []string{"name", "N", "path", "n", "parent_id", fmt.Sprint(g)}, 403, `403 Forbidden`},
			{"a hidden parent", bob, file, []string{"name", "N", "path", "n", "parent_id", fmt.Sprint(hidden)}, 404, `404 Group Not Found`},
			{"nor nowhere", alice, file, []string{"name", "N", "path", "n", "parent_id", "x"}, 400, `parent_id is invalid`},
		} {
			if a := sendImport(t, s, row.as, row.file, row.fields...); a.Status != row.status || !strings.Contains(string(a.Body), row.want) {
				t.Errorf("%s: status %d: %s", row.name, a.Status, a.Body)
			}
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"max_import_size":1}`, Status: 200, Want: `{"max_import_size":1}`})
		if a := sendImport(t, s, alice, make([]byte, 2<<20), "name", "N", "path", "n"); a.Status != 413 {
			t.Errorf("a large file: status %d: %s", a.Status, a.Body)
		}

		var before, after int
		count := func(n *int) {
			t.Helper()
			settled(t, s)
			if err := s.DB.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM namespaces) + (SELECT count(*) FROM labels) + (SELECT count(*) FROM members)`).Scan(n); err != nil {
				t.Fatal(err)
			}
		}
		count(&before)
		rows := strings.Repeat(`{"name":"{n}"}`+"\n", 600)
		for i := range 600 {
			rows = strings.Replace(rows, "{n}", fmt.Sprint("label ", i), 1)
		}
		const top = `{"path":"","settings":{"project_creation_level":"owner","subgroup_creation_level":"owner","shared_runners_setting":"enabled","wiki_access_level":"enabled"}}` + "\n"
		bad := []struct {
			name string
			file []byte
			want string
		}{
			{"no archive", []byte("hello"), "not compressed with gzip"},
			{"cut off", file[:len(file)-9], "cut off or damaged"},
			{"a bad row late", exportFile(t, "groups/1/group.ndjson", top, "groups/1/labels.ndjson", rows+`{"name":","}`+"\n"), "groups/1/labels.ndjson: title is invalid"},
			{"the same twice", exportFile(t, "groups/1/group.ndjson", top, "groups/1/labels.ndjson", rows+rows), "groups/1/labels.ndjson: Label already exists"},
			{"a picture that is none", exportFile(t, "groups/1/group.ndjson", top, "groups/1/avatar.png", "text"), "groups/1/avatar.png: avatar"},
			{"a wiki that is none", exportFile(t, "groups/1/group.ndjson", top, "groups/1/labels.ndjson", rows, "groups/1/wiki.bundle", "text"), "groups/1/wiki.bundle: the repository cannot be read"},
			{"no settings", exportFile(t, "groups/1/group.ndjson", `{"path":""}`+"\n"), "is not included in the list"},
			{"no group above", exportFile(t, "groups/1/group.ndjson", top, "groups/2/group.ndjson", strings.Replace(top, `""`, `"a/b"`, 1)), "does not come before it"},
			{"a bad path below", exportFile(t, "groups/1/group.ndjson", top, "groups/2/group.ndjson", strings.Replace(top, `""`, `"..","name":"x"`, 1)), "path can contain only"},
			{"a reference to nothing above", exportFile(t, "groups/1/group.ndjson", top, "groups/1/boards.ndjson", `{"name":"B","lists":[{"label":{"group":2,"title":"x"}}]}`+"\n"), "is not an ancestor"},
			{"a list of nothing", exportFile(t, "groups/1/group.ndjson", top, "groups/1/boards.ndjson", `{"name":"B","lists":[{}]}`+"\n"), "not of one"},
			{"a level that is none", exportFile(t, "groups/1/group.ndjson", top, "groups/1/members.ndjson", fmt.Sprintf(`{"username":"alice","email_sha256":"%s","access_level":60}`+"\n", aliceDigest)), "access_level"},
			{"a milestone without a number", exportFile(t, "groups/1/group.ndjson", top, "groups/1/milestones.ndjson", `{"title":"x","state":"active"}`+"\n"), "iid is invalid"},
		}
		for i, row := range bad {
			if a := sendImport(t, s, alice, row.file, "name", "N", "path", fmt.Sprint("n", i)); a.Status != 202 {
				t.Fatalf("%s: status %d: %s", row.name, a.Status, a.Body)
			}
			settled(t, s) // a user's third concurrent import would be postponed
		}
		var list []struct {
			Status, Error string
			GroupID       *int64 `json:"group_id"`
		}
		s.Check(t, apptest.Call{Do: "GET /group_imports?per_page=100", As: alice, Status: 200}).JSON(t, &list)
		for i, row := range bad {
			got := list[len(bad)-1-i] // sorted from newest to oldest
			if got.Status != "failed" || got.GroupID != nil || !strings.Contains(got.Error, row.want) {
				t.Errorf("%s: %s, %q, want %q", row.name, got.Status, got.Error, row.want)
			}
		}
		if count(&after); after != before {
			t.Errorf("%d rows are left, %d were there", after, before)
		}
		for info, err := range s.Blobs.List(t.Context(), "transfer/imports/") {
			t.Errorf("%s is left (%v)", info.Key, err)
		}
		if id := imported(t, s, alice, exportFile(t, "groups/1/group.ndjson", top, "groups/1/labels.ndjson", rows), "name", "N", "path", "n"); id > 0 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /group_imports/%d", id), As: alice, Status: 200, Want: `{"status":"finished","imported":{"groups":1,"labels":600}}`})
		}
	})
}

// TestImportOfHostileFiles imports files whose rows have long names or far more
// values than bytes. The report of an import stays small, and rows that would need
// much memory are refused.
func TestImportOfHostileFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, mallory := s.User(t, "mallory")
		const top = `{"path":"","settings":{"project_creation_level":"owner","subgroup_creation_level":"owner","shared_runners_setting":"enabled","wiki_access_level":"enabled"}}` + "\n"
		file := func(part, rows string) []byte {
			return exportFile(t, "groups/1/group.ndjson", top, "groups/1/"+part+".ndjson", rows)
		}
		long := strings.Repeat("x", 1<<20)
		id := imported(t, s, mallory, file("members", strings.Repeat(`{"username":"`+long+`","access_level":30}`+"\n", 20)), "name", "Long", "path", "long")
		report := s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /group_imports/%d", id), As: mallory, Status: 200, Want: `{"status":"finished","unmapped_total":{"member":20}}`})
		if len(report.Body) > 100_000 {
			t.Errorf("the report has %d bytes", len(report.Body))
		}
		for part, row := range map[string]struct{ text, want string }{
			"boards":     {`{"name":"B","lists":[` + strings.Repeat(`{},`, 100_000) + `{}]}`, "it has more than 50000 values"},
			"labels":     {`{"name":"x",` + strings.Repeat(`"a":0,`, 100_000) + `"b":0}`, "twice"},
			"badges":     {`{"name":` + strings.Repeat(`[`, 100_000) + `}`, "nested too deeply"},
			"milestones": {`{"title":"` + strings.Repeat("x", 9<<20) + `"}`, "it has more than 8388608 bytes"},
		} {
			id := imported(t, s, mallory, file(part, row.text+"\n"), "name", part, "path", "of-"+part)
			var got struct{ Status, Error string }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /group_imports/%d", id), As: mallory, Status: 200}).JSON(t, &got)
			if got.Status != "failed" || !strings.Contains(got.Error, row.want) {
				t.Errorf("%s: %s, %q, want %q", part, got.Status, got.Error, row.want)
			}
		}
	})
}

// aliceDigest is the SHA-256 of alice@example.org.
const aliceDigest = "7a64adf28737ea90719cbdf0b1a87a5effff3753b79c91d717f4f4153ead0498"

// exportFile returns an export file with the entries, given as name, text pairs, the
// manifest and the totals.
func exportFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	kinds := map[string]string{"group.ndjson": "groups", "labels.ndjson": "labels", "milestones.ndjson": "milestones", "boards.ndjson": "boards",
		"badges.ndjson": "badges", "members.ndjson": "members", "avatar.png": "avatars", "wiki.bundle": "wikis"}
	totals := map[string]int{}
	for i := 0; i < len(parts); i += 2 {
		_, kind, _ := strings.Cut(strings.TrimPrefix(parts[i], "groups/"), "/")
		totals[kinds[kind]] += max(1, strings.Count(parts[i+1], "\n"))
	}
	said, err := json.Marshal(totals)
	if err != nil {
		t.Fatal(err)
	}
	parts = append([]string{"manifest.json", `{"format":"group-export","version":1}`}, append(parts, "totals.json", string(said))...)
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for i := 0; i < len(parts); i += 2 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: parts[i], Size: int64(len(parts[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, parts[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
