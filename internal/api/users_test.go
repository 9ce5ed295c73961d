package api_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/user"
)

func keysOf(t *testing.T, a apptest.Answer) []string {
	t.Helper()
	var m map[string]any
	a.JSON(t, &m)
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// The fields of a user by kind of response, as the specification lists them.
var (
	publicFields  = []string{"id", "username", "name", "state", "locked", "avatar_url", "web_url"}
	profileFields = append(slices.Clone(publicFields), "created_at", "bio", "bot", "location", "public_email", "skype", "linkedin", "twitter",
		"discord", "website_url", "organization", "job_title", "pronouns", "work_information", "followers", "following", "local_time", "is_followed")
	adminFields = append(slices.Clone(profileFields), "email", "is_admin", "last_sign_in_at", "current_sign_in_at", "confirmed_at", "theme_id",
		"color_scheme_id", "last_activity_on", "projects_limit", "note", "identities", "can_create_group", "can_create_project",
		"two_factor_enabled", "external", "private_profile", "commit_email", "current_sign_in_ip", "last_sign_in_ip", "plan", "trial",
		"sign_in_count", "namespace_id", "created_by", "email_reset_offered_at", "shared_runners_minutes_limit",
		"extra_shared_runners_minutes_limit", "is_auditor", "using_license_seat", "provisioned_by_group_id", "scim_identities")
)

func TestUserRepresentations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.User(t, "bob")
		same := func(name string, a apptest.Answer, want []string) {
			t.Helper()
			want = slices.Sorted(slices.Values(want))
			if got := keysOf(t, a); !slices.Equal(got, want) {
				t.Errorf("%s has the fields\n%v, want\n%v", name, got, want)
			}
		}
		first := func(a apptest.Answer) apptest.Answer {
			a.Body = bytes.TrimSuffix(bytes.TrimPrefix(a.Body, []byte("[")), []byte("]"))
			return a
		}
		same("list for nobody", first(s.Check(t, apptest.Call{Do: "GET /users?username=alice", Status: 200})), publicFields)
		same("list", first(s.Check(t, apptest.Call{Do: "GET /users?username=bob", As: alice, Status: 200})), publicFields)
		same("list for administrators", first(s.Check(t, apptest.Call{Do: "GET /users?username=bob", As: root, Status: 200})), adminFields)
		same("another user", s.Check(t, apptest.Call{Do: "GET /users/4", As: alice, Status: 200}), profileFields)
		same("a user for administrators", s.Check(t, apptest.Call{Do: "GET /users/4", As: root, Status: 200}), adminFields)
		s.Check(t, apptest.Call{Do: "PUT /users/4?private_profile=true", As: root, Status: 200})
		same("a private profile", s.Check(t, apptest.Call{Do: "GET /users/4", As: alice, Status: 200}), publicFields)
		s.Table(t, []apptest.Call{
			{Do: "GET /users/4", Status: 401, Want: `{"message":"401 Unauthorized"}`},
			{Do: "GET /users/99", As: alice, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Do: "GET /users/1?with_custom_attributes=true", As: root, Status: 200},
			{Do: "GET /user", As: alice, Status: 200, Not: []string{"is_admin", `"note"`},
				Want: fmt.Sprintf(`{"id":%d,"web_url":"%s/alice","email":"alice@example.org","state":"active","locked":false,"bot":false,
					"work_information":null,"confirmed_at":"<any>","last_activity_on":"<any>","two_factor_enabled":false,"commit_email":"alice@example.org"}`, id, s.URL)},
			{Do: "GET /user", As: root, Status: 200, Want: `{"is_admin":true,"created_by":null,"note":"","namespace_id":1}`},
		})
	})
}

