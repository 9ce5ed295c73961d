package browser

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestScreens checks the main pages in both themes and two widths: none is wider
// than the screen, and every control has an accessible name. Screenshots are saved
// if SVC_SCREENSHOTS names a directory.
func TestScreens(t *testing.T) {
	s, c := start(t), launch(t)
	s.fill(t)
	guest, ada, root := c.open(t, s), c.open(t, s), c.open(t, s)
	ada.signIn("ada", password)
	root.signIn("root", rootPassword)
	for i, p := range []struct {
		name, path string
		as         *tab
	}{
		{"sign-in", "/users/sign_in", guest},
		{"explore", "/explore", guest},
		{"missing", "/nobody/nothing", guest},
		{"dashboard", "/", ada},
		{"group", "/analysis", ada},
		{"members", "/analysis?tab=members", ada},
		{"project", "/analysis/engine", ada},
		{"tree", "/analysis/engine/-/tree/main/cmd", ada},
		{"blob", "/analysis/engine/-/blob/main/cmd/engine/main.go", ada},
		{"blame", "/analysis/engine/-/blame/main/cmd/engine/main.go", ada},
		{"edit", "/analysis/engine/-/edit/main/cmd/engine/main.go", ada},
		{"commits", "/analysis/engine/-/commits/main", ada},
		{"commit", "/analysis/engine/-/commit/main", ada},
		{"commit-sides", "/analysis/engine/-/commit/main?view=parallel", guest},
		{"branches", "/analysis/engine/-/branches", ada},
		{"tags", "/analysis/engine/-/tags", ada},
		{"compare", "/analysis/engine/-/compare/main~2...main", ada},
		{"contributors", "/analysis/engine/-/graphs", ada},
		{"empty", "/analysis/empty", ada},
		{"snippets", "/analysis/engine/-/snippets", ada},
		{"snippet", "/analysis/engine/-/snippets/1", ada},
		{"snippet-edit", "/analysis/engine/-/snippets/1/edit", ada},
		{"wiki", "/analysis/engine/-/wikis/home", ada},
		{"wiki-edit", "/analysis/engine/-/wikis/home/edit", ada},
		{"wiki-history", "/analysis/engine/-/wikis/home/history", guest},
		{"wiki-empty", "/groups/analysis/-/wikis/home", ada},
		{"user", "/ada", ada},
		{"new-project", "/projects/new", ada},
		{"profile", "/-/user_settings/profile", ada},
		{"emails", "/-/user_settings/emails", ada},
		{"two-factor", "/-/user_settings/two_factor", ada},
		{"sessions", "/-/user_settings/active_sessions", ada},
		{"keys", "/-/user_settings/ssh_keys", ada},
		{"tokens", "/-/user_settings/personal_access_tokens", ada},
		{"settings-general", "/analysis/engine/-/settings/general", ada},
		{"settings-members", "/analysis/engine/-/settings/members", ada},
		{"settings-access-tokens", "/analysis/engine/-/settings/access_tokens", ada},
		{"settings-deploy-tokens", "/analysis/engine/-/settings/deploy_tokens", ada},
		{"settings-deploy-keys", "/analysis/engine/-/settings/deploy_keys", ada},
		{"settings-variables", "/analysis/engine/-/settings/variables?key=TOKEN&scope=*", ada},
		{"settings-runners", "/analysis/engine/-/settings/runners", ada},
		{"settings-protected", "/analysis/engine/-/settings/protected", ada},
		{"settings-push-rules", "/analysis/engine/-/settings/push_rules", ada},
		{"settings-ci", "/analysis/engine/-/settings/ci_cd", ada},
		{"settings-alerts", "/analysis/engine/-/settings/alerts", ada},
		{"settings-alert", "/analysis/engine/-/settings/alerts/1", ada},
		{"alerts", "/analysis/engine/-/alert_management", ada},
		{"alert", "/analysis/engine/-/alert_management/1/details", ada},
		{"settings-danger", "/analysis/engine/-/settings/danger", ada},
		{"group-general", "/groups/analysis/-/settings/general", ada},
		{"group-members", "/groups/analysis/-/settings/members", ada},
		{"admin", "/admin", root},
		{"admin-users", "/admin/users", root},
		{"admin-user", "/admin/users/" + id(t, s, "ada"), root},
		{"admin-new-user", "/admin/users/new", root},
		{"admin-groups", "/admin/groups", root},
		{"admin-projects", "/admin/projects", root},
		{"admin-runners", "/admin/runners", root},
		{"admin-variables", "/admin/variables", root},
		{"admin-applications", "/admin/applications", root},
		{"admin-audit", "/admin/audit_logs", root},
		{"admin-work", "/admin/background_jobs", root},
		{"admin-storages", "/admin/storages", root},
		{"admin-settings", "/admin/application_settings", root},
	} {
		p.as.t = t
		// All pages consist of the same components: without screenshots it is
		// sufficient to check each page with one theme and width.
		if os.Getenv("SVC_SCREENSHOTS") == "" {
			p.as.screenshot(p.name, p.path, []int64{1280, 390}[i%2], []string{"light", "dark"}[i/2%2])
			p.as.fits(p.name)
			continue
		}
		p.as.screens(p.name, p.path)
	}
}

