package compat

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goGroupTransfer exports a group and imports it twice, as a top-level group and as
// a subgroup.
func goGroupTransfer(t *testing.T, h *hosting) {
	g := h.group(t, "carried")
	ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Below"), Path: new("below"), ParentID: &g.ID})).done(t, http.StatusCreated)
	ask(h.ada.GroupLabels.CreateGroupLabel(g.ID, &gitlab.CreateGroupLabelOptions{Name: new("brass"), Color: new("#b5a642")})).done(t, http.StatusCreated)
	ask(h.ada.GroupMembers.AddGroupMember(g.ID, &gitlab.AddGroupMemberOptions{UserID: &h.bobUser.ID, AccessLevel: new(gitlab.DeveloperPermissions)})).done(t, http.StatusCreated)

	send(h.bob.GroupImportExport.ScheduleExport(g.ID)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	ask(h.ada.GroupImportExport.ExportDownload(g.ID)).missing(t)
	send(h.ada.GroupImportExport.ScheduleExport(g.ID)).done(t, http.StatusAccepted)
	var file *bytes.Reader
	waitFor(t, "the export", func() bool {
		var err error
		file, _, err = h.ada.GroupImportExport.ExportDownload(g.ID)
		return err == nil
	})
	path := filepath.Join(t.TempDir(), "export.tar.gz")
	text, err := io.ReadAll(file)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	send(h.ada.GroupImportExport.ImportFile(&gitlab.GroupImportFileOptions{Name: new("X"), Path: new("carried"), File: &path})).
		refused(t, http.StatusBadRequest, "{message: {path: [has already been taken]}}")
	for _, to := range []struct {
		parent *int64
		full   string
	}{{nil, "arrived"}, {&g.ID, "carried/arrived"}} {
		send(h.ada.GroupImportExport.ImportFile(&gitlab.GroupImportFileOptions{Name: new("Arrived"), Path: new("arrived"), File: &path, ParentID: to.parent})).done(t, http.StatusAccepted)
		waitFor(t, to.full, func() bool {
			_, _, err := h.ada.Groups.GetGroup(to.full, nil)
			return err == nil
		})
		made := ask(h.ada.Groups.GetGroup(to.full, nil)).ok(t)
		same(t, "an imported group", []any{made.Name, made.Visibility}, []any{"Arrived", gitlab.PrivateVisibility})
		same(t, "what is below it", ask(h.ada.Groups.GetGroup(to.full+"/below", nil)).ok(t).Name, "Below")
		same(t, "its labels", mapped(ask(h.ada.GroupLabels.ListGroupLabels(made.ID, &gitlab.ListGroupLabelsOptions{IncludeAncestorGroups: new(false)})).ok(t), func(l *gitlab.GroupLabel) string { return l.Name }), []string{"brass"})
		same(t, "its members", mapped(ask(h.ada.Groups.ListGroupMembers(made.ID, nil)).ok(t), func(m *gitlab.GroupMember) string { return m.Username }), []string{"ada"}) // only administrators bring members along
	}
}