func TestCreateUser(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		form := func(more ...string) url.Values {
			f := url.Values{"email": {"new@example.org"}, "name": {"New User"}, "username": {"newbie"}, "password": {"long enough"}}
			for i := 0; i < len(more); i += 2 {
				if more[i+1] == "" {
					f.Del(more[i])
				} else {
					f.Set(more[i], more[i+1])
				}
			}
			return f
		}
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: "POST /users", Form: form(), Status: 401},
			{Name: "not an administrator", Do: "POST /users", As: alice, Form: form(), Status: 403, Want: `{"message":"403 Forbidden"}`},
			{Name: "no way to a password", Do: "POST /users", As: root, Form: form("password", ""), Status: 400,
				Want: `{"error":"password, reset_password, force_random_password are missing, at least one parameter must be provided"}`},
			{Name: "flags that are false", Do: "POST /users", As: root, Form: form("password", "", "reset_password", "false"), Status: 400, Want: `{"error":"password is missing"}`},
			{Name: "short password", Do: "POST /users", As: root, Form: form("password", "short"), Status: 400, Want: `{"message":{"password":["is too short (minimum is 8 characters)"]}}`},
			{Name: "bad email", Do: "POST /users", As: root, Form: form("email", "nonsense"), Status: 400, Want: `{"message":{"email":["is invalid"]}}`},
			{Name: "bad username", Do: "POST /users", As: root, Form: form("username", "-x"), Status: 400, Want: `{"message":{"username":["<any>"]}}`},
			{Name: "path as username", Do: "POST /users", As: root, Form: form("username", "../etc"), Status: 400},
			{Name: "digits as username", Do: "POST /users", As: root, Form: form("username", "12345"), Status: 400},
			{Name: "reserved username", Do: "POST /users", As: root, Form: form("username", "api"), Status: 400},
			{Name: "NUL", Do: "POST /users", As: root, JSON: `{"email":"a@b.c","name":"a\u0000b","username":"nul","password":"long enough"}`, Status: 400, Want: `{"error":"name is invalid"}`},
			{Name: "wrong type", Do: "POST /users", As: root, JSON: `{"email":"a@b.c","name":{"x":1},"username":"nul","password":"long enough","admin":"perhaps"}`, Status: 400, Want: `{"error":"name is invalid, admin is invalid"}`},
			{Name: "public email of another user", Do: "POST /users", As: root, Form: form("public_email", "other@example.org"), Status: 400, Want: `{"message":{"public_email":["is not an email you own"]}}`},
			{Name: "created", Do: "POST /users", As: root, Form: form("admin", "true", "bio", "Hello", "location", "Bonn", "organization", "ACME", "job_title", "Smith",
				"skip_confirmation", "true", "public_email", "new@example.org", "note", "a note", "projects_limit", "7", "external", "true", "linkedin", "l",
				"skype", "s", "twitter", "t", "discord", "d", "website_url", "https://example.org", "pronouns", "they", "theme_id", "2", "color_scheme_id", "3",
				"can_create_group", "false", "private_profile", "true", "commit_email", "_private", "extern_uid", "u1", "provider", "ldapmain",
				"shared_runners_minutes_limit", "100", "auditor", "true"), Status: 201,
				Want: `{"username":"newbie","name":"New User","email":"new@example.org","state":"active","is_admin":true,"bio":"Hello","location":"Bonn",
					"organization":"ACME","job_title":"Smith","work_information":"Smith at ACME","public_email":"new@example.org","note":"a note","projects_limit":7,
					"external":true,"linkedin":"l","skype":"s","twitter":"t","discord":"d","website_url":"https://example.org","pronouns":"they","theme_id":2,
					"color_scheme_id":3,"can_create_group":false,"can_create_project":false,"private_profile":true,
					"identities":[{"provider":"ldapmain","extern_uid":"u1","saml_provider_id":null}],"confirmed_at":"<any>","created_by":{"username":"root"},
					"shared_runners_minutes_limit":100,"extra_shared_runners_minutes_limit":null,"is_auditor":true,"using_license_seat":true,"sign_in_count":0,
					"last_sign_in_at":null,"current_sign_in_ip":null,"namespace_id":"<any>","bot":false}`},
			{Name: "private commit address", Do: "GET /users?username=newbie", As: root, Status: 200, Want: `[{"commit_email":"<any>"}]`, Not: []string{`"commit_email":"new@example.org"`}},
			{Name: "email taken", Do: "POST /users", As: root, Form: form("username", "other"), Status: 409, Want: `{"message":"Email has already been taken"}`},
			{Name: "email and username taken", Do: "POST /users", As: root, Form: form(), Status: 409, Want: `{"message":"Email has already been taken"}`},
			{Name: "email taken in another case", Do: "POST /users", As: root, Form: form("username", "other", "email", "NEW@example.org"), Status: 409},
			{Name: "username taken", Do: "POST /users", As: root, Form: form("username", "NEWBIE", "email", "o@example.org"), Status: 409, Want: `{"message":"Username has already been taken"}`},
			{Name: "nothing was left of the refused", Do: "GET /users?search=other", As: root, Status: 200, Want: `[]`},
			{Name: "random password", Do: "POST /users", As: root, JSON: `{"email":"r@example.org","name":"R","username":"random","force_random_password":true,"private_profile":null}`, Status: 201,
				Want: `{"private_profile":false,"confirmed_at":null}`},
			{Name: "reset password wins over password", Do: "POST /users", As: root, JSON: `{"email":"r2@example.org","name":"R","username":"random2","password":"x","reset_password":"1"}`, Status: 201},
		})
	})
}

