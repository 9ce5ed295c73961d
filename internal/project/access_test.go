package project

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/notice"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// newService returns a service with real dependencies.
func newService(t *testing.T, d *db.DB) *Service {
	t.Helper()
	dir := t.TempDir()
	blobs, err := blob.Open(t.Context(), "", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	keys, err := secret.LoadKeyring(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
	log := slog.New(slog.DiscardHandler)
	notices, work := notice.New(notice.Deps{DB: d, Log: log, Now: time.Now}), queue.New(queue.Deps{DB: d, Log: log})
	users := user.New(user.Deps{
		DB: d, Blobs: blobs, Queue: work, Notices: notices, Keys: keys, Now: now, ServiceName: "svc",
		Hasher:   secret.NewHasher(secret.Params{Memory: 64, Time: 1, Threads: 1}, 4),
		Settings: setting.New(setting.Deps{DB: d, Notices: notices, Now: now}),
	})
	s := New(Deps{DB: d, Blobs: blobs, Queue: work, Notices: notices, Users: users, Audit: audit.New(audit.Deps{DB: d}), Settings: users.Settings, Now: now, Host: "forge.example.com"})
	users.Events.Deleting.Subscribe(s.UserDeleting)
	users.Events.Deleted.Subscribe(s.UserDeleted)
	users.Events.Renamed.Subscribe(s.UserRenamed)
	return s
}

func newUser(t *testing.T, s *Service, name string) *user.User {
	t.Helper()
	u, err := s.Users.Create(t.Context(), actor.System(), user.NewUser{
		Username: name, Name: name, Email: name + "@example.com", Password: "correct horse", SkipConfirmation: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// world is a model of the groups and projects in the database.
type world struct {
	groups   []*place
	projects []*place
}

// place is a group or project of the model.
type place struct {
	group   *Namespace
	project *Project
	parent  *place
	members map[int64]grant
	shares  map[*place]grant
}

type grant struct {
	level   Level
	expires string
}

// counts returns the level, or NoAccess if it has expired.
func (g grant) counts() Level {
	if g.expires != "" && g.expires <= "2026-03-04" {
		return NoAccess
	}
	return g.level
}

// member returns the level by direct or inherited membership.
func (p *place) member(userID int64) Level {
	level := p.members[userID].counts()
	for up := p.parent; up != nil; up = up.parent {
		if l := up.members[userID].counts(); l > Minimal {
			level = max(level, l)
		}
	}
	return level
}

// level returns the effective level, computed directly from the rules.
func (p *place) level(userID int64) Level {
	level := p.member(userID)
	for at := p; at != nil; at = at.parent {
		for invited, share := range at.shares {
			if there := invited.member(userID); there > Minimal {
				level = max(level, min(there, share.counts()))
			}
		}
	}
	return level
}

func (p *place) source() source { return source{group: p.group, project: p.project} }

// draw creates a random world in one transaction.
func draw(rt *rapid.T, t *testing.T, s *Service, serial int, users []*user.User) *world {
	w := &world{}
	levels := rapid.SampledFrom([]Level{Minimal, Guest, Planner, Reporter, Developer, Maintainer, Owner})
	days := rapid.SampledFrom([]string{"", "", "", "2026-03-03", "2026-03-04", "2026-03-05"})
	visibilities := rapid.SampledFrom([]Visibility{Private, Internal, Public})
	err := s.DB.Tx(t.Context(), func(tx *db.Tx) error {
		// Delete the previous world.
		if _, err := tx.ExecContext(t.Context(), `DELETE FROM namespaces WHERE kind = 'group'`); err != nil {
			return err
		}
		for i := range rapid.IntRange(1, 6).Draw(rt, "groups") {
			n := &Namespace{Kind: GroupNamespace, Path: fmt.Sprintf("g%d-%d", serial, i), Visibility: visibilities.Draw(rt, "visibility"), Settings: defaultGroupSettings(), CreatedAt: s.Now(), UpdatedAt: s.Now()}
			n.Name, n.FullPath, n.FullName = n.Path, n.Path, n.Path
			p := &place{group: n, members: map[int64]grant{}, shares: map[*place]grant{}}
			if above := rapid.IntRange(-1, len(w.groups)-1).Draw(rt, "parent"); above >= 0 {
				p.parent = w.groups[above]
				if v := p.parent.group.Visibility; n.Visibility.width() > v.width() {
					n.Visibility = v
				}
				if err := n.putBelow(p.parent.group, &n.Visibility); err != nil {
					return err
				}
			}
			if err := insertGroup(t.Context(), tx, n); err != nil {
				return err
			}
			w.groups = append(w.groups, p)
		}
		for i := range rapid.IntRange(1, 3).Draw(rt, "projects") {
			in := rapid.SampledFrom(w.groups).Draw(rt, "group")
			p := s.newProject(actor.System(), NewProject{Path: fmt.Sprintf("p%d-%d", serial, i)})
			v := Private
			if in.group.Visibility == Public {
				v = visibilities.Draw(rt, "visibility")
			}
			if err := p.putInto(in.group, &v); err != nil {
				return err
			}
			if err := insertProject(t.Context(), tx, p); err != nil {
				return err
			}
			w.projects = append(w.projects, &place{project: p, parent: in, members: map[int64]grant{}, shares: map[*place]grant{}})
		}
		for _, p := range slices.Concat(w.groups, w.projects) {
			for _, u := range users {
				if !rapid.Bool().Draw(rt, "member") {
					continue
				}
				g := grant{levels.Draw(rt, "level"), days.Draw(rt, "day")}
				if p.project != nil || p.parent != nil {
					g.level = max(g.level, Guest)
				}
				if err := insertMember(t.Context(), tx, p.source(), &Member{UserID: u.ID, Level: g.level, ExpiresAt: g.expires, CreatedAt: s.Now()}); err != nil {
					return err
				}
				p.members[u.ID] = g
			}
			if !rapid.Bool().Draw(rt, "shared") {
				continue
			}
			invited := rapid.SampledFrom(w.groups).Draw(rt, "invited")
			if invited == p {
				continue
			}
			g := grant{max(levels.Draw(rt, "level"), Guest), days.Draw(rt, "day")}
			namespaceID, projectID := p.source().ids()
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO group_shares (namespace_id, project_id, group_id, access_level, expires_at, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
				namespaceID, projectID, invited.group.ID, int64(g.level), db.NullText(g.expires), s.Now()); err != nil {
				return err
			}
			p.shares[invited] = g
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	return w
}

// TestLevels compares the level of a user, the lists that it filters and the list of
// members with a simple model.
func TestLevels(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d)
		users := []*user.User{newUser(t, s, "alice"), newUser(t, s, "bob")}
		serial := 0
		rapid.Check(t, func(rt *rapid.T) {
			serial++
			w := draw(rt, t, s, serial, users)
			for _, u := range users {
				by := actor.Actor{ID: u.ID, Username: u.Username, External: rapid.Bool().Draw(rt, "external")}
				w.checkLevels(rt, t, s, by)
				w.checkLists(rt, t, s, by)
			}
			w.checkMembers(rt, t, s, users)
		})
	})
}

func (w *world) checkLevels(rt *rapid.T, t *testing.T, s *Service, by actor.Actor) {
	for _, p := range w.groups {
		got, err := s.GroupLevel(t.Context(), by, p.group.ID)
		if err != nil || got != p.level(by.ID) {
			rt.Fatalf("%s in group %s: level %d, %v, want %d", by.Username, p.group.FullPath, got, err, p.level(by.ID))
		}
	}
	for _, p := range w.projects {
		got, err := s.access(t.Context(), s.DB, by, p.project)
		if err != nil || got.Level() != p.level(by.ID) {
			rt.Fatalf("%s in project %s: level %d, %v, want %d", by.Username, p.project.FullPath, got.Level(), err, p.level(by.ID))
		}
		_, err = s.Require(t.Context(), by, RefTo(p.project.ID), Developer)
		if want := p.level(by.ID) >= Developer; (err == nil) != want {
			rt.Fatalf("%s requires Developer in %s: %v, want success: %v", by.Username, p.project.FullPath, err, want)
		}
	}
}

func (w *world) checkLists(rt *rapid.T, t *testing.T, s *Service, by actor.Actor) {
	for _, least := range []Level{NoAccess, Guest, Developer, Owner} {
		page, err := s.List(t.Context(), by, Filter{MinLevel: least}, Sort{}, db.Paging{Limit: 100_000})
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range w.projects {
			listed := slices.ContainsFunc(page.Items, func(one *Project) bool { return one.ID == p.project.ID })
			want := p.level(by.ID) >= least
			if least == NoAccess {
				want = visible(by, p.project.Visibility, p.level(by.ID))
			}
			if listed != want {
				rt.Fatalf("%s lists projects of level %d: %s is there: %v, want %v", by.Username, least, p.project.FullPath, listed, want)
			}
		}
		groups, err := s.Groups(t.Context(), by, GroupsFilter{MinLevel: least, AllAvailable: true}, Sort{}, db.Paging{Limit: 100_000})
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range w.groups {
			listed := slices.ContainsFunc(groups.Items, func(one *Namespace) bool { return one.ID == p.group.ID })
			want := p.level(by.ID) >= least
			if least == NoAccess {
				_, err := s.RequireGroup(t.Context(), by, RefTo(p.group.ID), NoAccess)
				want = err == nil
			}
			if listed != want {
				rt.Fatalf("%s lists groups of level %d: %s is there: %v, want %v", by.Username, least, p.group.FullPath, listed, want)
			}
		}
	}
}

func (w *world) checkMembers(rt *rapid.T, t *testing.T, s *Service, users []*user.User) {
	for _, p := range slices.Concat(w.groups, w.projects) {
		at := Place{Group: p.group != nil}
		if at.Group {
			at.Ref = RefTo(p.group.ID)
		} else {
			at.Ref = RefTo(p.project.ID)
		}
		page, err := s.Members(t.Context(), actor.System(), at, MemberFilter{All: true}, db.Paging{Limit: 100})
		if err != nil {
			rt.Fatal(err)
		}
		got := map[int64]Level{}
		for _, m := range page.Items {
			got[m.UserID] = m.Level
		}
		for _, u := range users {
			if got[u.ID] != p.level(u.ID) {
				rt.Fatalf("members of %v: %s has level %d, want %d", at, u.Username, got[u.ID], p.level(u.ID))
			}
		}
	}
}
