package compat

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientProfile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		t.Run("self", func(t *testing.T) { goSelf(t, root, self, u) })
		t.Run("emails", func(t *testing.T) { goEmails(t, root, self, u) })
		t.Run("keys", func(t *testing.T) { goKeys(t, root, self, u) })
		t.Run("status", func(t *testing.T) { goStatus(t, root, self, u) })
		t.Run("attributes", func(t *testing.T) { goAttributes(t, root, self, u) })
	})
}

func goSelf(t *testing.T, root, self *gitlab.Client, u *gitlab.User) {
	me := ask(self.Users.CurrentUser()).ok(t)
	same(t, "id, username, email", []any{me.ID, me.Username, me.Email}, []any{u.ID, "ada", "ada@example.org"})
	if me.IsAdmin || me.Note != "" || me.CreatedBy != nil {
		t.Errorf("a plain user sees what administrators see of him: %+v", me)
	}
	first := ask(root.Users.CurrentUser()).ok(t)
	if first.ID != 1 || first.Username != "root" || !first.IsAdmin {
		t.Errorf("current user of root's token: %+v", first)
	}
	recent(t, "current_sign_in_at", ask(self.Users.CurrentUser()).ok(t).CurrentSignInAt)

	today := time.Now().UTC().Format(time.DateOnly)
	seen := map[string]string{}
	for _, a := range ask(root.Users.GetUserActivities(&gitlab.GetUserActivitiesOptions{})).ok(t) {
		seen[a.Username] = a.LastActivityOn.String()
	}
	same(t, "activities", seen, map[string]string{"root": today, "ada": today})
	tomorrow := gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, 1))
	if list := ask(root.Users.GetUserActivities(&gitlab.GetUserActivitiesOptions{From: &tomorrow})).ok(t); len(list) != 0 {
		t.Errorf("activities from tomorrow on: %+v", list)
	}
}