func TestUpdateUser(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.User(t, "bob")
		path := fmt.Sprintf("PUT /users/%d", id)
		s.Table(t, []apptest.Call{
			{Name: "not an administrator", Do: path, As: alice, JSON: `{"bio":"x"}`, Status: 403},
			{Name: "unknown", Do: "PUT /users/99", As: root, JSON: `{"bio":"x"}`, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "nothing", Do: path, As: root, Status: 200, Want: `{"username":"alice"}`},
			{Name: "some", Do: path, As: root, JSON: `{"bio":"x","name":"Alice A","username":"alice2","shared_runners_minutes_limit":5}`, Status: 200,
				Want: `{"bio":"x","name":"Alice A","username":"alice2","email":"alice@example.org","shared_runners_minutes_limit":5}`},
			{Name: "null takes a limit away", Do: path, As: root, JSON: `{"shared_runners_minutes_limit":null}`, Status: 200, Want: `{"shared_runners_minutes_limit":null,"bio":"x"}`},
			{Name: "taken username", Do: path, As: root, JSON: `{"username":"BOB"}`, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "another's email", Do: path, As: root, JSON: `{"email":"bob@example.org"}`, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "an unknown email", Do: path, As: root, JSON: `{"email":"new@example.org"}`, Status: 404},
			{Name: "blank name", Do: path, As: root, JSON: `{"name":" "}`, Status: 400, Want: `{"error":"name is empty"}`},
			{Name: "bad theme", Do: path, As: root, JSON: `{"theme_id":99}`, Status: 400, Want: `{"message":{"theme_id":["is not included in the list"]}}`},
			{Name: "add a secondary address", Do: fmt.Sprintf("POST /users/%d/emails", id), As: root, JSON: `{"email":"second@example.org","skip_confirmation":true}`, Status: 201},
			{Name: "make it the primary one", Do: path, As: root, JSON: `{"email":"Second@example.org"}`, Status: 200, Want: `{"email":"second@example.org","confirmed_at":"<any>"}`},
			{Name: "password", Do: path, As: root, JSON: `{"password":"another good one"}`, Status: 200},
		})
		if _, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "alice2", Password: "a good password"}); err == nil {
			t.Error("the old password works")
		}
		_, u, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "second@example.org", Password: "another good one"})
		if err != nil || !u.MustChangePassword {
			t.Errorf("sign in with the new password: %v, must change: %v", err, u)
		}
		s.Check(t, apptest.Call{Name: "recorded", Do: fmt.Sprintf("GET /audit_events?entity_type=User&entity_id=%d&per_page=100", id), As: root, Status: 200, Not: []string{"another good one"}})
	})
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/follow", bob), As: alice, Status: 201})
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("DELETE /users/%d", bob), As: alice, Status: 403},
			{Do: "DELETE /users/99", As: root, Status: 404},
			{Name: "the ghost", Do: "DELETE /users/2", As: root, Status: 409, Want: `{"message":"User cannot be removed."}`},
			{Name: "the last administrator", Do: "DELETE /users/1", As: root, Status: 409},
			{Name: "delete", Do: fmt.Sprintf("DELETE /users/%d", id), As: root, Status: 204},
			{Name: "gone at once", Do: fmt.Sprintf("GET /users/%d", id), As: root, Status: 404},
			{Name: "their token is deleted", Do: "GET /user", As: alice, Status: 401},
			{Name: "twice", Do: fmt.Sprintf("DELETE /users/%d", id), As: root, Status: 404},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"users WHERE id", "access_tokens WHERE user_id", "emails WHERE user_id", "namespaces WHERE user_id", "follows WHERE follower_id"} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" = ?", id).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows are left, %v", table, n, err)
			}
		}
		s.Check(t, apptest.Call{Name: "the name is free again", Do: "POST /users", As: root, Status: 201,
			JSON: `{"email":"alice@example.org","name":"A","username":"alice","password":"long enough"}`})
		s.Check(t, apptest.Call{Do: "GET /user", As: bobToken, Status: 200, Want: `{"followers":0}`})
	})
}