// fits checks that the page is not wider than the screen, at several widths.
func (b *tab) fits(name string) {
	b.t.Helper()
	for _, width := range []int64{360, 1280, 1440, 1920} {
		var wide int
		b.do(emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
			chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide))
		if wide > 1 {
			b.t.Errorf("%s is %d pixels too wide at %d", name, wide, width)
		}
	}
}

// TestSideBar uses the sidebar with mouse and keyboard: groups stay expanded or
// collapsed, and on a phone a button opens the sidebar.
func TestSideBar(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	b := c.open(t, s)
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button.main")
	b.do(chromedp.WaitVisible(`.nav [data-nav=plan] a`, chromedp.ByQuery),
		chromedp.Click(`.nav [data-nav=plan] summary`, chromedp.ByQuery), chromedp.WaitReady(`.nav [data-nav=plan]:not([open])`, chromedp.ByQuery),
		chromedp.Focus(`.nav [data-nav=manage] summary`, chromedp.ByQuery), typed(kb.Enter),
		chromedp.WaitReady(`.nav [data-nav=manage][open]`, chromedp.ByQuery))
	b.visit("/ada/engine/-/labels")
	b.do(chromedp.WaitVisible(`.nav [data-nav=manage] a[aria-current=page]`, chromedp.ByQuery), chromedp.WaitReady(`.nav [data-nav=plan]:not([open])`, chromedp.ByQuery))

	b.screen(360, "light")
	b.visit("/ada/engine")
	b.do(chromedp.WaitNotVisible(`.nav`, chromedp.ByQuery), chromedp.Click(`.nav-open`, chromedp.ByQuery), chromedp.WaitVisible(`.nav`, chromedp.ByQuery))
	b.look("sidebar on a phone")
	b.shoot("side-bar-light-360")
	b.do(typed(kb.Escape), chromedp.WaitNotVisible(`.nav`, chromedp.ByQuery), chromedp.Click(`.nav-open`, chromedp.ByQuery))
	b.press(`.nav [data-nav=manage] li:last-child a`)
	b.wantPath("/ada/engine/-/labels")

	// The first Tab stop is a link that skips the navigation.
	b.do(typed(kb.Tab), chromedp.WaitVisible(`.skip:focus`, chromedp.ByQuery), typed(kb.Enter), chromedp.WaitReady(`main:focus`, chromedp.ByQuery))
}

// screens checks a page in both themes and two widths.
func (b *tab) screens(name, path string) {
	b.t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			b.screenshot(name, path, width, theme)
		}
	}
}

func (b *tab) screenshot(name, path string, width int64, theme string) {
	b.t.Helper()
	name = fmt.Sprintf("%s-%s-%d", name, theme, width)
	b.screen(width, theme)
	b.visit(path)
	b.look(name)
	b.shoot(name)
}

