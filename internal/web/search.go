package web

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/search"
	"svc/internal/snippet"
	"svc/internal/user"
	"svc/internal/wiki"
)

func (w *Web) searchPages() {
	w.page("GET /search", signedIn, w.searchPage)
	w.page("GET /search/autocomplete", signedIn, w.suggest)
}

// searchPage is a search and its results in one scope.
type searchPage struct {
	Search string
	Scope  search.Scope
	Place  searchPlace
	Tabs   []searchTab
	Filter searchFilter
	Rows   []searchRow
	Pager  pager
	Error  string // why there is no result
	Ref    string // the branch or tag that is searched
	Hint   string // how to narrow the search
}

func (searchPage) view() string { return "shared/search" }
func (p searchPage) title() string {
	if p.Search == "" {
		return "Search"
	}
	return p.Search + " · Search"
}

// searchPlace is the project or group that is searched; the zero value is everything.
type searchPlace struct {
	Param string // project_id or group_id
	ID    int64
	Name  string
	Path  string
}

// Suggest is the URL of the suggestions; the script appends the text.
func (p searchPlace) Suggest() string {
	if p.Param == "" {
		return "/search/autocomplete?term="
	}
	return "/search/autocomplete?" + p.Param + "=" + strconv.FormatInt(p.ID, 10) + "&term="
}

// searchTab is a scope with the number of its results.
type searchTab struct {
	Label, To, Count string
	On               bool
}

// searchRow is a result.
type searchRow struct {
	To, Icon string
	Face     *portrait // instead of the icon
	Title    []textPart
	Badge    string
	Ref      string // such as group/project#1
	Text     []textPart
	Lines    []hitLine
	At       *time.Time
	By       string
}

// hitLine is a line of a file.
type hitLine struct {
	N    int
	Text []textPart
}

// textPart is a part of a text that is marked or not.
type textPart struct {
	Text string
	Hit  bool
}

// scopeLabels are the names of the scopes, as GitLab has them.
var scopeLabels = map[search.Scope]string{
	search.Projects: "Projects", search.Issues: "Issues", search.MergeRequests: "Merge requests", search.Milestones: "Milestones", search.Notes: "Comments",
	search.SnippetTitles: "Snippets", search.Users: "Users", search.Blobs: "Code", search.Commits: "Commits", search.WikiBlobs: "Wiki",
}

// maxSearch is the maximum number of characters of a search on pages.
const maxSearch = 1000

func (w *Web) searchPage(v *visit) error {
	p := searchPage{Search: strings.TrimSpace(v.param("search")), Scope: search.Scope(v.param("scope")), Ref: v.param("repository_ref")}
	if p.Ref == "" {
		p.Ref = v.param("ref")
	}
	at, err := w.searchedPlace(v, &p)
	if err != nil {
		return err
	}
	if len([]rune(p.Search)) > maxSearch {
		p.Error = "The search is too long."
		return v.show(p)
	}
	if p.Search == "" {
		return v.show(p)
	}
	q := p.searchQuery(v)
	q.At = at
	counts, err := w.Search.Counts(v, v.actor, q)
	if err != nil {
		return err
	}
	p.choose(v, counts)
	p.showFilter(q)
	if !offered(searchStates[p.Scope], q.State) {
		q.State = ""
	}
	if p.Scope == "" {
		return v.show(p)
	}
	err = w.find(v, &p, q)
	if e, ok := errs.As(err); ok && (e.Kind == errs.KindUnavailable || e.Kind == errs.KindInvalid || e.Kind == errs.KindNotFound && p.Ref != "") {
		p.Error = sentence(e)
		if e.Kind == errs.KindNotFound {
			p.Error = "The branch or tag does not exist."
		}
		return v.show(p)
	}
	if err != nil {
		return err
	}
	return v.show(p)
}

// searchedPlace returns the project or group that is searched; nil for everything.
// NotFound.
func (w *Web) searchedPlace(v *visit, p *searchPage) (*project.Place, error) {
	if ref := v.param("project_id"); ref != "" {
		h, err := w.head(v, project.Ref(ref), "search")
		if err != nil {
			return nil, err
		}
		p.Place = searchPlace{"project_id", h.Project.ID, h.Project.FullName(), h.Project.FullPath}
		return &project.Place{Ref: project.RefTo(h.Project.ID)}, nil
	}
	if ref := v.param("group_id"); ref != "" {
		h, err := w.groupHead(v, project.Ref(ref), "search")
		if err != nil {
			return nil, err
		}
		p.Place = searchPlace{"group_id", h.Group.ID, h.Group.FullName, h.Group.FullPath}
		return &project.Place{Ref: project.RefTo(h.Group.ID), Group: true}, nil
	}
	return nil, nil
}

