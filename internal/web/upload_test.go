package web_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/project"
)

func TestUpload(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	id, token := s.User(t, "ada")
	s.User(t, "eve")
	by := actor.Actor{ID: id}
	p, err := s.Projects.Create(t.Context(), by, project.NewProject{Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	ada, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
	paths := map[string]string{}
	const closed = "default-src 'none'; sandbox"
	for name, want := range map[string][3]string{
		"a b#?%)c.png": {"image/png", `inline; filename="a b#?%)c.png"`, closed}, "x.html": {"application/octet-stream", "attachment; filename=x.html", closed},
		"x.svg": {"image/svg+xml", "inline; filename=x.svg", "default-src 'none'; style-src 'unsafe-inline'; sandbox"},
	} {
		const content = "<script>alert(1)</script>"
		u, err := s.Uploads.Add(t.Context(), by, project.RefTo(p.ID), name, int64(len(content)), strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/-/project/%d%s", p.ID, u.Path())
		a := ada.get(path).want(200, content)
		for header, text := range map[string]string{
			"Content-Type": want[0], "Content-Disposition": want[1], "X-Content-Type-Options": "nosniff", "Content-Security-Policy": want[2],
		} {
			if got := a.header.Get(header); got != text {
				t.Errorf("%s: %s is %q, want %q", name, header, got, text)
			}
		}
		eve.get(path).want(404)
		newBrowser(t, s).get(path).want(404)
		// What tools make of the address of the project and the "url" of the API.
		ada.get("/"+p.FullPath+u.Path()).want(200, content)
		eve.get("/" + p.FullPath + u.Path()).want(404)
		newBrowser(t, s).get("/" + p.FullPath + u.Path()).want(404)
		paths[name] = path
	}
	// Without authentication for media, the URL of an image is sufficient.
	general := fmt.Sprintf("/%s/-/settings/general", p.FullPath)
	ada.get(general).want(200, "Media files can be viewed without authentication")
	ada.submit(general, general, "name", "p", "visibility", "private", "lfs_enabled", "1", "public_media", "1").leads(general)
	newBrowser(t, s).get(paths["a b#?%)c.png"]).want(200)
	eve.get(paths["a b#?%)c.png"]).want(200)
	newBrowser(t, s).get(paths["x.html"]).want(404)
	eve.get(paths["x.html"]).want(404)
	eve.get(fmt.Sprintf("/-/project/%d/uploads/%s/x.png", p.ID, strings.Repeat("0", 32))).want(404)
	ada.submit(general, general, "name", "p", "visibility", "private", "lfs_enabled", "1").leads(general)
	newBrowser(t, s).get(paths["a b#?%)c.png"]).want(404)
	ada.get(fmt.Sprintf("/-/project/%d/uploads/%s/x", p.ID, strings.Repeat("0", 32))).want(404)
	ada.get("/-/project/x/uploads/0/x").want(404)

	// Only users who can see the project find out where it has moved.
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", p.ID), As: token, JSON: `{"path":"moved"}`, Status: 200})
	file := "/uploads/" + strings.Repeat("0", 32) + "/x.png"
	newBrowser(t, s).get("/" + p.FullPath + file).want(404)
	eve.get("/" + p.FullPath + file).want(404)
	ada.get("/"+p.FullPath+file).want(301, "/ada/moved"+file)
}
