package project

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/user"
)

// plot is a private group with a project in it, and a project outside of it.
type plot struct {
	*Service
	t               *testing.T
	by              actor.Actor // owns everything
	group           *Namespace
	inside, outside *Project
}

func newPlot(t *testing.T, d *db.DB) *plot {
	t.Helper()
	s := newService(t, d)
	alice := newUser(t, s, "alice")
	p := &plot{Service: s, t: t, by: actor.Actor{ID: alice.ID, Username: "alice"}}
	var err error
	if p.group, err = s.CreateGroup(t.Context(), p.by, NewGroup{Name: "G", Path: "g"}); err != nil {
		t.Fatal(err)
	}
	if p.inside, err = s.Create(t.Context(), p.by, NewProject{Path: "inside", NamespaceID: &p.group.ID}); err != nil {
		t.Fatal(err)
	}
	if p.outside, err = s.Create(t.Context(), p.by, NewProject{Path: "outside"}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plot) later(d time.Duration) {
	now := p.Now().Add(d)
	p.Now, p.Users.Now = func() time.Time { return now }, func() time.Time { return now }
}

// opens checks whether an actor may read and write the code of a project.
func (p *plot) opens(by actor.Actor, of *Project, read, write bool) {
	p.t.Helper()
	_, err := p.ReadCode(p.t.Context(), by, RefTo(of.ID))
	if (err == nil) != read {
		p.t.Errorf("read %s: %v, want %t", of.FullPath, err, read)
	}
	_, err = p.WriteCode(p.t.Context(), by, RefTo(of.ID))
	if (err == nil) != write {
		p.t.Errorf("write %s: %v, want %t", of.FullPath, err, write)
	}
}

func refused(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Errorf("got %v, want a refusal of kind %d", err, kind)
	}
}

func newPublicKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func TestDeployTokenOpens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		ctx := t.Context()
		end := p.Now().Add(time.Hour)
		make := func(place Place, scopes ...string) (*DeployToken, actor.Actor) {
			t.Helper()
			made, err := p.CreateDeployToken(ctx, p.by, place, NewDeployToken{Name: "ci", Scopes: scopes, ExpiresAt: &end})
			if err != nil {
				t.Fatal(err)
			}
			by, err := p.AuthenticateDeployToken(ctx, made.Username, made.Secret)
			if err != nil || by.ID != 0 || by.Deploy == nil || by.Deploy.ID != made.ID || by.Deploy.UserID != p.by.ID {
				t.Fatalf("%+v, %v", by, err)
			}
			return made, by
		}
		inGroup := Place{Ref: RefTo(p.group.ID), Group: true}
		ofProject, byProject := make(Place{Ref: RefTo(p.inside.ID)}, ReadRepository)
		_, byGroup := make(inGroup, ReadRepository, "read_registry")
		_, byOther := make(Place{Ref: RefTo(p.outside.ID)}, ReadRepository)
		_, registry := make(inGroup, "read_registry")
		if ofProject.Username == "" || !strings.HasPrefix(ofProject.Secret, "svcdt-") || !strings.HasPrefix(ofProject.Username, "svc+deploy-token-") {
			t.Errorf("made %+v", ofProject)
		}
		p.opens(byProject, p.inside, true, false)
		p.opens(byProject, p.outside, false, false)
		p.opens(byGroup, p.inside, true, false)
		p.opens(byGroup, p.outside, false, false)
		p.opens(byOther, p.inside, false, false)
		p.opens(registry, p.inside, false, false)
		// The token grants access to the code only.
		_, err := p.Get(ctx, byProject, RefTo(p.inside.ID))
		refused(t, err, errs.KindNotFound)

		for _, c := range [][2]string{{"other", ofProject.Secret}, {ofProject.Username, "svcdt-wrong"}, {"", ofProject.Secret}} {
			_, err := p.AuthenticateDeployToken(ctx, c[0], c[1])
			refused(t, err, errs.KindUnauthorized)
		}
		if err := p.DeleteDeployToken(ctx, p.by, Place{Ref: RefTo(p.inside.ID)}, ofProject.ID); err != nil {
			t.Fatal(err)
		}
		p.opens(byProject, p.inside, false, false) // also for an actor that was authenticated before
		_, err = p.AuthenticateDeployToken(ctx, ofProject.Username, ofProject.Secret)
		refused(t, err, errs.KindUnauthorized)

		p.later(time.Hour)
		p.opens(byGroup, p.inside, false, false)
		// Tokens of a group grant no access to a project that was moved out of it.
		if _, err := p.Transfer(ctx, p.by, RefTo(p.inside.ID), "alice"); err != nil {
			t.Fatal(err)
		}
		p.later(-time.Hour)
		p.opens(byGroup, p.inside, false, false)
		p.opens(byOther, p.outside, true, false)
	})
}

