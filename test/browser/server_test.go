// Package browser tests the web pages with Chromium against the built binary. It is
// a separate module, so that the libraries that control the browser are not
// dependencies of svc.
//
// If SVC_SCREENSHOTS names a directory, screenshots of the main pages are saved
// there, in both themes, for desktop and phone.
package browser

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const (
	rootToken    = "svcpat-browser-root-token-0123456789"
	rootPassword = "browser root password"
	password     = "browser user password"
)

// server is a running binary with a separate database.
type server struct{ url string }

// start starts the binary, with additional settings, and waits until it is ready.
func start(t *testing.T, more ...string) *server {
	t.Helper()
	path := os.Getenv("SVC_TEST_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "svc")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	out := &output{}
	cmd := exec.Command(path, "serve")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SVC_") }),
		"SVC_ADDR=127.0.0.1:0", "SVC_DATA_DIR="+t.TempDir(), "SVC_SSH_ADDR=127.0.0.1:0", "SVC_ROOT_TOKEN="+rootToken,
		"SVC_ROOT_PASSWORD="+rootPassword, "SVC_LOG_FORMAT=json")
	cmd.Env = append(cmd.Env, more...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("the server does not start; run make build first: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with an error: %v", err)
		}
		if text := out.String(); t.Failed() || strings.Contains(text, `"level":"ERROR"`) {
			t.Errorf("server log:\n%s", text)
		}
	})
	listens := regexp.MustCompile(`listens on (http://[^\s"]+)`)
	s := &server{}
	waitFor(t, "the server is ready", func() bool {
		m := listens.FindStringSubmatch(out.String())
		if m == nil {
			return false
		}
		s.url = strings.TrimSuffix(m[1], "/")
		res, err := http.Get(s.url + "/-/readiness")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s
}

// call sends an API request as root and returns the response.
func (s *server) call(t *testing.T, method, path string, form url.Values) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v4"+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Private-Token", rootToken)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s: %s", method, path, res.Status, body)
	}
	return string(body)
}

// user creates a user.
func (s *server) user(t *testing.T, name string) {
	t.Helper()
	s.call(t, "POST", "/users", url.Values{
		"username": {name}, "name": {strings.ToUpper(name[:1]) + name[1:]}, "email": {name + "@example.org"}, "password": {password}, "skip_confirmation": {"true"},
	})
}

// chromium is a browser process; open creates separate profiles in it.
type chromium struct{ ctx context.Context }

func launch(t *testing.T) *chromium {
	t.Helper()
	// The headless shell is the same engine without the desktop browser, and needs
	// about 40 % less CPU time. The command in the PATH is a script that starts the
	// shell as a child process, which would survive the test.
	path, err := exec.LookPath("/usr/lib/chromium/chromium-headless-shell")
	if err != nil {
		path, err = exec.LookPath("chromium")
	}
	if err != nil {
		t.Fatalf("Chromium is missing, run scripts/setup: %v", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return &chromium{ctx}
}

// tab is a page in a profile. Browser errors, in particular violations of the
// content security policy, fail the test.
type tab struct {
	t       *testing.T
	s       *server
	ctx     context.Context
	profile cdp.BrowserContextID
}

// open opens a tab in a new profile.
func (c *chromium) open(t *testing.T, s *server) *tab {
	t.Helper()
	var profile cdp.BrowserContextID
	err := chromedp.Run(c.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		profile, err = target.CreateBrowserContext().WithDisposeOnDetach(true).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c.openIn(t, s, profile)
}

// openIn opens another tab in a profile.
func (c *chromium) openIn(t *testing.T, s *server, profile cdp.BrowserContextID) *tab {
	t.Helper()
	// A new profile needs a new window in a headless browser.
	var id target.ID
	err := chromedp.Run(c.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(ctx)
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithTargetID(id))
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 2*waitLimit) // for all actions of a test in the tab
	t.Cleanup(stop)
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("a script failed: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			// Error statuses of requests are expected in tests.
			if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
				t.Errorf("browser error: %s", e.Entry.Text)
			}
		}
	})
	b := &tab{t, s, ctx, profile}
	b.do(log.Enable(), emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
	return b
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var at, text string
		_ = chromedp.Run(b.ctx, chromedp.Location(&at), chromedp.Text("main", &text, chromedp.ByQuery, chromedp.AtLeast(0)))
		b.t.Fatalf("%v at %s: %s", err, at, text)
	}
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.s.url+path), chromedp.WaitReady("main", chromedp.ByQuery))
}

// press clicks the element of a selector and waits for the next page.
func (b *tab) press(selector string) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Click(selector, chromedp.ByQuery)); err != nil {
		b.t.Fatalf("press %s: %v", selector, err)
	}
	b.do(chromedp.WaitReady("main", chromedp.ByQuery))
}

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`document.querySelector(`+strconv.Quote(selector)+`).value = ""`, nil), chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

func (b *tab) path() string {
	b.t.Helper()
	var at string
	b.do(chromedp.Location(&at))
	u, err := url.Parse(at)
	if err != nil {
		b.t.Fatal(err)
	}
	return u.Path
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	var text string
	b.do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return strings.TrimSpace(text)
}

func (b *tab) wantPath(want string) {
	b.t.Helper()
	if got := b.path(); got != want {
		b.t.Fatalf("at %s, want %s: %s", got, want, b.text("main"))
	}
}

func (b *tab) wantText(want string) {
	b.t.Helper()
	if got := b.text("main"); !strings.Contains(got, want) {
		b.t.Fatalf("the page does not contain %q: %s", want, got)
	}
}

func (b *tab) signIn(login, password string) {
	b.t.Helper()
	b.visit("/users/sign_in")
	b.fill("#login", login)
	b.fill("#password", password)
	b.press("main form button")
}

type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
