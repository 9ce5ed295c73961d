package project

import (
	"bytes"
	"image"
	"image/png"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/picture"
	"svc/internal/user"
)

// token creates an access token and returns it with its actor.
func (p *plot) token(place Place, level Level, expires string) (*AccessToken, actor.Actor) {
	p.t.Helper()
	made, err := p.CreateAccessToken(p.t.Context(), p.by, place, NewAccessToken{
		NewToken: user.NewToken{Name: "bot", Scopes: []string{"api"}, ExpiresAt: expires}, Level: level,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	by, err := p.Users.Authenticate(p.t.Context(), made.Secret, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return made, by
}

func (p *plot) count(query string, args ...any) (n int) {
	p.t.Helper()
	if err := p.DB.QueryRowContext(p.t.Context(), `SELECT count(*) FROM `+query, args...).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *plot) members(userID int64) int { return p.count(`members WHERE user_id = ?`, userID) }

// TestBotRetires checks that a bot user is a member only while it has an active
// token: the membership ends if the token is revoked or expires.
func TestBotRetires(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		ctx := t.Context()
		at := Place{Ref: RefTo(p.inside.ID)}
		revoked, _ := p.token(at, Developer, "")
		self, bySelf := p.token(at, Developer, "")
		short, _ := p.token(at, Developer, "2026-03-10")
		long, byLong := p.token(at, Maintainer, "")
		reused, _ := p.token(at, Developer, "")

		if err := p.RevokeAccessToken(ctx, p.by, at, revoked.ID, nil); err != nil {
			t.Fatal(err)
		}
		if p.members(revoked.UserID) != 0 {
			t.Error("a bot whose token was revoked is still a member")
		}
		if err := p.Users.RevokeSelfToken(ctx, bySelf); err != nil {
			t.Fatal(err)
		}
		if _, err := p.RotateAccessToken(ctx, p.by, at, reused.ID, ""); err != nil {
			t.Fatal(err)
		}
		_, err := p.RotateAccessToken(ctx, p.by, at, reused.ID, "") // rotated twice, so the token was copied
		refused(t, err, errs.KindInvalid)
		if err := p.retireBots(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{self.UserID, reused.UserID} {
			if p.members(id) != 0 {
				t.Errorf("bot %d is still a member", id)
			}
		}
		if p.members(short.UserID) != 1 || p.members(long.UserID) != 1 {
			t.Error("a bot whose token works is no member")
		}
		// Rotating a token extends the membership of the bot user.
		if _, err := p.RotateSelfAccessToken(ctx, byLong, at, "2026-06-01"); err != nil {
			t.Fatal(err)
		}
		p.later(7 * 24 * time.Hour)
		for _, work := range []func() error{func() error { return p.expireMembers(ctx) }, func() error { return p.retireBots(ctx) }} {
			if err := work(); err != nil {
				t.Fatal(err)
			}
		}
		if p.members(short.UserID) != 0 || p.members(long.UserID) != 1 {
			t.Error("expiry does not follow the tokens")
		}
		_, err = p.RotateAccessToken(ctx, p.by, at, short.ID, "")
		refused(t, err, errs.KindUnauthorized)
		page, err := p.AccessTokens(ctx, p.by, at, user.TokenFilter{State: "inactive"}, db.Paging{Limit: 20})
		if err != nil || len(page.Items) != 6 { // four tokens, the replacement of reused, and the first one of long
			t.Errorf("%d ended tokens are listed, %v", len(page.Items), err)
		}
		for _, item := range page.Items {
			if want := map[bool]Level{true: Maintainer, false: Developer}[item.UserID == long.UserID]; item.Level != want {
				t.Errorf("token of %d has level %d", item.UserID, item.Level)
			}
		}
		if left := p.count(`users WHERE kind = 'project_bot' AND deleted_at IS NULL`); left != 5 {
			t.Errorf("%d bots are left, want 5", left)
		}
	})
}

// TestBotOwnsNothing checks that a bot user cannot be the only Owner of a group, and
// cannot create groups, personal projects or access tokens.
func TestBotOwnsNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		at := Place{Ref: RefTo(p.group.ID), Group: true}
		_, bot := p.token(at, Owner, "")
		refused(t, p.RemoveMember(t.Context(), p.by, at, p.by.ID, false), errs.KindForbidden)
		refused(t, p.Users.Delete(t.Context(), actor.System(), p.by.ID, false, nil), errs.KindConflict)
		// A bot user cannot be added to other projects and cannot create access tokens.
		_, err := p.AddMember(t.Context(), p.by, Place{Ref: RefTo(p.outside.ID)}, NewMember{UserID: bot.ID, Level: Guest})
		refused(t, err, errs.KindInvalid)
		_, err = p.CreateAccessToken(t.Context(), bot, at, NewAccessToken{NewToken: user.NewToken{Name: "b", Scopes: []string{"api"}}, Level: Guest})
		refused(t, err, errs.KindForbidden)
		// It can create neither projects in its own namespace nor groups.
		_, err = p.Create(t.Context(), bot, NewProject{Path: "mine"})
		refused(t, err, errs.KindInvalid)
		_, err = p.CreateGroup(t.Context(), bot, NewGroup{Name: "H", Path: "h"})
		refused(t, err, errs.KindForbidden)
		if _, err := p.Create(t.Context(), bot, NewProject{Path: "ours", NamespaceID: &p.group.ID}); err != nil {
			t.Errorf("in its group: %v", err)
		}
		_, err = p.Users.CheckPassword(t.Context(), user.ForGit, bot.Username, "", "")
		refused(t, err, errs.KindUnauthorized)
	})
}

