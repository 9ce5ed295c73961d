package compat

import (
	"bytes"
	"errors"
	"image/color"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientUsers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		t.Run("create", func(t *testing.T) { goCreate(t, root) })
		t.Run("modify", func(t *testing.T) { goModify(t, root) })
		t.Run("avatar", func(t *testing.T) { goAvatar(t, s, root) })
		t.Run("refusals", func(t *testing.T) { goRefusals(t, s, root) })
		t.Run("states", func(t *testing.T) { goStates(t, s, root) })
		t.Run("delete", func(t *testing.T) { goDelete(t, s, root) })
	})
}

func goCreate(t *testing.T, root *gitlab.Client) {
	made := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: new("ada"), Name: new("Ada L. ✓"), Email: new("ada@example.org"), Password: new(password), SkipConfirmation: new(true),
		Admin: new(false), External: new(true), PrivateProfile: new(true), CanCreateGroup: new(false), ViewDiffsFileByFile: new(true),
		ProjectsLimit: new(int64(7)), ThemeID: new(int64(3)), PublicEmail: new("ada@example.org"),
		Bio: new("counts"), Location: new("London"), Organization: new("Engines"), JobTitle: new("Countess"), Note: new("first"),
		Skype: new("ada.s"), Linkedin: new("ada-l"), Twitter: new("@ada"), WebsiteURL: new("https://ada.example.org"),
		Provider: new("ldapmain"), ExternUID: new("uid=ada"),
	})).done(t, http.StatusCreated)

	recent(t, "created_at", made.CreatedAt)
	recent(t, "confirmed_at", made.ConfirmedAt)
	if made.CreatedBy == nil || made.CreatedBy.Username != "root" {
		t.Errorf("created by %+v, want root", made.CreatedBy)
	}
	if made.ID == 0 || made.NamespaceID == 0 {
		t.Errorf("id %d, namespace_id %d: want both", made.ID, made.NamespaceID)
	}
	base := strings.TrimSuffix(root.BaseURL().String(), "api/v4/")
	same(t, "user", *made, gitlab.User{
		ID: made.ID, NamespaceID: made.NamespaceID, CreatedAt: made.CreatedAt, ConfirmedAt: made.ConfirmedAt, CreatedBy: made.CreatedBy,
		Username: "ada", Name: "Ada L. ✓", Email: "ada@example.org", State: "active", WebURL: base + "ada",
		External: true, PrivateProfile: true, ProjectsLimit: 7, ThemeID: 3, ColorSchemeID: 1, PublicEmail: "ada@example.org",
		Bio: "counts", Location: "London", Organization: "Engines", JobTitle: "Countess", Note: "first",
		Skype: "ada.s", Linkedin: "ada-l", Twitter: "@ada", WebsiteURL: "https://ada.example.org",
		Identities: []*gitlab.UserIdentity{{Provider: "ldapmain", ExternUID: "uid=ada"}}, UsingLicenseSeat: true,
	})
	same(t, "user, read again", ask(root.Users.GetUser(made.ID, gitlab.GetUsersOptions{})).ok(t), made)

	send(root.Users.DeleteUserIdentity(made.ID, "ldapmain")).done(t, http.StatusNoContent)
	after := ask(root.Users.GetUser(made.ID, gitlab.GetUsersOptions{})).ok(t)
	if len(after.Identities) != 0 {
		t.Errorf("identities %+v after the only one was deleted", after.Identities)
	}

	random := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: new("random"), Name: new("R"), Email: new("random@example.org"), ForceRandomPassword: new(true),
	})).done(t, http.StatusCreated)
	if random.IsAdmin || random.ConfirmedAt != nil || random.External {
		t.Errorf("got %+v, want a plain user who is not confirmed", random)
	}
}