func TestListUsers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, _ := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", bob), As: root, Status: 200, JSON: `{"name":"Ärger Müller","external":true,"provider":"github","extern_uid":"B1","public_email":"bob@example.org"}`})
		carol, _ := s.User(t, "carol")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", carol), As: root, Status: 201})
		dave, _ := s.User(t, "dave")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/ban", dave), As: root, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d/custom_attributes/team", bob), As: root, Status: 200, JSON: `{"value":"red"}`})
		s.Table(t, []apptest.Call{
			{Name: "all, newest first", Do: "GET /users", As: root, Status: 200, Want: `[{"username":"dave","state":"banned"},{"username":"carol"},{"username":"bob"},{"username":"alice"},{"username":"ghost"},{"username":"root"}]`},
			{Name: "others do not see the banned", Do: "GET /users", As: alice, Status: 200, Want: `[{"username":"carol"},{"username":"bob"},{"username":"alice"},{"username":"ghost"},{"username":"root"}]`},
			{Name: "anonymous, all pages", Do: "GET /users", Status: 403, Want: `{"message":"403 Forbidden - Not authorized to access /api/v4/users"}`},
			{Name: "username", Do: "GET /users?username=BOB", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "search in any alphabet", Do: "GET /users?search=" + url.QueryEscape("äRGER"), As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "two characters of any alphabet", Do: "GET /users?search=" + url.QueryEscape("äR"), As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "two characters inside", Do: "GET /users?search=OB", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "two characters and a word", Do: "GET /users?search=ob+" + url.QueryEscape("ärger"), As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "search is no pattern", Do: "GET /users?search=%25", As: alice, Status: 200, Want: `[]`},
			{Name: "public email, whole", Do: "GET /users?search=bob@example.org", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "public email, part", Do: "GET /users?search=@example.org", As: alice, Status: 200, Want: `[]`},
			{Name: "private email", Do: "GET /users?search=alice@example.org", As: alice, Status: 200, Want: `[]`},
			{Name: "private email for administrators", Do: "GET /users?search=ALICE@example.org", As: root, Status: 200, Want: `[{"username":"alice"}]`},
			{Name: "active", Do: "GET /users?active=true", As: alice, Status: 200, Want: `[{"username":"bob"},{"username":"alice"},{"username":"ghost"},{"username":"root"}]`},
			{Name: "false is no filter", Do: "GET /users?active=false&blocked=0&external=False", As: alice, Status: 200, Want: `[{"username":"carol"},{"username":"bob"},{"username":"alice"},{"username":"ghost"},{"username":"root"}]`},
			{Name: "no boolean", Do: "GET /users?active=never", As: alice, Status: 400, Want: `{"error":"active is invalid"}`},
			{Name: "blocked", Do: "GET /users?blocked=true", As: alice, Status: 200, Want: `[{"username":"carol","state":"blocked"}]`},
			{Name: "external", Do: "GET /users?external=true", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "exclude_external", Do: "GET /users?exclude_external=true&blocked=true", As: alice, Status: 200, Want: `[{"username":"carol"}]`},
			{Name: "humans", Do: "GET /users?humans=true&blocked=true", As: alice, Status: 200, Want: `[{"username":"carol"}]`},
			{Name: "exclude_humans", Do: "GET /users?exclude_humans=true", As: alice, Status: 200, Want: `[{"username":"ghost"}]`},
			{Name: "exclude_active", Do: "GET /users?exclude_active=true", As: alice, Status: 200, Want: `[{"username":"carol"}]`},
			{Name: "public_email", Do: "GET /users?public_email=BOB@example.org", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "exclude_internal", Do: "GET /users?exclude_internal=true&username=ghost", As: alice, Status: 200, Want: `[]`},
			{Name: "created_after", Do: "GET /users?created_after=2999-01-01T00:00:00Z", As: alice, Status: 200, Want: `[]`},
			{Name: "created_before", Do: "GET /users?created_before=2999-01-01&username=bob", As: alice, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "bad date", Do: "GET /users?created_before=tomorrow", As: alice, Status: 400, Want: `{"error":"created_before is invalid"}`},
			{Name: "identity", Do: "GET /users?provider=github&extern_uid=b1", As: root, Status: 200, Want: `[{"username":"bob","identities":[{"provider":"github","extern_uid":"B1"}]}]`},
			{Name: "identity is for administrators", Do: "GET /users?provider=github&extern_uid=b1&username=alice", As: alice, Status: 200, Want: `[{"username":"alice"}]`},
			{Name: "admins", Do: "GET /users?admins=true", As: root, Status: 200, Want: `[{"username":"root"}]`},
			{Name: "two-factor", Do: "GET /users?two_factor=enabled", As: root, Status: 200, Want: `[]`},
			{Name: "bad two-factor", Do: "GET /users?two_factor=perhaps", As: root, Status: 400, Want: `{"error":"two_factor does not have a valid value"}`},
			{Name: "order by name", Do: "GET /users?order_by=username&sort=asc&per_page=2", As: root, Status: 200, Want: `[{"username":"alice"},{"username":"bob"}]`},
			{Name: "others have one order", Do: "GET /users?order_by=username&sort=asc&per_page=1", As: alice, Status: 200, Want: `[{"username":"carol"}]`},
			{Name: "custom attribute", Do: "GET /users?custom_attributes[team]=red&with_custom_attributes=true", As: root, Status: 200, Want: `[{"username":"bob","custom_attributes":[{"key":"team","value":"red"}]}]`},
			{Name: "another value", Do: "GET /users?custom_attributes[team]=blue", As: root, Status: 200, Want: `[]`},
			{Name: "auditors", Do: "GET /users?auditors=true", As: root, Status: 200, Want: `[]`},
			{Name: "skip_ldap", Do: "GET /users?skip_ldap=true&username=bob", As: root, Status: 200, Want: `[{"username":"bob"}]`},
		})
	})
}