func goEmails(t *testing.T, root, self *gitlab.Client, u *gitlab.User) {
	mine := ask(self.Users.AddEmail(&gitlab.AddEmailOptions{Email: new("mine@example.org")})).done(t, http.StatusCreated)
	if mine.ID == 0 || mine.Email != "mine@example.org" || mine.ConfirmedAt != nil {
		t.Errorf("own new address: %+v", mine)
	}
	given := ask(root.Users.AddEmailForUser(u.ID, &gitlab.AddEmailOptions{Email: new("given@example.org"), SkipConfirmation: new(true)})).done(t, http.StatusCreated)
	recent(t, "confirmed_at", given.ConfirmedAt)
	same(t, "own addresses", ask(self.Users.ListEmails()).ok(t), []*gitlab.Email{mine, given})
	same(t, "addresses of the user", ask(root.Users.ListEmailsForUser(u.ID, &gitlab.ListEmailsForUserOptions{})).ok(t), []*gitlab.Email{mine, given})
	same(t, "one address", ask(self.Users.GetEmail(given.ID)).ok(t), given)

	ask(self.Users.AddEmail(&gitlab.AddEmailOptions{Email: new("root@localhost")})).
		refused(t, http.StatusBadRequest, "{message: {email: [has already been taken]}}")
	ask(self.Users.AddEmail(&gitlab.AddEmailOptions{})).refused(t, http.StatusBadRequest, "{error: email is missing}")
	ask(self.Users.ListEmailsForUser(1, nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")

	send(self.Users.DeleteEmail(mine.ID)).done(t, http.StatusNoContent)
	send(root.Users.DeleteEmailForUser(u.ID, given.ID)).done(t, http.StatusNoContent)
	ask(self.Users.GetEmail(mine.ID)).missing(t)
	if list := ask(self.Users.ListEmails()).ok(t); len(list) != 0 {
		t.Errorf("addresses after both were deleted: %+v", list)
	}
}

func goKeys(t *testing.T, root, self *gitlab.Client, u *gitlab.User) {
	line, fingerprint := sshKey(t)
	nextYear := gitlab.ISOTime(time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour))
	mine := ask(self.Users.AddSSHKey(&gitlab.AddSSHKeyOptions{
		Title: new("laptop"), Key: new(line + " ada@laptop"), ExpiresAt: &nextYear, UsageType: new("auth"),
	})).done(t, http.StatusCreated)
	recent(t, "created_at", mine.CreatedAt)
	same(t, "title, key, usage", []string{mine.Title, mine.Key, mine.UsageType}, []string{"laptop", line + " ada@laptop", "auth"})
	if mine.ExpiresAt == nil || !mine.ExpiresAt.Equal(time.Time(nextYear)) {
		t.Errorf("expires at %v, want %v", mine.ExpiresAt, nextYear)
	}
	other, _ := sshKey(t)
	given := ask(root.Users.AddSSHKeyForUser(u.ID, &gitlab.AddSSHKeyOptions{Title: new("given"), Key: &other})).done(t, http.StatusCreated)
	same(t, "usage unless given", given.UsageType, "auth_and_signing")

	both := []*gitlab.SSHKey{mine, given}
	same(t, "own keys", ask(self.Users.ListSSHKeys(&gitlab.ListSSHKeysOptions{})).ok(t), both)
	same(t, "keys by id", ask(root.Users.ListSSHKeysForUser(u.ID, nil)).ok(t), both)
	same(t, "keys by username", ask(root.Users.ListSSHKeysForUser("@ada", nil)).ok(t), both)
	same(t, "own key", ask(self.Users.GetSSHKey(mine.ID)).ok(t), mine)
	same(t, "key of the user", ask(root.Users.GetSSHKeyForUser(u.ID, given.ID)).ok(t), given)
	found := ask(root.Keys.GetKeyByFingerprint(&gitlab.GetKeyByFingerprintOptions{Fingerprint: fingerprint})).ok(t)
	same(t, "key by fingerprint", []any{found.ID, found.User.Username}, []any{mine.ID, "ada"})
	same(t, "owner of a key", ask(root.Keys.GetKeyWithUser(given.ID)).ok(t).User.ID, u.ID)

	ask(self.Users.AddSSHKey(&gitlab.AddSSHKeyOptions{Title: new("again"), Key: &line})).
		refused(t, http.StatusBadRequest, "{message: {fingerprint_sha256: [has already been taken]}}")
	ask(self.Users.AddSSHKey(&gitlab.AddSSHKeyOptions{Title: new("broken"), Key: new("ssh-ed25519 AAAA")})).
		refused(t, http.StatusBadRequest, "{message: {key: [is invalid]}}")

	signing := ask(self.Users.AddGPGKey(&gitlab.AddGPGKeyOptions{Key: new(gpgKey)})).done(t, http.StatusCreated)
	same(t, "GPG key", signing.Key, gpgKey)
	same(t, "own GPG keys", ask(self.Users.ListGPGKeys()).ok(t), []*gitlab.GPGKey{signing})
	same(t, "own GPG key", ask(self.Users.GetGPGKey(signing.ID)).ok(t), signing)
	same(t, "GPG keys of the user", ask(root.Users.ListGPGKeysForUser(u.ID)).ok(t), []*gitlab.GPGKey{signing})
	same(t, "GPG key of the user", ask(root.Users.GetGPGKeyForUser(u.ID, signing.ID)).ok(t), signing)
	send(self.Users.DeleteGPGKey(signing.ID)).done(t, http.StatusNoContent)
	given2 := ask(root.Users.AddGPGKeyForUser(u.ID, &gitlab.AddGPGKeyOptions{Key: new(gpgKey)})).done(t, http.StatusCreated)
	send(root.Users.DeleteGPGKeyForUser(u.ID, given2.ID)).done(t, http.StatusNoContent)

	send(self.Users.DeleteSSHKey(mine.ID)).done(t, http.StatusNoContent)
	send(root.Users.DeleteSSHKeyForUser(u.ID, given.ID)).done(t, http.StatusNoContent)
	ask(self.Users.GetSSHKey(mine.ID)).missing(t)
}

func goStatus(t *testing.T, root, self *gitlab.Client, u *gitlab.User) {
	set := ask(self.Users.SetUserStatus(&gitlab.UserStatusOptions{
		Emoji: new("coffee"), Message: new("a <b>break</b>"), Availability: new(gitlab.Busy), ClearStatusAfter: new(gitlab.ClearStatusAfter30Minutes),
	})).done(t, http.StatusOK)
	same(t, "emoji, message", []string{set.Emoji, set.Message}, []string{"coffee", "a <b>break</b>"})
	same(t, "message_html", set.MessageHTML, "a &lt;b&gt;break&lt;/b&gt;")
	same(t, "availability", set.Availability, gitlab.Busy)
	if set.ClearStatusAt == nil || time.Until(*set.ClearStatusAt) > 31*time.Minute || time.Until(*set.ClearStatusAt) < 25*time.Minute {
		t.Errorf("clear_status_at is %v, want in 30 minutes", set.ClearStatusAt)
	}
	same(t, "own status", ask(self.Users.CurrentUserStatus()).ok(t), set)
	same(t, "status by id", ask(root.Users.GetUserStatus(u.ID)).ok(t), set)
	same(t, "status by username", ask(root.Users.GetUserStatus("ada")).ok(t), set)
	cleared := ask(self.Users.SetUserStatus(&gitlab.UserStatusOptions{})).ok(t)
	if cleared.Message != "" || cleared.Emoji != "" || cleared.ClearStatusAt != nil {
		t.Errorf("status after it was cleared: %+v", cleared)
	}
}

func goAttributes(t *testing.T, root, self *gitlab.Client, u *gitlab.User) {
	team := gitlab.CustomAttribute{Key: "team.name", Value: "red / blue"}
	same(t, "set", ask(root.CustomAttribute.SetCustomUserAttribute(u.ID, team)).ok(t), &team)
	same(t, "get", ask(root.CustomAttribute.GetCustomUserAttribute(u.ID, "team.name")).ok(t), &team)
	same(t, "list", ask(root.CustomAttribute.ListCustomUserAttributes(u.ID)).ok(t), []*gitlab.CustomAttribute{&team})
	same(t, "with the user", ask(root.Users.GetUser(u.ID, gitlab.GetUsersOptions{WithCustomAttributes: new(true)})).ok(t).CustomAttributes, []*gitlab.CustomAttribute{&team})
	ask(self.CustomAttribute.ListCustomUserAttributes(u.ID)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	send(root.CustomAttribute.DeleteCustomUserAttribute(u.ID, "team.name")).done(t, http.StatusNoContent)
	ask(root.CustomAttribute.GetCustomUserAttribute(u.ID, "team.name")).missing(t)
}

// sshKey generates a key pair and returns the public key as a line of an
// authorized_keys file, and its fingerprint.
func sshKey(t *testing.T) (line, fingerprint string) {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const kind = "ssh-ed25519"
	blob := append([]byte{0, 0, 0, byte(len(kind))}, kind...)
	blob = append(blob, 0, 0, 0, byte(len(public)))
	blob = append(blob, public...)
	sum := sha256.Sum256(blob)
	return kind + " " + base64.StdEncoding.EncodeToString(blob), "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// gpgKey was generated with GnuPG.
const gpgKey = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEavr+MBYJKwYBBAHaRw8BAQdA/K8NxdLobvXaRXAmjEcyix+ykd/WrtMaCdVT
szwlF6m0FUFkYSA8YWRhQGV4YW1wbGUub3JnPoiQBBMWCAA4FiEEf6W5UGUhTjOl
lKEpRvstS8zIg18FAmr6/jACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
RvstS8zIg1/SwgEAzBJw8bJeUX7264iVYIFYe9tCqwUtF+1vkxKffxJcww8BAOTl
FKntIhWJLRpNMk8qAMj9Zk2jhEIckKaDEnInbhkH
=IVws
-----END PGP PUBLIC KEY BLOCK-----`