func goModify(t *testing.T, root *gitlab.Client) {
	u := newUser(t, root, "bob")
	changed := ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{
		Name: new("Robert"), Username: new("robert"), Bio: new("new bio"), Admin: new(true), ProjectsLimit: new(int64(0)),
		Location: new("Paris"), Note: new("a note"), PrivateProfile: new(true), CommitEmail: new("_private"),
	})).done(t, http.StatusOK)
	same(t, "name, username, bio, location, note", []string{changed.Name, changed.Username, changed.Bio, changed.Location, changed.Note},
		[]string{"Robert", "robert", "new bio", "Paris", "a note"})
	if !changed.IsAdmin || !changed.PrivateProfile || changed.CanCreateProject || changed.ProjectsLimit != 0 {
		t.Errorf("got %+v", changed)
	}
	same(t, "what was not sent", changed.Email, "bob@example.org")
	cleared := ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Bio: new(""), Location: new(""), Admin: new(false)})).ok(t)
	same(t, "cleared", []string{cleared.Bio, cleared.Location}, []string{"", ""})
	same(t, "admin", cleared.IsAdmin, false)

	// The primary email becomes one that was added before.
	second := ask(root.Users.AddEmailForUser(u.ID, &gitlab.AddEmailOptions{Email: new("robert@example.org"), SkipConfirmation: new(true)})).ok(t)
	moved := ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Email: &second.Email, SkipReconfirmation: new(true)})).ok(t)
	same(t, "email", moved.Email, "robert@example.org")
	ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Email: new("never-added@example.org")})).missing(t)
	ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Username: new("root")})).missing(t)
}

func goAvatar(t *testing.T, s *server, root *gitlab.Client) {
	red, green, blue := picture(t, color.RGBA{R: 255, A: 255}), picture(t, color.RGBA{G: 255, A: 255}), picture(t, color.RGBA{B: 255, A: 255})
	u := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: new("cleo"), Name: new("Cleo"), Email: new("cleo@example.org"), Password: new(password), SkipConfirmation: new(true),
		PublicEmail: new("cleo@example.org"), Bio: new("sent with a file"), Avatar: &gitlab.UserAvatar{Filename: "cleo.png", Image: bytes.NewReader(red)},
	})).done(t, http.StatusCreated)
	same(t, "bio", u.Bio, "sent with a file")
	served(t, u.AvatarURL, red)

	u = ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{
		Bio: new("new"), Avatar: &gitlab.UserAvatar{Filename: "other.png", Image: bytes.NewReader(green)},
	})).ok(t)
	same(t, "bio", u.Bio, "new")
	served(t, u.AvatarURL, green)

	self := s.client(t, newToken(t, root, u.ID, "api").Token)
	mine := ask(self.Users.UploadAvatar(bytes.NewReader(blue), "mine.png")).done(t, http.StatusOK)
	served(t, mine.AvatarURL, blue)
	same(t, "avatar by id", ask(root.Users.GetUser(u.ID, gitlab.GetUsersOptions{})).ok(t).AvatarURL, mine.AvatarURL)
	same(t, "avatar by email", ask(root.Avatar.GetAvatar(&gitlab.GetAvatarOptions{Email: new("cleo@example.org")})).ok(t).AvatarURL, mine.AvatarURL)

	// This client removes an avatar with an upload without name and content.
	u = ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Avatar: &gitlab.UserAvatar{}})).ok(t)
	same(t, "avatar", u.AvatarURL, "")

	ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{
		Avatar: &gitlab.UserAvatar{Filename: "page.png", Image: strings.NewReader("<html></html>")},
	})).refused(t, http.StatusBadRequest, "{message: {avatar: [file format is not supported. Please try one of the following supported formats: image/png, image/jpeg, image/gif, image/webp]}}")
}