func TestDeployKeyOpens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		ctx := t.Context()
		end := p.Now().Add(time.Hour)
		k, err := p.AddDeployKey(ctx, p.by, RefTo(p.inside.ID), NewDeployKey{Title: "ci", Key: newPublicKey(t), ExpiresAt: &end})
		if err != nil {
			t.Fatal(err)
		}
		by, err := p.AuthenticateDeployKey(ctx, k.SHA256)
		if err != nil || by.ID != 0 || by.Deploy == nil || by.Deploy.Kind != actor.DeployKey || by.Deploy.UserID != p.by.ID {
			t.Fatalf("%+v, %v", by, err)
		}
		if k, err = p.DeployKey(ctx, p.by, RefTo(p.inside.ID), k.ID); err != nil || k.LastUsedAt == nil {
			t.Errorf("last use of %+v, %v", k, err)
		}
		p.opens(by, p.inside, true, false)
		p.opens(by, p.outside, false, false)
		push := true
		if _, err := p.UpdateDeployKey(ctx, p.by, RefTo(p.inside.ID), k.ID, DeployKeyChange{CanPush: &push}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.EnableDeployKey(ctx, p.by, RefTo(p.outside.ID), k.ID); err != nil {
			t.Fatal(err)
		}
		p.opens(by, p.inside, true, true)
		p.opens(by, p.outside, true, false)
		if _, err := p.SetArchived(ctx, p.by, RefTo(p.inside.ID), true); err != nil {
			t.Fatal(err)
		}
		p.opens(by, p.inside, true, false)

		if err := p.RemoveDeployKey(ctx, p.by, RefTo(p.inside.ID), k.ID); err != nil {
			t.Fatal(err)
		}
		p.opens(by, p.inside, false, false)
		p.opens(by, p.outside, true, false)
		p.later(time.Hour)
		p.opens(by, p.outside, false, false)
		_, err = p.AuthenticateDeployKey(ctx, k.SHA256)
		refused(t, err, errs.KindUnauthorized)
		_, err = p.AuthenticateDeployKey(ctx, "SHA256:none")
		refused(t, err, errs.KindUnauthorized)
	})
}

// TestKeyOfOne checks that a key is either a user's SSH key or a deploy key.
func TestKeyOfOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		ctx := t.Context()
		theirs, mine := newPublicKey(t), newPublicKey(t)
		if _, err := p.AddDeployKey(ctx, p.by, RefTo(p.inside.ID), NewDeployKey{Title: "ci", Key: theirs}); err != nil {
			t.Fatal(err)
		}
		_, err := p.Users.AddOwnKey(ctx, p.by, user.NewKey{Title: "k", Key: theirs})
		refused(t, err, errs.KindInvalid)
		if _, err := p.Users.AddOwnKey(ctx, p.by, user.NewKey{Title: "k", Key: mine}); err != nil {
			t.Fatal(err)
		}
		_, err = p.AddDeployKey(ctx, p.by, RefTo(p.inside.ID), NewDeployKey{Title: "ci", Key: mine})
		refused(t, err, errs.KindInvalid)
		// Users cannot add a deploy key of a project that they are not a member of.
		bob := newUser(t, p.Service, "bob")
		byBob := actor.Actor{ID: bob.ID, Username: "bob"}
		his, err := p.Create(ctx, byBob, NewProject{Path: "his"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.AddDeployKey(ctx, byBob, RefTo(his.ID), NewDeployKey{Title: "ci", Key: theirs})
		refused(t, err, errs.KindInvalid)
		if again, err := p.AddDeployKey(ctx, p.by, RefTo(p.outside.ID), NewDeployKey{Title: "other", Key: theirs, CanPush: true}); err != nil || again.Title != "ci" || !again.CanPush {
			t.Errorf("in a second project: %+v, %v", again, err)
		}
	})
}
