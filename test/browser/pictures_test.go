package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// maxPicture is the maximum size of a picture of the documentation.
const maxPicture = 80 << 10

// TestPictures takes the screenshots of the documentation, at a width of 1280
// pixels, if SVC_PICTURES names a directory for them.
func TestPictures(t *testing.T) {
	if os.Getenv("SVC_PICTURES") == "" {
		return // TestScreens checks the same pages
	}
	s, c := start(t, "SVC_RUNNER=builtin"), launch(t)
	s.fill(t)
	s.story(t)
	b := c.open(t, s)
	b.signIn("ada", password)
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}))
	const at = "/analysis/engine/-/"
	const bar = ".issuefilter input[name=search]"
	for _, p := range []struct {
		name, path string
		height     int64
		actions    []chromedp.Action
	}{
		{"project-page", "/analysis/engine", 800, nil},
		{"side-bar", at + "issues", 640, []chromedp.Action{chromedp.Click(`.nav [data-nav=manage] summary`, chromedp.ByQuery)}},
		{"filter-bar", at + "issues", 520, []chromedp.Action{chromedp.Focus(bar, chromedp.ByQuery), chromedp.WaitVisible(".suggest [role=option]", chromedp.ByQuery)}},
		{"issue-completion", at + "issues/1", 760, []chromedp.Action{
			chromedp.Focus("#note", chromedp.ByQuery), chromedp.SendKeys("#note", "As discussed with @ch", chromedp.ByQuery), chromedp.WaitVisible("#complete [role=option]", chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector("#note").scrollIntoView({block: "center"})`, nil),
		}},
		{"quick-actions", at + "issues/2", 760, []chromedp.Action{
			chromedp.SetValue("#note", "Fixed in the last release, see ~bug.\n\n/assign @charles\n/spend 1h 30m\n/approve\n/close", chromedp.ByQuery),
			chromedp.Click("#note-preview", chromedp.ByQuery), chromedp.WaitVisible(".effects", chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector(".effects").scrollIntoView({block: "center"})`, nil),
		}},
		{"markdown", at + "issues/new", 900, []chromedp.Action{
			chromedp.SetValue("#description", sample, chromedp.ByQuery), chromedp.Click("#description-preview", chromedp.ByQuery), chromedp.WaitVisible("#description ~ [data-preview] table", chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector("#description ~ [data-preview]").scrollIntoView({block: "center"})`, nil),
		}},
		{"preferences", "/-/user_settings/preferences", 760, nil},
		// The note that there is no mail server is not part of the picture.
		{"notifications", "/-/user_settings/notifications", 760, []chromedp.Action{chromedp.Evaluate(`document.querySelector("main .note").remove()`, nil)}},
		{"merge-request", at + "merge_requests/1", 900, nil},
		{"review", at + "merge_requests/1/diffs", 760, []chromedp.Action{chromedp.WaitVisible(".talkrow", chromedp.ByQuery)}},
		{"approvals", at + "merge_requests/1", 760, nil},
		{"conflicts", at + "merge_requests/2/conflicts", 640, nil},
		{"inbox", "/dashboard/todos", 560, nil},
		{"merge-request-inbox", "/dashboard/merge_requests", 560, nil},
		{"editor", at + "edit/main/cmd/engine/main.go", 760, []chromedp.Action{chromedp.WaitVisible(".ed .ed-gutter div", chromedp.ByQuery)}},
		{"fork", at + "forks/new", 640, nil},
		{"pipeline-editor", at + "ci/editor", 760, []chromedp.Action{chromedp.WaitVisible("[data-result] .note.ok", chromedp.ByQuery)}},
		{"job-page", at + "jobs/1", 640, []chromedp.Action{chromedp.WaitVisible(".st-success", chromedp.ByQuery)}},
		{"api-page", "/api/v4/docs/users", 640, nil},
	} {
		b.t = t
		b.do(emulation.SetDeviceMetricsOverride(1280, p.height, 1, false))
		b.visit(p.path)
		b.look(p.name)
		b.do(chromedp.Evaluate(`scrollTo(0, 0)`, nil))
		b.do(p.actions...)
		b.picture(p.name)
	}
}

// sample is a text with several elements of Markdown.
const sample = "## Trial with card 12\n\nThe last wheel stays at `000`, as @charles saw in #1. **Nothing else** is wrong.\n\n- [x] Reproduce\n- [ ] Oil the carriage\n\n" +
	"| Card | Wheels | Result |\n| ---: | ------ | ------ |\n| 11 | `998` | passes |\n| 12 | `999` | fails |\n\n> [!WARNING]\n> Don't turn the crank backwards.\n\n" +
	"```go\nfmt.Println(mill.Add(999, 1)) // 000\n```\n"

// TestStoryScreens checks the layout of pages that need issues, merge requests and
// pipelines.
func TestStoryScreens(t *testing.T) {
	s, c := start(t, "SVC_RUNNER=builtin"), launch(t)
	s.fill(t)
	s.story(t)
	s.as(t, "charles", "POST", "/projects/analysis%2Fengine/repository/commits/main/comments", map[string]any{"note": "Is *left* right, @ada?"})
	s.call(t, "PUT", "/projects/analysis%2Fengine/issues/1", url.Values{"labels": {"feature"}})
	s.call(t, "POST", "/projects/analysis%2Fengine/repository/files/CODEOWNERS", url.Values{"branch": {"main"}, "commit_message": {"Add owners\n\nThey know the code."}, "content": {"* @charles\n"}})
	s.call(t, "POST", "/projects/analysis%2Fengine/releases", url.Values{"tag_name": {"v1.0"}, "assets[links][][name]": {"Manual"}, "assets[links][][url]": {"https://example.org/manual"}})
	s.call(t, "PUT", "/projects/analysis%2Fengine/packages/generic/cards/1.0/card.txt", nil)
	b := c.open(t, s)
	b.signIn("ada", password)
	const at = "/analysis/engine/-/"
	for i, p := range []struct{ name, path string }{
		{"todos", "/dashboard/todos"},
		{"todos-done", "/dashboard/todos?state=done"},
		{"merge-inbox", "/dashboard/merge_requests"},
		{"own-issues", "/dashboard/issues"},
		{"issues", at + "issues"},
		{"issue", at + "issues/1"},
		{"issue-new", at + "issues/new"},
		{"merge-requests", at + "merge_requests"},
		{"merge-request", at + "merge_requests/1"},
		{"merge-request-changes", at + "merge_requests/1/diffs"},
		{"merge-request-sides", at + "merge_requests/1/diffs?view=parallel"},
		{"merge-request-pipelines", at + "merge_requests/1/pipelines"},
		{"merge-request-conflicts", at + "merge_requests/2/conflicts"},
		{"merge-request-new", at + "merge_requests/new"},
		{"commit-comments", at + "commit/main"},
		{"pipelines", at + "pipelines"},
		{"pipeline", at + "pipelines/1"},
		{"job", at + "jobs/1"},
		{"boards", at + "boards"},
		{"milestone", at + "milestones/1"},
		{"labels", at + "labels"},
	} {
		if os.Getenv("SVC_SCREENSHOTS") != "" {
			b.screens(p.name, p.path)
			continue
		}
		b.screenshot(p.name, p.path, []int64{360, 1280}[i%2], []string{"light", "dark"}[i/2%2])
		b.fits(p.name)
	}
	for i, p := range []struct{ name, path string }{
		{"issue-notes", at + "issues/1"},
		{"commits-body", at + "commits/main"},
		{"blob-owners", at + "blob/main/carry.go"},
		{"releases", at + "releases"},
		{"package", at + "packages/1"},
	} {
		b.screenshot(p.name, p.path, 390, []string{"light", "dark"}[i%2])
		b.fits(p.name)
	}
}

// picture saves a screenshot with at most 256 colors.
func (b *tab) picture(name string) {
	b.t.Helper()
	var shot []byte
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		shot, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduce(whole)); err != nil {
		b.t.Fatal(err)
	}
	if out.Len() > maxPicture {
		b.t.Errorf("%s has %d bytes, more than %d", name, out.Len(), maxPicture)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("SVC_PICTURES"), name+".png"), out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// reduce keeps the most frequent colors of a picture and replaces the others, mostly
// of the edges of text, by the nearest of them. Of colors that look the same, only
// one is kept.
func reduce(from image.Image) *image.Paletted {
	const most = 256
	size := from.Bounds()
	at := func(x, y int) color.RGBA {
		r, g, b, _ := from.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	alike := func(c color.RGBA) color.RGBA { return color.RGBA{c.R &^ 7, c.G &^ 7, c.B &^ 7, 255} }
	counts, groups := map[color.RGBA]int{}, map[color.RGBA]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			c := at(x, y)
			counts[c]++
			groups[alike(c)]++
		}
	}
	best := map[color.RGBA]color.RGBA{}
	for c, n := range counts {
		if b, ok := best[alike(c)]; !ok || cmp.Or(cmp.Compare(n, counts[b]), cmp.Compare(c.R, b.R), cmp.Compare(c.G, b.G), cmp.Compare(c.B, b.B)) > 0 {
			best[alike(c)] = c
		}
	}
	list := slices.SortedFunc(maps.Keys(groups), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(groups[b], groups[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, g := range list[:min(len(list), most)] {
		palette = append(palette, best[g])
	}
	index := map[color.RGBA]uint8{}
	for _, g := range list {
		index[g] = uint8(palette.Index(best[g]))
	}
	to := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			to.SetColorIndex(x, y, index[alike(at(x, y))])
		}
	}
	return to
}

// story adds issues, merge requests and a pipeline to the project that fill creates.
func (s *server) story(t *testing.T) {
	t.Helper()
	const project = "/projects/analysis%2Fengine"
	post := func(user, path string, body map[string]any) {
		t.Helper()
		s.as(t, user, "POST", project+path, body)
	}
	for name, color := range map[string]string{"bug": "#d9534f", "feature": "#428bca", "area::mill": "#5cb85c", "area::store": "#7f8c8d"} {
		s.call(t, "POST", project+"/labels", url.Values{"name": {name}, "color": {color}})
	}
	s.call(t, "POST", project+"/milestones", url.Values{"title": {"1.1"}, "due_date": {"2031-03-01"}})
	ada := id(t, s, "ada")
	for _, i := range []map[string]any{
		{"title": "The mill loses the carry of the last wheel", "labels": "bug,area::mill", "milestone_id": 1, "assignee_ids": []string{ada},
			"description": "When the last wheel passes from 9 to 0, the carry is lost.\n\n- [x] Reproduce with card 12\n- [ ] Oil the anticipating carriage\n\n```go\nfmt.Println(mill.Add(999, 1)) // 000\n```\n"},
		{"title": "Weave algebra as the loom weaves flowers", "labels": "feature", "milestone_id": 1, "weight": 5},
		{"title": "Numbers of more than 40 digits", "labels": "feature,area::store", "due_date": "2031-02-01"},
		{"title": "Print the tables without a compositor", "labels": "feature"},
		{"title": "Cards jam when they are damp", "labels": "bug,area::mill", "assignee_ids": []string{id(t, s, "charles")}},
	} {
		post("charles", "/issues", i)
	}
	post("ada", "/issues/1/notes", map[string]any{"body": "I see it too: the trial with card 12 ends at `000`. The numbers of Bernoulli need this."})
	post("charles", "/issues/3/notes", map[string]any{"body": "@ada, would 50 digits be enough for Note G?"})

	ci := "stages: [build, test]\n\nbuild:\n  stage: build\n  script:\n    - echo \"Cut the wheels\"\n\ntest:\n  stage: test\n  script:\n    - for i in $(seq 1 12); do echo \"card $i … ok\"; done\n    - echo \"12 cards, 0 failures\"\n"
	commit := func(branch, start, message string, files ...string) {
		t.Helper()
		var actions []map[string]string
		for i := 0; i+2 < len(files); i += 3 {
			actions = append(actions, map[string]string{"action": files[i], "file_path": files[i+1], "content": files[i+2]})
		}
		body := map[string]any{"branch": branch, "commit_message": message, "actions": actions}
		if start != "" {
			body["start_branch"] = start
		}
		post("charles", "/repository/commits", body)
	}
	commit("main", "", "Add a pipeline", "create", ".gitlab-ci.yml", ci)
	const carry = "package engine\n\n// Carry adds one to the next wheel when a wheel passes from 9 to 0.\nfunc Carry(wheels []int) {\n\tfor i := range wheels {\n\t\tif wheels[i] < 10 {\n\t\t\tbreak\n\t\t}\n\t\twheels[i] -= 10\n\t\twheels[i+1]++\n\t}\n}\n"
	commit("main", "", "Carry from wheel to wheel", "create", "carry.go", carry)
	commit("carry", "main", "Carry beyond the last wheel", "update", "carry.go",
		"package engine\n\n// Carry adds one to the next wheel when a wheel passes from 9 to 0. It reports\n// whether the last wheel passed.\nfunc Carry(wheels []int) (over bool) {\n\tfor i := range wheels {\n\t\tif wheels[i] < 10 {\n\t\t\tcontinue\n\t\t}\n\t\twheels[i] -= 10\n\t\tif i+1 == len(wheels) {\n\t\t\treturn true\n\t\t}\n\t\twheels[i+1]++\n\t}\n\treturn false\n}\n",
		"create", "carry_test.go", "package engine\n\nimport \"testing\"\n\nfunc TestCarry(t *testing.T) {\n\twheels := []int{10, 9, 9}\n\tif Carry(wheels) {\n\t\tt.Error(\"the last wheel passed\")\n\t}\n}\n")
	s.call(t, "POST", project+"/approval_rules", url.Values{"name": {"Analysts"}, "approvals_required": {"1"}, "user_ids[]": {ada}})
	post("charles", "/merge_requests", map[string]any{"source_branch": "carry", "target_branch": "main", "title": "Carry beyond the last wheel",
		"description": "Closes #1. The mill reports when the last wheel passes from 9 to 0.", "reviewer_ids": []string{ada}, "labels": "bug,area::mill"})
	var m struct {
		DiffRefs struct {
			BaseSHA  string `json:"base_sha"`
			HeadSHA  string `json:"head_sha"`
			StartSHA string `json:"start_sha"`
		} `json:"diff_refs"`
	}
	waitFor(t, "the merge request is prepared", func() bool {
		if err := json.Unmarshal([]byte(s.as(t, "ada", "GET", project+"/merge_requests/1", nil)), &m); err != nil {
			t.Fatal(err)
		}
		return m.DiffRefs.HeadSHA != ""
	})
	post("ada", "/merge_requests/1/discussions", map[string]any{
		"body":     "The comment could say what the caller should do then.\n\n```suggestion:-0+0\n// whether the last wheel passed: the number is too large.\n```\n",
		"position": map[string]any{"position_type": "text", "base_sha": m.DiffRefs.BaseSHA, "head_sha": m.DiffRefs.HeadSHA, "start_sha": m.DiffRefs.StartSHA, "new_path": "carry.go", "old_path": "carry.go", "new_line": 4},
	})
	// A merge request with a conflict.
	commit("names", "main", "Name the wheels", "update", "carry.go", "package engine\n\n// Carry adds one to the next figure wheel when a wheel passes from 9 to 0.\nfunc Carry(figures []int) {\n\tfor i := range figures {\n\t\tif figures[i] < 10 {\n\t\t\tbreak\n\t\t}\n\t\tfigures[i] -= 10\n\t\tfigures[i+1]++\n\t}\n}\n")
	post("ada", "/merge_requests", map[string]any{"source_branch": "names", "target_branch": "main", "title": "Name the wheels", "assignee_id": ada})
	commit("main", "", "Say which wheel is next", "update", "carry.go", "package engine\n\n// Carry adds one to the wheel on the left when a wheel passes from 9 to 0.\nfunc Carry(wheels []int) {\n\tfor i := range wheels {\n\t\tif wheels[i] < 10 {\n\t\t\tbreak\n\t\t}\n\t\twheels[i] -= 10\n\t\twheels[i+1]++\n\t}\n}\n")
	s.as(t, "mary", "POST", "/projects/analysis%2Fengine/issues", map[string]any{"title": "A picture of the engine for the lecture"})
	s.as(t, "mary", "POST", "/projects/analysis%2Fengine/issues/2/notes", map[string]any{"body": "@ada wrote about this in the notes, didn't she?"})
}
