package browser

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestSite publishes a Pages site for members. A user who is not signed in is
// redirected to the server to sign in, and then back to the requested page. Browsers
// resolve every host below localhost to this machine.
func TestSite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s, c := start(t, "SVC_RUNNER=builtin", "SVC_PAGES_ADDR="+addr, "SVC_PAGES_URL=http://pages.localhost:"+port), launch(t)
	s.user(t, "ada")
	s.user(t, "mary")
	ada, root, stranger := c.open(t, s), c.open(t, s), c.open(t, s)
	ada.signIn("ada", password)
	ada.visit("/projects/new")
	ada.fill("#name", "Site")
	ada.press("main form button.main")
	ada.wantPath("/ada/site")
	const at = "/ada/site/-/pages"
	ada.visit(at)
	ada.wantText("No deployments yet")
	ada.screens("pages-empty", at)
	ada.fill("#domain", "www.example.org")
	ada.press("form[action$='/domains'] button.main")
	ada.wantText("The domain was added.")

	const file = "pages:\n  script:\n    - mkdir public\n    - echo '<title>Ours</title><p>For members' > public/index.html\n  artifacts: {paths: [public]}\n"
	s.call(t, "POST", "/projects/ada%2Fsite/repository/files/.gitlab-ci.yml", url.Values{
		"branch": {"main"}, "commit_message": {"Publish"}, "encoding": {"base64"}, "content": {base64.StdEncoding.EncodeToString([]byte(file))},
	})
	for range 100 {
		var published bool
		ada.visit(at)
		ada.do(chromedp.Evaluate(`document.body.innerText.includes("1 file")`, &published))
		if published {
			break
		}
	}
	ada.wantText("1 file")
	ada.screens("pages", at)
	root.signIn("root", rootPassword)
	root.visit("/admin/pages_domains")
	root.wantText("www.example.org")
	root.screens("admin-domains", "/admin/pages_domains")

	var own struct{ URL string }
	if err := json.Unmarshal([]byte(s.call(t, "GET", "/projects/ada%2Fsite/pages", nil)), &own); err != nil {
		t.Fatal(err)
	}
	site := own.URL + "/?from=here"
	ada.do(chromedp.Navigate(site), chromedp.WaitVisible("p", chromedp.ByQuery))
	ada.has("p", "For members")
	var address string
	ada.do(chromedp.Location(&address))
	if address != site {
		t.Errorf("ada is at %s, want %s", address, site)
	}
	// A user who is not signed in signs in on the way.
	stranger.do(chromedp.Navigate(site), chromedp.WaitVisible("#login", chromedp.ByQuery))
	stranger.fill("#login", "mary")
	stranger.fill("#password", password)
	stranger.do(chromedp.Click("main form button.main", chromedp.ByQuery), chromedp.WaitVisible("body > p", chromedp.ByQuery))
	stranger.has("h1", "404 Not Found") // they have no access
	s.call(t, "POST", "/projects/ada%2Fsite/members", url.Values{"username": {"mary"}, "access_level": {"10"}})
	stranger.do(chromedp.Navigate(site))
	stranger.has("p", "For members")
}