func TestActivities(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "GET /user", As: bob, Status: 200})
		bobDay := s.Clock.Now().Format(time.DateOnly)
		s.Clock.Move(48 * time.Hour)
		s.Check(t, apptest.Call{Do: "GET /version", As: alice, Status: 200})
		today := s.Clock.Now().Format(time.DateOnly)
		s.Table(t, []apptest.Call{
			{Do: "GET /user/activities", As: alice, Status: 403},
			{Name: "oldest first", Do: "GET /user/activities", As: root, Status: 200, Want: fmt.Sprintf(
				`[{"username":"bob","last_activity_on":"%[1]s","last_activity_at":"%[1]s"},{"username":"root","last_activity_on":"%[2]s"},{"username":"alice"}]`, bobDay, today)},
			{Name: "from", Do: "GET /user/activities?from=" + today, As: root, Status: 200, Want: `[{"username":"root"},{"username":"alice"}]`},
			{Name: "bad day", Do: "GET /user/activities?from=1.2.2020", As: root, Status: 400, Want: `{"error":"from is invalid"}`},
		})
	})
}

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func multipartBody(t *testing.T, file string, data []byte, fields ...string) (body *bytes.Buffer, kind string) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("avatar", file)
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return body, w.FormDataContentType()
}

func TestAvatar(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		send := func(do, as, name string, data []byte, fields ...string) apptest.Answer {
			t.Helper()
			method, path, _ := strings.Cut(do, " ")
			body, kind := multipartBody(t, name, data, fields...)
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v4"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", kind)
			r.Header.Set("PRIVATE-TOKEN", as)
			return s.Exchange(t, r)
		}
		a := send("PUT /user/avatar", alice, "../../me.png", picture(t))
		var got struct {
			AvatarURL string `json:"avatar_url"`
		}
		a.JSON(t, &got)
		if a.Status != 200 || !strings.HasPrefix(got.AvatarURL, s.URL+"/uploads/-/system/user/avatar/") {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		at := "//" + strings.TrimPrefix(got.AvatarURL, s.URL+"/")
		served := s.Check(t, apptest.Call{Do: "GET " + at, Status: 200, WantHeader: map[string]string{"Content-Type": "image/png"}})
		if !bytes.Equal(served.Body, picture(t)) {
			t.Error("the picture that is served is another one")
		}
		if a := send("PUT /user/avatar", alice, "x.png", []byte("<svg onload=alert(1)>")); a.Status != 400 {
			t.Errorf("an SVG: %d %s", a.Status, a.Body)
		}
		if a := send("PUT /user/avatar", alice, "x.png", bytes.Repeat([]byte{1}, 300<<10)); a.Status != 400 || !strings.Contains(string(a.Body), "too big") {
			t.Errorf("too big: %d %s", a.Status, a.Body)
		}
		if a := send("PUT /user/avatar", alice, "x.png", bytes.Repeat([]byte{1}, 11<<20)); a.Status != 413 {
			t.Errorf("far too big: %d %s", a.Status, a.Body)
		}
		b := send(fmt.Sprintf("PUT /users/%d", id), root, "new.png", picture(t), "bio", "with a picture")
		if b.Status != 200 || !strings.Contains(string(b.Body), "with a picture") {
			t.Errorf("%d %s", b.Status, b.Body)
		}
		s.Check(t, apptest.Call{Name: "the old picture is gone", Do: "GET " + at, Status: 404})
		s.Check(t, apptest.Call{Name: "empty takes it away", Do: fmt.Sprintf("PUT /users/%d", id), As: root, JSON: `{"avatar":""}`, Status: 200, Want: `{"avatar_url":null,"bio":"with a picture"}`})
		c := send("POST /users", root, "new.png", picture(t), "email", "p@example.org", "name", "P", "username", "pic", "password", "long enough")
		if c.Status != 201 || !strings.Contains(string(c.Body), "/uploads/-/system/user/avatar/") {
			t.Errorf("%d %s", c.Status, c.Body)
		}
		d := send("POST /users", root, "new.png", []byte("no picture"), "email", "q@example.org", "name", "Q", "username", "quic", "password", "long enough")
		if d.Status != 400 {
			t.Errorf("%d %s", d.Status, d.Body)
		}
		s.Check(t, apptest.Call{Name: "nothing was made", Do: "GET /users?username=quic", As: root, Status: 200, Want: `[]`})
	})
}

