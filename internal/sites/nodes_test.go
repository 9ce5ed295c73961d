package sites_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/pages/cert/certtest"
	"svc/internal/waittest"
)

// TestNodes checks that a node serves new versions and certificates that another
// node has published to a bucket within a second. SQLite supports only one node.
func TestNodes(t *testing.T) {
	t.Parallel()
	bucket := blobtest.S3(t)
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		stored := apptest.Bucket(bucket + "&prefix=" + fmt.Sprint("on-", src.URL != "", "/"))
		here := apptest.Start(t, src, apptest.Pages, stored)
		there := here
		if src.URL != "" {
			there = apptest.Start(t, src, apptest.Beside(t, here), apptest.Pages, stored)
		}
		id := newProject(t, here, root, `{"path":"site","visibility":"public","pages_access_level":"public"}`)
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		here.Publish(t, id, map[string]string{"public/index.html": "First", "public/long.txt": long})
		here.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: `{"domain":"www.example.org"}`, Status: 201})
		c := there.Browser(t)
		soon(t, "the site", func() bool { return shows(t, c, "http://www.example.org/", "First") })
		for _, v := range []visit{
			{name: "from a copy", at: "www.example.org/long.txt", status: 200, want: long},
			{name: "a part", at: "www.example.org/long.txt", header: map[string]string{"Range": "bytes=5-9"}, status: 206, want: "words"},
			{name: "compressed", at: "www.example.org/long.txt", header: map[string]string{"Accept-Encoding": "br"}, status: 200, want: long, has: map[string]string{"Content-Encoding": "br"}},
		} {
			v.do(t, c)
		}
		if files, err := os.ReadDir(there.Config.DataDir + "/pages"); err != nil || len(files) != 1 {
			t.Errorf("%d copies are on the node, want 1: %v", len(files), err)
		}
		here.Publish(t, id, map[string]string{"public/index.html": "Second"})
		soon(t, "the second version", func() bool { return shows(t, c, "http://www.example.org/", "Second") })

		for range 2 { // the first certificate and a new one
			ca := certtest.New(t)
			certificate, key := ca.Issue(here.Clock.Now().AddDate(0, 1, 0), "www.example.org")
			here.Check(t, apptest.Call{Do: "PUT " + at + "/www.example.org", As: root, Status: 200, JSON: fmt.Sprintf(`{"certificate":%q,"key":%q}`, certificate, key)})
			soon(t, "the certificate", func() bool {
				secure := there.Browser(t)
				secure.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: ca.Pool(), Time: here.Clock.Now}
				return shows(t, secure, "https://www.example.org/", "Second")
			})
		}
		here.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/pages", id), As: root, Status: 204})
		soon(t, "nothing", func() bool {
			res, err := c.Get("http://root.pages.test/site/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			return res.StatusCode == http.StatusFound
		})
	})
}

// shows reports whether the response of a URL contains a text.
func shows(t *testing.T, c *http.Client, address, want string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	text := make([]byte, len(want))
	n, _ := res.Body.Read(text)
	return res.StatusCode == http.StatusOK && string(text[:n]) == want
}

// soon waits for a change by another node, which usually takes at most one second.
func soon(t *testing.T, what string, so func() bool) {
	t.Helper()
	began := time.Now()
	waittest.For(t, what, so)
	t.Logf("%s is shown after %s", what, time.Since(began).Round(time.Millisecond))
}