// TestDeletionClears checks that deleting a project or group also deletes its
// avatar, deploy keys and bot users.
func TestDeletionClears(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		ctx := t.Context()
		var face bytes.Buffer
		if err := png.Encode(&face, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
			t.Fatal(err)
		}
		file := func() *picture.File { return &picture.File{Name: "a.png", Data: bytes.NewReader(face.Bytes())} }
		for _, of := range []*Project{p.inside, p.outside} {
			if _, err := p.Update(ctx, p.by, RefTo(of.ID), Change{Fields: Fields{Avatar: file()}}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.AddDeployKey(ctx, p.by, RefTo(of.ID), NewDeployKey{Title: of.Path, Key: newPublicKey(t)}); err != nil {
				t.Fatal(err)
			}
			p.token(Place{Ref: RefTo(of.ID)}, Guest, "")
		}
		if _, err := p.UpdateGroup(ctx, p.by, RefTo(p.group.ID), GroupChange{Avatar: file()}); err != nil {
			t.Fatal(err)
		}
		shared, err := p.AddDeployKey(ctx, p.by, RefTo(p.inside.ID), NewDeployKey{Title: "shared", Key: newPublicKey(t)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.EnableDeployKey(ctx, p.by, RefTo(p.outside.ID), shared.ID); err != nil {
			t.Fatal(err)
		}
		_, byGroup := p.token(Place{Ref: RefTo(p.group.ID), Group: true}, Guest, "")
		left := func() (files, keys, bots int) {
			t.Helper()
			for _, err := range p.Blobs.List(ctx, "avatars/") {
				if err != nil {
					t.Fatal(err)
				}
				files++
			}
			return files, p.count(`deploy_keys`), p.count(`users WHERE kind IN ('project_bot', 'group_bot') AND deleted_at IS NULL`)
		}
		if files, keys, bots := left(); files != 3 || keys != 3 || bots != 3 {
			t.Fatalf("%d files, %d keys, %d bots, want 3 each", files, keys, bots)
		}
		if err := p.DeleteGroup(ctx, p.by, RefTo(p.group.ID), Deletion{}); err != nil {
			t.Fatal(err)
		}
		if err := p.finishDeleteGroup(ctx, deleteGroupWork{p.group.ID}); err != nil {
			t.Fatal(err)
		}
		if files, keys, bots := left(); files != 1 || keys != 2 || bots != 1 {
			t.Errorf("without the group: %d files, %d keys, %d bots, want 1, 2, 1", files, keys, bots)
		}
		_, err = p.RotateSelfAccessToken(ctx, byGroup, Place{Ref: RefTo(p.outside.ID)}, "")
		if err == nil {
			t.Error("a token of a group that is gone is rotated")
		}
		if err := p.Delete(ctx, p.by, RefTo(p.outside.ID), Deletion{}); err != nil {
			t.Fatal(err)
		}
		if err := p.finishDelete(ctx, deleteWork{p.outside.ID}); err != nil {
			t.Fatal(err)
		}
		if files, keys, bots := left(); files != 0 || keys != 0 || bots != 0 {
			t.Errorf("without the project: %d files, %d keys, %d bots", files, keys, bots)
		}
	})
}
