package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
)

// interrupted is a store that calls then when a file is opened for the second time: an
// import has checked who runs it, and writes.
type interrupted struct {
	blob.Store
	opened int
	then   func()
}

func (i *interrupted) Get(ctx context.Context, key string) (*blob.Object, error) {
	if i.opened++; i.opened == 2 {
		i.then()
	}
	return i.Store.Get(ctx, key)
}

// TestRightsLost takes the right to create a group or project from a user while their
// import runs.
func TestRightsLost(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		groupFile := st.export(project.RefTo(st.build("source", world{groups: []groupDraw{{settings: project.DraftSettings()}}}).ID))
		projectFile := st.exportProject(project.RefTo(st.buildProject("from", 2).ID))
		blobs := s.Blobs
		bob := st.people[0]
		user := func(changes string) func() {
			return func() {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", bob), As: apptest.RootToken, JSON: changes, Status: 200})
			}
		}
		block := func() {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", bob), As: apptest.RootToken, Status: 201})
		}
		unblock := func() {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/unblock", bob), As: apptest.RootToken, Status: 201})
		}
		var team struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: apptest.RootToken, JSON: `{"name":"team","path":"team"}`, Status: 201}).JSON(t, &team)
		join := func() {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", team.ID), As: apptest.RootToken, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, bob), Status: 201})
		}
		leave := func() {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /groups/%d/members/%d", team.ID, bob), As: apptest.RootToken, Status: 204})
		}
		nothing := func() {}
		for n, c := range []struct {
			name         string
			group, below bool
			before, then func()
			after        func()
			lost         bool
		}{
			{"a group, with the right", true, false, nothing, nothing, nothing, false},
			{"a group, without the right", true, false, nothing, user(`{"can_create_group":false}`), user(`{"can_create_group":true}`), true},
			{"a group, blocked", true, false, nothing, block, unblock, true},
			{"a subgroup, with the right", true, true, join, nothing, leave, false},
			{"a subgroup, no longer a member", true, true, join, leave, nothing, true},
			{"a project, with the right", false, false, nothing, nothing, nothing, false},
			{"a project, now external", false, false, nothing, user(`{"external":true}`), user(`{"external":false,"can_create_group":true}`), true},
			{"a project, blocked", false, false, nothing, block, unblock, true},
			{"a project of a group, no longer a member", false, true, join, leave, nothing, true},
		} {
			c.before()
			by, err := s.Users.As(ctx, bob)
			if err != nil {
				t.Fatal(err)
			}
			path := fmt.Sprint("copy", n)
			var into *int64
			if c.below {
				into = &team.ID
			}
			s.Transfer.Blobs = &interrupted{Store: blobs, then: c.then}
			var now *transfer.Import
			if c.group {
				i := must(s.Transfer.StartImport(ctx, by, transfer.NewImport{Name: path, Path: path, ParentID: into, File: bytes.NewReader(groupFile)}))(t)
				must(0, s.Transfer.RunImport(ctx, transfer.ImportWork{ImportID: i.ID}))(t)
				now = must(s.Transfer.Import(ctx, st.by, i.ID))(t)
			} else {
				i, _, err := s.Transfer.StartProjectImport(ctx, by, transfer.NewProjectImport{Path: path, NamespaceID: into, File: bytes.NewReader(projectFile)})
				must(0, err)(t)
				must(0, s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: i.ID}))(t)
				now = must(s.Transfer.ProjectImport(ctx, st.by, i.ID))(t)
			}
			if want := map[bool]transfer.State{true: transfer.Failed, false: transfer.Finished}[c.lost]; now.State != want {
				t.Errorf("%s: the import is %s: %s", c.name, now.State, now.Error)
			}
			if c.lost && now.OwnerID != nil {
				t.Errorf("%s: %d is visible", c.name, *now.OwnerID)
			}
			full := path
			switch {
			case c.below:
				full = "team/" + path
			case !c.group:
				full = "bob/" + path
			}
			if c.group {
				_, err = s.Projects.Group(ctx, st.by, project.Ref(full))
			} else {
				_, err = s.Projects.Get(ctx, st.by, project.Ref(full))
			}
			if c.lost != errs.Is(err, errs.KindNotFound) {
				t.Errorf("%s: %s: %v", c.name, full, err)
			}
			c.after()
		}
	})
}