func TestUserStates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		at := func(verb string) string { return fmt.Sprintf("POST /users/%d/%s", id, verb) }
		is := func(state string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", id), As: root, Status: 200, Want: `{"state":"` + state + `"}`})
		}
		for _, verb := range []string{"block", "unblock", "activate", "deactivate", "ban", "unban", "approve", "reject"} {
			s.Check(t, apptest.Call{Do: at(verb), As: alice, Status: 403})
			s.Check(t, apptest.Call{Do: at(verb), Status: 401})
			s.Check(t, apptest.Call{Do: "POST /users/99/" + verb, As: root, Status: 404, Want: `{"message":"404 User Not Found"}`})
		}
		s.Check(t, apptest.Call{Do: at("block"), As: root, Status: 201, Want: `true`})
		is("blocked")
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 403, Want: `{"message":"403 Forbidden - Your account has been blocked."}`})
		s.Check(t, apptest.Call{Name: "even on a public endpoint", Do: "GET /users?username=root", As: alice, Status: 403})
		s.Check(t, apptest.Call{Do: at("block"), As: root, Status: 201, Want: `null`})
		s.Check(t, apptest.Call{Do: at("activate"), As: root, Status: 403})
		s.Check(t, apptest.Call{Do: at("deactivate"), As: root, Status: 403})
		s.Check(t, apptest.Call{Do: at("ban"), As: root, Status: 403})
		s.Check(t, apptest.Call{Do: at("unban"), As: root, Status: 403})
		s.Check(t, apptest.Call{Do: at("unblock"), As: root, Status: 201, Want: `true`})
		is("active")
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200})
		s.Check(t, apptest.Call{Name: "active lately", Do: at("deactivate"), As: root, Status: 403})
		s.Clock.Move(91 * 24 * time.Hour)
		s.Check(t, apptest.Call{Do: at("deactivate"), As: root, Status: 201, Want: `true`})
		is("deactivated")
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 403})
		s.Check(t, apptest.Call{Do: at("unblock"), As: root, Status: 403})
		s.Check(t, apptest.Call{Do: at("activate"), As: root, Status: 201, Want: `true`})
		s.Check(t, apptest.Call{Do: at("ban"), As: root, Status: 201, Want: `true`})
		is("banned")
		s.Check(t, apptest.Call{Do: at("unban"), As: root, Status: 201, Want: `true`})
		s.Check(t, apptest.Call{Do: at("approve"), As: root, Status: 409, Want: `{"message":"The user you are trying to approve is not pending approval"}`})
		s.Check(t, apptest.Call{Do: at("reject"), As: root, Status: 409, Want: `{"message":"User does not have a pending request"}`})
		s.Check(t, apptest.Call{Name: "the ghost", Do: "POST /users/2/block", As: root, Status: 403})
		s.Check(t, apptest.Call{Name: "oneself", Do: "POST /users/1/block", As: root, Status: 403})

		// The API does not sign up users, so the state is set in the database.
		wait := func() {
			t.Helper()
			if _, err := s.DB.ExecContext(t.Context(), `UPDATE users SET state = 'blocked_pending_approval' WHERE id = ?`, id); err != nil {
				t.Fatal(err)
			}
		}
		wait()
		s.Check(t, apptest.Call{Do: at("approve"), As: root, Status: 201, Want: `{"message":"Success"}`})
		is("active")
		wait()
		s.Check(t, apptest.Call{Do: at("reject"), As: root, Status: 200, Want: `{"message":"Success"}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", id), As: root, Status: 404})
	})
}

func TestDisableTwoFactor(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		second, _ := s.User(t, "second")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?admin=true", second), As: root, Status: 200})
		path := fmt.Sprintf("PATCH /users/%d/disable_two_factor", id)
		s.Table(t, []apptest.Call{
			{Do: path, Status: 401},
			{Do: path, As: alice, Status: 403},
			{Name: "not enabled", Do: path, As: root, Status: 400},
			{Name: "unknown", Do: "PATCH /users/99/disable_two_factor", As: root, Status: 404},
			{Name: "oneself", Do: "PATCH /users/1/disable_two_factor", As: root, Status: 403},
			{Name: "another administrator", Do: fmt.Sprintf("PATCH /users/%d/disable_two_factor", second), As: root, Status: 403},
		})
		if _, err := s.Users.EnrollTwoFactor(t.Context(), actor.System(), id, "test"); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200, Want: `{"two_factor_enabled":true}`})
		s.Check(t, apptest.Call{Do: "GET /users?two_factor=enabled", As: root, Status: 200, Want: `[{"username":"alice"}]`})
		s.Check(t, apptest.Call{Name: "disable", Do: path, As: root, Status: 204})
		s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200, Want: `{"two_factor_enabled":false}`})
	})
}