func goRefusals(t *testing.T, s *server, root *gitlab.Client) {
	newUser(t, root, "dora")
	with := func(change func(*gitlab.CreateUserOptions)) answer[*gitlab.User] {
		o := gitlab.CreateUserOptions{Username: new("dora2"), Name: new("Dora"), Email: new("dora2@example.org"), Password: new(password)}
		change(&o)
		return ask(root.Users.CreateUser(&o))
	}
	with(func(o *gitlab.CreateUserOptions) { o.Email = new("DORA@example.org") }).
		refused(t, http.StatusConflict, "{message: Email has already been taken}")
	with(func(o *gitlab.CreateUserOptions) { o.Username = new("Dora") }).
		refused(t, http.StatusConflict, "{message: Username has already been taken}")
	with(func(o *gitlab.CreateUserOptions) { o.Name, o.Email = nil, nil }).
		refused(t, http.StatusBadRequest, "{error: email is missing, name is missing}")
	with(func(o *gitlab.CreateUserOptions) { o.Password = nil }).
		refused(t, http.StatusBadRequest, "{error: password, reset_password, force_random_password are missing, at least one parameter must be provided}")
	with(func(o *gitlab.CreateUserOptions) { o.Email, o.Password = new("nowhere"), new("short") }).
		refused(t, http.StatusBadRequest, "{message: {email: [is invalid]}, {password: [is too short (minimum is 8 characters)]}}")

	ask(root.Users.GetUser(987654, gitlab.GetUsersOptions{})).missing(t)
	ask(s.client(t, "svcpat-no-such-token").Users.CurrentUser()).
		refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
	anonymous, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	ask(anonymous.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")

	job, err := gitlab.NewJobClient("no-such-job", gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	ask(job.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")

	u := newUser(t, root, "plain")
	plain := s.client(t, newToken(t, root, u.ID, "api").Token)
	ask(plain.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: new("more"), Name: new("More"), Email: new("more@example.org"), Password: new(password),
	})).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	send(plain.Users.DeleteUser(u.ID)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	seen := ask(plain.Users.GetUser(1, gitlab.GetUsersOptions{})).ok(t)
	if seen.Username != "root" || seen.Email != "" || seen.IsAdmin {
		t.Errorf("a plain user sees %+v of root", seen)
	}
}

func goStates(t *testing.T, s *server, root *gitlab.Client) {
	u := newUser(t, root, "eve")
	self := s.client(t, newToken(t, root, u.ID, "api").Token)
	state := func(want string) {
		t.Helper()
		same(t, "state", ask(root.Users.GetUser(u.ID, gitlab.GetUsersOptions{})).ok(t).State, want)
	}
	steps := []struct {
		name   string
		do     func(int64, ...gitlab.RequestOptionFunc) error
		want   error
		status string
	}{
		{"block", root.Users.BlockUser, nil, "blocked"},
		{"deactivate a blocked user", root.Users.DeactivateUser, gitlab.ErrUserDeactivatePrevented, "blocked"},
		{"activate a blocked user", root.Users.ActivateUser, gitlab.ErrUserActivatePrevented, "blocked"},
		{"unblock", root.Users.UnblockUser, nil, "active"},
		{"deactivate a user who was never active", root.Users.DeactivateUser, nil, "deactivated"},
		{"activate", root.Users.ActivateUser, nil, "active"},
		{"ban", root.Users.BanUser, nil, "banned"},
		{"unblock a banned user", root.Users.UnblockUser, gitlab.ErrUserUnblockPrevented, "banned"},
		{"unban", root.Users.UnbanUser, nil, "active"},
		{"reject a user who does not wait", root.Users.RejectUser, gitlab.ErrUserConflict, "active"},
		{"no second factor", root.Users.DisableTwoFactor, gitlab.ErrUserTwoFactorNotEnabled, "active"},
	}
	for _, step := range steps {
		if err := step.do(u.ID); !errors.Is(err, step.want) {
			t.Errorf("%s: got %v, want %v", step.name, err, step.want)
		}
		state(step.status)
		if step.status == "blocked" {
			ask(self.Users.CurrentUser()).refused(t, http.StatusForbidden, "{message: 403 Forbidden - Your account has been blocked.}")
		}
	}
	ask(self.Users.CurrentUser()).ok(t)
	if err := root.Users.UnblockUser(987654); !errors.Is(err, gitlab.ErrUserNotFound) {
		t.Errorf("unblock of nobody: %v, want ErrUserNotFound", err)
	}
	if err := self.Users.BlockUser(1); !gitlab.HasStatusCode(err, http.StatusForbidden) {
		t.Errorf("a plain user blocks root: %v, want 403", err)
	}
}

func goDelete(t *testing.T, s *server, root *gitlab.Client) {
	u := newUser(t, root, "fred")
	self := s.client(t, newToken(t, root, u.ID, "api").Token)
	send(root.Users.DeleteUser(u.ID, gitlab.WithHeader("If-Unmodified-Since", "Mon, 01 Jan 2024 00:00:00 GMT"))).
		refused(t, http.StatusPreconditionFailed, "{message: 412 Precondition Failed}")
	send(root.Users.DeleteUser(u.ID)).done(t, http.StatusNoContent)
	ask(root.Users.GetUser(u.ID, gitlab.GetUsersOptions{})).missing(t)
	send(root.Users.DeleteUser(u.ID)).missing(t)
	ask(self.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
	if list := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{Username: new("fred")})).ok(t); len(list) != 0 {
		t.Errorf("a deleted user is listed: %+v", list[0])
	}
	send(root.Users.DeleteUser(1)).refused(t, http.StatusConflict, "{message: The last administrator cannot be removed.}")

	// The username is available again when the user has been deleted.
	waitFor(t, "the name of a deleted user is free", func() bool {
		again := ask(root.Users.CreateUser(&gitlab.CreateUserOptions{
			Username: new("fred"), Name: new("Fred"), Email: new("fred@example.org"), Password: new(password),
		}))
		if again.err != nil && !gitlab.HasStatusCode(again.err, http.StatusConflict) {
			t.Fatalf("the name of a deleted user is not free: %v", again.err)
		}
		return again.err == nil
	})
}

func TestGoClientLists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		names := []string{"root", "ghost"} // by id
		for _, name := range []string{"zed", "amy", "kim", "lou", "mia", "ned"} {
			u := newUser(t, root, name)
			names = append(names, name)
			if len(names) > 5 {
				ask(root.Users.ModifyUser(u.ID, &gitlab.ModifyUserOptions{Name: new(`Name, "a"; <b>&% of ` + name)})).ok(t)
			}
		}
		t.Run("pages", func(t *testing.T) { goPages(t, root, names) })
		t.Run("filters", func(t *testing.T) { goFilters(t, root) })
	})
}