// look checks the layout of the page.
func (b *tab) look(name string) {
	b.t.Helper()
	var wide int
	var nameless, twice, cut []string
	b.do(
		chromedp.Evaluate(`scrollTo({top: 0, behavior: "instant"})`, nil), // no content is covered by the header
		chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide),
		chromedp.Evaluate(`[...document.querySelectorAll("a, button, summary, input:not([type=hidden]), select, textarea")].filter(e =>
			!(e.textContent.trim() || e.ariaLabel || e.title || e.labels?.length || e.querySelector?.("img[alt]:not([alt=''])")) && !e.closest(".source, .prose")).map(e => e.outerHTML)`, &nameless),
		chromedp.Evaluate(cutOff, &cut),
		chromedp.Evaluate(`[...document.querySelectorAll("[id]")].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i)`, &twice),
	)
	b.access(name)
	if wide > 1 { // sizes are rounded
		b.t.Errorf("%s is %d pixels too wide", name, wide)
	}
	if len(nameless) > 0 {
		b.t.Errorf("%s has controls without a name: %q", name, nameless)
	}
	if len(cut) > 0 {
		b.t.Errorf("%s has truncated content: %q", name, cut)
	}
	if len(twice) > 0 {
		b.t.Errorf("%s has duplicate IDs: %q", name, twice)
	}
}

// cutOff finds content that does not fit in a wide window: placeholders and options
// that are longer than their fields, names that are truncated to a few characters,
// and scroll bars for a few pixels.
const cutOff = `innerWidth < 1000 ? [] : (() => {
	const pen = document.createElement("canvas").getContext("2d"), list = [];
	for (const e of document.querySelectorAll("main *")) {
		if (!e.checkVisibility({visibilityProperty: true}) || !e.clientWidth || e.closest(".sr")) continue;
		const s = getComputedStyle(e), room = e.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight);
		const text = e.matches("select:not([multiple])") ? e.selectedOptions[0]?.textContent.trim() : e.matches("input") && !e.value ? e.placeholder : "";
		pen.font = s.font;
		if (text && pen.measureText(text).width > room + 1) list.push(text);
		if (s.textOverflow === "ellipsis" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth < 60) list.push(e.textContent.trim());
		const more = e.scrollHeight - e.clientHeight;
		if (/auto|scroll/.test(s.overflowY) && more > 0 && more < 6 && e.tagName !== "TEXTAREA") list.push(e.outerHTML.slice(0, 100));
	}
	return list;
})()`

func (b *tab) shoot(name string) {
	b.t.Helper()
	if os.Getenv("SVC_SCREENSHOTS") == "" {
		return
	}
	var picture []byte
	b.do(chromedp.FullScreenshot(&picture, 100))
	b.keep(name, picture)
}

// TestAPIPage checks the layout of the API pages: the first one, and a shortened
// page of a group of endpoints.
func TestAPIPage(t *testing.T) {
	s, c := start(t), launch(t)
	b := c.open(t, s)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			if os.Getenv("SVC_SCREENSHOTS") == "" && (theme == "dark") != (width == 390) {
				continue
			}
			b.screen(width, theme)
			for _, page := range []string{"/docs", "/docs/users"} {
				b.visit("/api/v4" + page)
				// Similar elements need not be checked repeatedly.
				b.do(chromedp.Evaluate(`for (const q of [".endpoint", ".shape", ".side details"]) [...document.querySelectorAll(q)].slice(2).forEach(e => e.remove())`, nil))
				name := fmt.Sprintf("api%s-%s-%d", strings.ReplaceAll(page, "/", "-"), theme, width)
				b.look(name)
				b.shoot(name)
			}
		}
	}
	// An old URL, from when all endpoints were on one page, redirects to the current
	// page.
	b.visit("/api/v4/docs#getUsersById")
	b.do(chromedp.WaitVisible("#getUsersById", chromedp.ByQuery))
	// The page uses the same theme as other pages.
	b.do(chromedp.Click("#theme", chromedp.ByQuery))
	var chosen, kept string
	b.do(chromedp.Evaluate(`document.documentElement.dataset.theme`, &chosen))
	b.visit("/explore")
	b.do(chromedp.Evaluate(`document.documentElement.dataset.theme`, &kept))
	if chosen != "light" || kept != chosen {
		t.Errorf("the theme is %q, and then %q", chosen, kept)
	}
}