// choose adds the tabs, and selects the requested scope or the first one with
// results.
func (p *searchPage) choose(v *visit, counts []search.Count) {
	has := func(scope search.Scope) bool {
		return slices.ContainsFunc(counts, func(c search.Count) bool { return c.Scope == scope })
	}
	if !has(p.Scope) {
		p.Scope = ""
		for _, c := range counts {
			if p.Scope == "" && c.N > 0 {
				p.Scope = c.Scope
			}
		}
		if p.Scope == "" && len(counts) > 0 {
			p.Scope = counts[0].Scope
		}
	}
	for _, c := range counts {
		query := v.r.URL.Query()
		query.Del("page")
		query.Set("scope", string(c.Scope))
		tab := searchTab{Label: scopeLabels[c.Scope], To: "/search?" + query.Encode(), On: c.Scope == p.Scope}
		switch {
		case c.Unknown:
		case c.Over:
			tab.Count = strconv.Itoa(c.N) + "+"
		default:
			tab.Count = strconv.Itoa(c.N)
		}
		p.Tabs = append(p.Tabs, tab)
	}
}

// find returns the rows of one scope.
func (w *Web) find(v *visit, p *searchPage, q search.Query) error {
	m := marker{terms: search.Terms(q.Text)}
	paging := v.paging()
	more := false
	switch p.Scope {
	case search.Projects:
		list, err := w.Search.Projects(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			picture := projectFace(one)
			p.Rows = append(p.Rows, searchRow{To: pathTo(one.FullPath), Face: &picture, Title: m.mark(one.FullName()), Text: m.excerpt(one.Description), At: &one.LastActivityAt})
		}
		more = list.More
	case search.Issues:
		list, err := w.Search.Issues(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			row := m.issuable(&one.Issuable, issuePath(one), "issue", "#")
			if one.Confidential {
				row.Icon, row.Badge = "hide", strings.TrimSpace(row.Badge+" Confidential")
			}
			p.Rows = append(p.Rows, row)
		}
		more = list.More
	case search.MergeRequests:
		list, err := w.Search.MergeRequests(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			p.Rows = append(p.Rows, m.issuable(&one.Issuable, mergePath(one), "merge", "!"))
		}
		more = list.More
	case search.Milestones:
		list, err := w.Search.Milestones(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			row := searchRow{To: milestonePath(one), Icon: "goal", Title: m.mark(one.Title), Ref: one.Path, Text: m.excerpt(one.Description), At: &one.CreatedAt}
			if one.State == plan.ClosedMilestone {
				row.Badge = "Closed"
			}
			p.Rows = append(p.Rows, row)
		}
		more = list.More
	case search.Users:
		list, err := w.Search.Users(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			picture := userFace(one)
			p.Rows = append(p.Rows, searchRow{To: "/" + one.Username, Face: &picture, Title: m.mark(one.Name), Text: m.mark("@" + one.Username)})
		}
		more = list.More
	case search.SnippetTitles:
		list, err := w.Search.Snippets(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			p.Rows = append(p.Rows, snippetHit(m, one))
		}
		more = list.More
	case search.Notes:
		list, err := w.Search.Notes(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		if p.Rows, err = w.noteRows(v, m, list.Items); err != nil {
			return err
		}
		more = list.More
	case search.Commits:
		in, list, err := w.Search.Commits(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			title, body, _ := strings.Cut(strings.TrimSpace(one.Message), "\n")
			at := one.Commit.Committer.When
			p.Rows = append(p.Rows, searchRow{To: pathTo(in.FullPath, "-/commit", string(one.ID)), Icon: "commit", Title: m.mark(shown(title)),
				Ref: shortID(string(one.ID)), Text: m.excerpt(body), At: &at, By: shown(one.Commit.Author.Name)})
		}
		more = list.More
	case search.Blobs:
		list, err := w.Search.Blobs(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		p.Hint, m.expr = fileHint, list.Expr
		if list.Pending > 0 {
			p.Hint = "The index is being built: the code of " + plural(list.Pending, "project") + " is not searched yet. " + fileHint
		}
		for _, one := range list.Items {
			to := pathTo(one.Project.FullPath, "-/blob", one.Ref, one.Path)
			row := m.file(one.FileHit, to+"#L"+strconv.Itoa(m.firstHit(one.FileHit)))
			if q.At == nil || q.At.Group {
				row.Ref = one.Project.FullPath
			}
			p.Rows = append(p.Rows, row)
		}
		more = list.More
	case search.WikiBlobs:
		in, list, err := w.Search.WikiBlobs(v, v.actor, q, paging)
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			p.Rows = append(p.Rows, m.file(one, in.Base()+pathTo(wiki.SlugOf(one.Path))))
		}
		more = list.More
	}
	p.Pager = v.pager(more)
	return nil
}

const fileHint = "Narrow the search with filename:, path:, extension:, lang: and case:yes, such as path:docs/ or -extension:md."

func snippetHit(m marker, one *snippet.Snippet) searchRow {
	row := searchRow{To: pathTo(one.Path("-/")), Icon: "file", Title: m.mark(one.Title), Text: m.excerpt(one.Description), At: &one.CreatedAt}
	if one.In != nil {
		row.Ref = one.In.FullPath
	}
	if one.Author != nil {
		row.By = one.Author.Name
	}
	return row
}

// noteRows are comments with links to them.
func (w *Web) noteRows(v *visit, m marker, notes []*plan.Note) ([]searchRow, error) {
	var ids []int64
	for _, n := range notes {
		if n.ProjectID != nil && !slices.Contains(ids, *n.ProjectID) {
			ids = append(ids, *n.ProjectID)
		}
	}
	projects, err := w.Projects.Among(v, v.actor, ids)
	if err != nil {
		return nil, err
	}
	paths := map[int64]string{}
	for _, one := range projects {
		paths[one.ID] = one.FullPath
	}
	kinds := map[plan.Kind][2]string{plan.IssueKind: {"issues", "#"}, plan.MergeKind: {"merge_requests", "!"}, snippet.Kind: {"snippets", "$"}}
	var rows []searchRow
	for _, n := range notes {
		if n.ProjectID == nil || paths[*n.ProjectID] == "" {
			continue
		}
		path, kind, number := paths[*n.ProjectID], kinds[n.On.Kind], n.OnIID
		if n.On.Kind == snippet.Kind {
			number = n.On.ID
		}
		ref := path + kind[1] + strconv.FormatInt(number, 10)
		row := searchRow{To: pathTo(path, "-", kind[0], strconv.FormatInt(number, 10)) + "#note_" + strconv.FormatInt(n.ID, 10), Icon: "talk",
			Title: []textPart{{Text: "Comment on " + ref}}, Text: m.excerpt(n.Body), At: &n.CreatedAt}
		if n.Author != nil {
			row.By = n.Author.Name
		}
		if n.Internal {
			row.Badge = "Internal"
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// marker marks what was searched for.
type marker struct {
	terms []string       // in lower case, the whole text first
	expr  *regexp.Regexp // in files, instead of the terms
}

// mark splits a text at the terms. A text that has the whole search has only that marked.
func (m marker) mark(text string) []textPart {
	if len(text) > 4*maxExcerpt {
		text = strings.ToValidUTF8(text[:4*maxExcerpt], "") + "…"
	}
	if m.expr != nil {
		return m.markMatches(text)
	}
	low := strings.ToLower(text)
	if len(low) != len(text) || len(m.terms) == 0 {
		return []textPart{{Text: text}}
	}
	terms := m.terms
	if strings.Contains(low, terms[0]) {
		terms = terms[:1]
	}
	var parts []textPart
	for text != "" {
		at, size := -1, 0
		for _, term := range terms {
			if i := strings.Index(low, term); i >= 0 && (at < 0 || i < at || i == at && len(term) > size) {
				at, size = i, len(term)
			}
		}
		if at < 0 {
			return append(parts, textPart{Text: text})
		}
		if at > 0 {
			parts = append(parts, textPart{Text: text[:at]})
		}
		parts = append(parts, textPart{text[at : at+size], true})
		text, low = text[at+size:], low[at+size:]
	}
	return parts
}

// markMatches splits a text at the matches of the regular expression.
func (m marker) markMatches(text string) []textPart {
	var parts []textPart
	end := 0
	for _, at := range m.expr.FindAllStringIndex(text, -1) {
		if at[0] == at[1] {
			continue
		}
		if at[0] > end {
			parts = append(parts, textPart{Text: text[end:at[0]]})
		}
		parts = append(parts, textPart{text[at[0]:at[1]], true})
		end = at[1]
	}
	if end < len(text) || len(parts) == 0 {
		parts = append(parts, textPart{Text: text[end:]})
	}
	return parts
}

// maxExcerpt is the maximum number of bytes of a text that a result shows.
const maxExcerpt = 240

// excerpt is a part of a text around the first term, on one line.
func (m marker) excerpt(text string) []textPart {
	if text == "" {
		return nil
	}
	low, from := strings.ToLower(text), 0
	if len(low) == len(text) {
		for _, term := range m.terms {
			if i := strings.Index(low, term); i >= 0 {
				from = max(0, i-maxExcerpt/3)
				break
			}
		}
	}
	start, end := "", ""
	if from > 0 {
		start = "…"
	}
	text = text[from:]
	if len(text) > maxExcerpt {
		text, end = text[:maxExcerpt], "…"
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return m.mark(start + text + end)
}

func (m marker) issuable(i *plan.Issuable, to, icon, sign string) searchRow {
	row := searchRow{To: to, Icon: icon, Title: m.mark(i.Title), Ref: i.ProjectPath + sign + strconv.FormatInt(i.IID, 10), Text: m.excerpt(i.Description), At: &i.CreatedAt}
	if i.Author != nil {
		row.By = i.Author.Name
	}
	switch i.State {
	case plan.Closed:
		row.Badge = "Closed"
	case "merged":
		row.Badge = "Merged"
	}
	return row
}

// firstHit is the number of the first line that has the search.
func (m marker) firstHit(h repo.FileHit) int {
	for i, line := range h.Lines {
		if m.expr != nil && m.expr.MatchString(line) || m.expr == nil && len(m.terms) > 0 && strings.Contains(strings.ToLower(line), m.terms[0]) {
			return h.Start + i
		}
	}
	return h.Start
}

func (m marker) file(h repo.FileHit, to string) searchRow {
	row := searchRow{To: to, Icon: "file", Title: m.mark(shown(h.Path))}
	for i, line := range h.Lines {
		row.Lines = append(row.Lines, hitLine{h.Start + i, m.mark(shown(line))})
	}
	return row
}

// found is a suggestion of the search box.
type found struct {
	Category string `json:"category"`
	Label    string `json:"label"`
	Note     string `json:"note,omitempty"`
	URL      string `json:"url"`
}

// Limits of the suggestions.
const (
	maxSuggested = 5   // of each category
	maxTerm      = 200 // characters
	minTerm      = 2
)

// suggest returns suggestions for the search box in JSON: projects, groups, issues, merge
// requests and users that the user can see.
func (w *Web) suggest(v *visit) error {
	term := strings.TrimSpace(v.param("term"))
	list := []found{}
	if n := len([]rune(term)); n >= minTerm && n <= maxTerm {
		var err error
		if list, err = w.suggestions(v, term); err != nil {
			return err
		}
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "private, max-age=15")
	return json.NewEncoder(v.w).Encode(list)
}

func (w *Web) suggestions(v *visit, term string) ([]found, error) {
	list := []found{}
	some := db.Paging{Limit: maxSuggested}
	projects, err := w.Projects.List(v, v.actor, project.Filter{Search: term, Deep: true}, orders()[""], some)
	if err != nil {
		return nil, err
	}
	for _, one := range projects.Items {
		list = append(list, found{"Projects", one.Name, one.FullPath, pathTo(one.FullPath)})
	}
	groups, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Search: term, AllAvailable: true}, project.Sort{By: "name"}, some)
	if err != nil {
		return nil, err
	}
	for _, one := range groups.Items {
		list = append(list, found{"Groups", one.Name, one.FullPath, pathTo(one.FullPath)})
	}
	q := search.Query{Text: term, TitleOnly: true}
	if ref := v.param("project_id"); ref != "" {
		q.At = &project.Place{Ref: project.Ref(ref)}
	} else if ref := v.param("group_id"); ref != "" {
		q.At = &project.Place{Ref: project.Ref(ref), Group: true}
	}
	issues, err := w.Search.Issues(v, v.actor, q, some)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	for _, one := range issues.Items {
		list = append(list, found{"Issues", one.Title, one.ProjectPath + "#" + strconv.FormatInt(one.IID, 10), issuePath(one)})
	}
	merges, err := w.Search.MergeRequests(v, v.actor, q, some)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	for _, one := range merges.Items {
		list = append(list, found{"Merge requests", one.Title, one.ProjectPath + "!" + strconv.FormatInt(one.IID, 10), mergePath(one)})
	}
	users, err := w.Users.List(v, v.actor, user.Filter{Search: term, Active: true, Humans: true}, user.Sort{By: "id", Desc: true}, some)
	if err != nil {
		return nil, err
	}
	for _, one := range users.Items {
		list = append(list, found{"Users", one.Name, "@" + one.Username, "/" + url.PathEscape(one.Username)})
	}
	return list, nil
}