func goPages(t *testing.T, root *gitlab.Client, names []string) {
	first := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{ListOptions: gitlab.ListOptions{PerPage: 3}}))
	same(t, "first page", usernames(first.ok(t)), []string{"ned", "mia", "lou"})
	same(t, "total, pages, per page, page, next", []int64{first.res.TotalItems, first.res.TotalPages, first.res.ItemsPerPage, first.res.CurrentPage, first.res.NextPage},
		[]int64{8, 3, 3, 1, 2})
	last := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{ListOptions: gitlab.ListOptions{PerPage: 3, Page: 3}}))
	same(t, "last page", usernames(last.ok(t)), []string{"ghost", "root"})
	same(t, "page, previous, next", []int64{last.res.CurrentPage, last.res.PreviousPage, last.res.NextPage}, []int64{3, 2, 0})

	sorted := slices.Sorted(slices.Values(names))
	tests := []struct {
		name    string
		options gitlab.ListUsersOptions
		want    []string
		keyset  bool
	}{
		{name: "offset", options: gitlab.ListUsersOptions{Sort: new("asc")}, want: names},
		{name: "offset by time", options: gitlab.ListUsersOptions{OrderBy: new("created_at"), Sort: new("desc")}, want: backwards(names)},
		{name: "keyset by id", options: gitlab.ListUsersOptions{OrderBy: new("id"), Sort: new("asc")}, want: names, keyset: true},
		{name: "keyset by id, backwards", options: gitlab.ListUsersOptions{OrderBy: new("id"), Sort: new("desc")}, want: backwards(names), keyset: true},
		{name: "keyset by username", options: gitlab.ListUsersOptions{OrderBy: new("username"), Sort: new("asc")}, want: sorted, keyset: true},
		{name: "offset with a filter that links must escape", options: gitlab.ListUsersOptions{Search: new(`, "a"; <b>&%`), Sort: new("asc")}, want: names[5:]},
		{name: "keyset with a filter that links must escape", options: gitlab.ListUsersOptions{OrderBy: new("id"), Sort: new("asc"), Search: new(`, "a"; <b>&%`)}, want: names[5:], keyset: true},
		{name: "keyset with a filter", options: gitlab.ListUsersOptions{OrderBy: new("id"), Sort: new("asc"), Search: new("NAME")}, want: names[2:], keyset: true},
	}
	for _, tt := range tests {
		o := tt.options
		o.PerPage = 2
		if tt.keyset {
			o.Pagination = "keyset"
		}
		pages := 0
		list, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.User, *gitlab.Response, error) {
			pages++
			list, res, err := root.Users.ListUsers(&o, p)
			if err == nil && tt.keyset && (res.TotalItems != 0 || res.NextPage != 0) {
				t.Errorf("%s: a keyset page with totals", tt.name)
			}
			return list, res, err
		})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		same(t, tt.name, usernames(list), tt.want)
		same(t, tt.name+": pages", pages, (len(tt.want)+1)/2)
	}
	ask(root.Users.ListUsers(&gitlab.ListUsersOptions{ListOptions: gitlab.ListOptions{Pagination: "keyset"}, OrderBy: new("updated_at")})).
		refused(t, http.StatusMethodNotAllowed, "{error: Keyset pagination is not yet available for this type of request}")
}