// screen sets the width and the color scheme of the tab.
func (b *tab) screen(width int64, theme string) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
}

// keep saves a screenshot in the directory SVC_SCREENSHOTS.
func (b *tab) keep(name string, picture []byte) {
	b.t.Helper()
	dir := os.Getenv("SVC_SCREENSHOTS")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// fill creates users, groups and projects with realistic content.
func (s *server) fill(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ada", "charles", "mary"} {
		s.user(t, name)
	}
	ada := id(t, s, "ada")
	s.call(t, "PUT", "/users/"+ada, url.Values{"bio": {"Notes on engines that weave algebra."}, "location": {"London"}, "job_title": {"Analyst"}, "organization": {"Analytical Society"}})
	s.call(t, "POST", "/groups", url.Values{"name": {"Analysis"}, "path": {"analysis"}, "visibility": {"public"}, "description": {"Engines, tables and the notes about them."}})
	s.call(t, "POST", "/groups/analysis/members", url.Values{"user_id": {ada}, "access_level": {"50"}})
	s.call(t, "POST", "/groups/analysis/members", url.Values{"user_id": {id(t, s, "charles")}, "access_level": {"40"}})
	s.call(t, "POST", "/groups/analysis/members", url.Values{"user_id": {id(t, s, "mary")}, "access_level": {"20"}})
	place := groupID(t, s)
	for _, p := range [][3]string{
		{"Engine", "A machine that follows written instructions.", "public"},
		{"Tables", "Numbers of Bernoulli, computed and checked.", "internal"},
		{"Empty", "", "private"},
	} {
		s.call(t, "POST", "/projects", url.Values{"name": {p[0]}, "namespace_id": {place}, "description": {p[1]}, "visibility": {p[2]}, "topics": {"mathematics,engine"}})
	}
	s.call(t, "POST", "/projects/analysis%2Fengine/variables", url.Values{"key": {"TOKEN"}, "value": {"not-a-real-one"}, "masked": {"true"}, "protected": {"true"}, "description": {"Opens the store."}})
	s.call(t, "POST", "/projects/analysis%2Fengine/variables", url.Values{"key": {"URL"}, "value": {"https://example.org"}, "environment_scope": {"review/*"}})
	s.call(t, "POST", "/projects/analysis%2Fengine/deploy_tokens", url.Values{"name": {"Production"}, "scopes[]": {"read_repository"}})
	s.call(t, "POST", "/projects/analysis%2Fengine/access_tokens", url.Values{"name": {"Release script"}, "scopes[]": {"api"}, "access_level": {"40"}, "expires_at": {time.Now().AddDate(0, 1, 0).Format(time.DateOnly)}})
	s.call(t, "POST", "/projects/analysis%2Fengine/deploy_keys", url.Values{"title": {"Build server"}, "key": {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0TEbHAhLAlxmO0mO0mO0mO0mO0mO0mO0mO0mO0mO0m"}, "can_push": {"true"}})
	s.call(t, "POST", "/user/runners", url.Values{"runner_type": {"instance_type"}, "description": {"Mill"}, "tag_list": {"linux,docker"}})
	const watch = "/projects/analysis%2Fengine/alert_management/http_integrations"
	s.call(t, "POST", watch, url.Values{"name": {"Watch of the mill"}, "payload_example": {`{"event":{"name":"Card jam","where":["mill 1"]},"when":"1842-10-01T08:00:00Z"}`},
		"payload_attribute_mappings": {`[{"field_name":"title","path":["event","name"]},{"field_name":"start_time","path":["when"]}]`}})
	s.call(t, "POST", watch, url.Values{"name": {"Alertmanager"}, "type": {"prometheus"}, "active": {"false"}})
	for _, payload := range []string{
		`{"version":"4","groupKey":"g","status":"firing","receiver":"r","groupLabels":{},"commonLabels":{},"commonAnnotations":{},"externalURL":"","alerts":[{"startsAt":"2026-10-01T08:00:00Z","labels":{"alertname":"Steam pressure is low","severity":"warning","svc_environment_name":"production"},"annotations":{"description":"The boiler is below 3 bar.","runbook":"https://example.org/boiler","owner":"charles"},"generatorURL":"https://metrics.example.org/graph?g0.expr=steam_bar+%3C+3"}]}`,
		`{"event":{"name":"Card jam","where":["mill 1"]},"severity":"high"}`, `{"event":{"name":"Card jam","where":["mill 1"]},"severity":"high"}`, `{"title":"Oil","severity":"info","service":"mill","end_time":"2026-10-01T08:00:00Z"}`,
	} {
		s.call(t, "POST", watch+"/1/test", url.Values{"payload": {payload}})
	}
	s.call(t, "PUT", "/projects/analysis%2Fengine/alert_management_alerts/1", url.Values{"status": {"acknowledged"}, "assignee_id": {ada}})
	s.commit(t, "README.md", readme)
	s.commit(t, "cmd/engine/main.go", mainGo)
	s.commit(t, "script/run.py", "import sys\n\n\ndef main() -> int:\n    return 0\n\n\nsys.exit(main())\n")
	s.commit(t, "Makefile", "build:\n\tgo build ./...\n")
	s.call(t, "POST", "/projects/analysis%2Fengine/snippets", url.Values{"title": {"Loops of cards"}, "description": {"How a *loop* is woven."}, "visibility": {"public"},
		"file_name": {"loop.go"}, "content": {mainGo}})
	s.call(t, "POST", "/projects/analysis%2Fengine/wikis", url.Values{"title": {"home"}, "content": {readme}})
	s.call(t, "POST", "/projects/analysis%2Fengine/wikis", url.Values{"title": {"guides/The first card"}, "content": {"Take one."}})
	s.call(t, "POST", "/projects/analysis%2Fengine/repository/branches", url.Values{"branch": {"topic/cards"}, "ref": {"main~1"}})
	s.call(t, "POST", "/projects/analysis%2Fengine/repository/tags", url.Values{"tag_name": {"v1.0"}, "ref": {"main"}, "message": {"The first that runs"}})
}

func groupID(t *testing.T, s *server) string {
	t.Helper()
	body := s.call(t, "GET", "/groups/analysis", nil)
	var n string
	if _, err := fmt.Sscanf(body, `{"id":%s`, &n); err != nil {
		t.Fatal(err)
	}
	for i, r := range n {
		if r < '0' || r > '9' {
			return n[:i]
		}
	}
	return n
}

func (s *server) commit(t *testing.T, path, text string) {
	t.Helper()
	s.call(t, "POST", "/projects/analysis%2Fengine/repository/files/"+url.QueryEscape(path), url.Values{
		"branch": {"main"}, "commit_message": {"Add " + path}, "encoding": {"base64"}, "content": {base64.StdEncoding.EncodeToString([]byte(text))},
	})
}

const readme = `# Engine

A machine that follows *written* instructions. It reads them from [cards](cmd/engine/main.go).

## Use

` + "```go" + `
// Run follows the instructions on the cards.
func Run(cards []string) error {
	for i, card := range cards {
		fmt.Println(i, "card", card)
	}
	return nil
}
` + "```" + `

| Part  | Holds            | State |
| ----- | ---------------- | ----- |
| Store | numbers          | works |
| Mill  | the one at work  | works |

- [x] weave flowers
- [ ] weave algebra

> The engine has no pretensions to originate anything.
`

const mainGo = `// Command engine follows instructions.
package main

import (
	"fmt"
	"os"
)

type card struct {
	Name  string
	Value int64
}

func main() {
	cards := []card{{"add", 1}, {"subtract", 2}}
	for _, c := range cards {
		if c.Value > 1 {
			fmt.Fprintf(os.Stdout, "%s %d\n", c.Name, c.Value)
		}
	}
}
`