func goFilters(t *testing.T, root *gitlab.Client) {
	amy := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{Username: new("AMY")})).ok(t)[0]
	ask(root.Users.ModifyUser(amy.ID, &gitlab.ModifyUserOptions{External: new(true), PublicEmail: new("amy@example.org"), Provider: new("saml"), ExternUID: new("amy-uid")})).ok(t)
	zed := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{Username: new("zed")})).ok(t)[0]
	if err := root.Users.BlockUser(zed.ID); err != nil {
		t.Fatal(err)
	}
	ask(root.CustomAttribute.SetCustomUserAttribute(amy.ID, gitlab.CustomAttribute{Key: "team", Value: "red"})).ok(t)
	before := time.Now().Add(-time.Hour)
	all := []string{"root", "ghost", "zed", "amy", "kim", "lou", "mia", "ned"}
	tests := []struct {
		name    string
		options gitlab.ListUsersOptions
		want    []string
	}{
		{"username", gitlab.ListUsersOptions{Username: new("KIM")}, []string{"kim"}},
		{"search in usernames", gitlab.ListUsersOptions{Search: new("mi")}, []string{"root", "mia"}},
		{"search by email", gitlab.ListUsersOptions{Search: new("lou@example.org")}, []string{"lou"}},
		{"active", gitlab.ListUsersOptions{Active: new(true), ExcludeInternal: new(true)}, []string{"root", "amy", "kim", "lou", "mia", "ned"}},
		{"blocked", gitlab.ListUsersOptions{Blocked: new(true)}, []string{"zed"}},
		{"false is no filter", gitlab.ListUsersOptions{Username: new("zed"), Active: new(false), Blocked: new(false), External: new(false)}, []string{"zed"}},
		{"external", gitlab.ListUsersOptions{External: new(true)}, []string{"amy"}},
		{"not external", gitlab.ListUsersOptions{ExcludeExternal: new(true), Blocked: new(true)}, []string{"zed"}},
		{"admins", gitlab.ListUsersOptions{Admins: new(true)}, []string{"root"}},
		{"identity", gitlab.ListUsersOptions{Provider: new("saml"), ExternalUID: new("amy-uid")}, []string{"amy"}},
		{"with a second factor", gitlab.ListUsersOptions{TwoFactor: new("enabled")}, nil},
		{"created after", gitlab.ListUsersOptions{CreatedAfter: &before}, all},
		{"created before", gitlab.ListUsersOptions{CreatedBefore: &before}, nil},
		{"humans", gitlab.ListUsersOptions{Humans: new(true), Search: new("ghost")}, nil},
		{"not active", gitlab.ListUsersOptions{ExcludeActive: new(true)}, []string{"zed"}},
		{"not human", gitlab.ListUsersOptions{ExcludeHumans: new(true)}, []string{"ghost"}},
		{"public email", gitlab.ListUsersOptions{PublicEmail: new("amy@example.org")}, []string{"amy"}},
		{"no public email", gitlab.ListUsersOptions{PublicEmail: new("kim@example.org")}, nil},
	}
	for _, tt := range tests {
		o := tt.options
		o.OrderBy, o.Sort = new("id"), new("asc")
		same(t, tt.name, usernames(ask(root.Users.ListUsers(&o)).ok(t)), tt.want)
	}
	list := ask(root.Users.ListUsers(&gitlab.ListUsersOptions{Username: new("amy"), WithCustomAttributes: new(true)})).ok(t)
	same(t, "custom attributes", list[0].CustomAttributes, []*gitlab.CustomAttribute{{Key: "team", Value: "red"}})
	ask(root.Users.ListUsers(&gitlab.ListUsersOptions{OrderBy: new("age")})).
		refused(t, http.StatusBadRequest, "{error: order_by does not have a valid value}")
}

func usernames(list []*gitlab.User) []string {
	var names []string
	for _, u := range list {
		names = append(names, u.Username)
	}
	return names
}

func backwards(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}
