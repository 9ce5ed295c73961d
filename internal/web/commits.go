package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/comment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

func (w *Web) commitPages() {
	w.projectPage("GET commits", anyone, w.defaultCommits)
	w.projectPage("GET commits/*", anyone, w.commits)
	w.projectPage("GET commit/{id}", anyone, w.commit)
	w.projectPage("POST commit/{id}/notes", signedIn, w.commentOnCommit)
}

// byline is a commit with the account of its author and the state of its newest
// pipeline, if they exist.
type byline struct {
	*git.Commit
	By *user.User
	CI *ciStatus

	Signature *repo.Signature // nil if the commit has no signature
}

// Body is the message without its first line.
func (b byline) Body() string {
	_, body, _ := strings.Cut(b.Message, "\n")
	return strings.TrimSpace(body)
}

// bylines reads the accounts of the authors, the pipelines and the signatures of
// commits, in one query each.
func (w *Web) bylines(v *visit, in *project.Project, list []*git.Commit) ([]byline, error) {
	var addresses, ids []string
	for _, c := range list {
		addresses, ids = append(addresses, c.Author.Email), append(ids, string(c.ID))
	}
	users, err := w.Users.FindByEmails(v, addresses)
	if err != nil {
		return nil, err
	}
	pipelines, err := w.CI.CommitPipelines(v, v.actor, in, ids)
	if err != nil {
		return nil, err
	}
	signatures, err := w.Repos.CommitSignatures(v, v.actor, project.RefTo(in.ID), list)
	if err != nil {
		return nil, err
	}
	lines := make([]byline, len(list))
	for i, c := range list {
		lines[i] = byline{c, users[strings.ToLower(c.Author.Email)], stateOf(in, pipelines[string(c.ID)]), signatures[c.ID]}
	}
	return lines, nil
}

// commitDay is the commits of one day.
type commitDay struct {
	Day     string
	Commits []byline
}

func days(list []byline) []commitDay {
	var days []commitDay
	for _, c := range list {
		day := c.Committer.When.UTC().Format("2 January 2006")
		if len(days) == 0 || days[len(days)-1].Day != day {
			days = append(days, commitDay{Day: day})
		}
		last := &days[len(days)-1]
		last.Commits = append(last.Commits, c)
	}
	return days
}

// daysOf is the data of the template of commits. Base is the URL of the pages of the
// project.
type daysOf struct {
	Base string
	Days []commitDay
}

// commitsPage is the history of a revision, or of a path in it.
type commitsPage struct {
	codeHead
	Days   []commitDay
	Search string
	Author string
	Pager  pager
}

func (commitsPage) view() string    { return "project/commits" }
func (p commitsPage) title() string { return "Commits of " + p.name() + " · " + p.Project.FullName() }

// defaultCommits redirects to the commits of the default branch.
func (w *Web) defaultCommits(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "commits")
	if err != nil {
		return err
	}
	if h.Project.DefaultBranch == "" {
		return v.redirect("/" + h.Project.FullPath) // that page explains how to push the first commit
	}
	return v.redirect(pathTo(h.Project.FullPath, "-", "commits", h.Project.DefaultBranch))
}

func (w *Web) commits(v *visit, ref project.Ref) error {
	h, err := w.codeHead(v, ref, "commits")
	if err != nil {
		return err
	}
	p := commitsPage{codeHead: h, Search: v.param("search"), Author: v.param("author")}
	f := repo.CommitFilter{Ref: string(p.At), Path: p.Path, Follow: p.Path != "", Message: p.Search, Author: p.Author}
	_, page, err := w.Repos.Commits(v, v.actor, p.in(), f, v.paging())
	if err != nil {
		return err
	}
	list := make([]*git.Commit, len(page.Items))
	for i, c := range page.Items {
		list[i] = c.Commit
	}
	lines, err := w.bylines(v, h.Project, list)
	if err != nil {
		return err
	}
	p.Days, p.Pager = days(lines), v.pager(page.More)
	return v.show(p)
}

// branchNames returns the first branches, as suggestions.
func (w *Web) branchNames(v *visit, h head) ([]string, error) {
	_, page, err := w.Repos.Branches(v, v.actor, h.in(), repo.RefFilter{}, db.Paging{Limit: 50})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(page.Items))
	for i, b := range page.Items {
		names[i] = b.Name
	}
	return names, nil
}

// commitPage is a commit with its changes.
type commitPage struct {
	head
	Commit    byline
	Stats     *git.Stat
	Committer string // empty if the author is also the committer
	Branches  []string
	Tags      []string
	MoreRefs  bool
	Signature *repo.Signature
	Diff      diffView
	Comments  []commitComment
	Pager     pager // of comments
	MayWrite  bool
}

// commitComment is a comment on a commit as it is shown.
type commitComment struct {
	*comment.Comment
	Text template.HTML
}

func (commitPage) view() string    { return "project/commit" }
func (commitPage) wide() bool      { return true }
func (p commitPage) title() string { return shown(p.Commit.Title) + " · " + p.Project.FullName() }

// shownRefs is the maximum number of branches and tags listed for a commit.
const shownRefs = 10

func (w *Web) commit(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "commits")
	if err != nil {
		return err
	}
	if id := v.param("comment"); id != "" {
		return w.leadToComment(v, h, id)
	}
	p := commitPage{head: h}
	_, c, err := w.Repos.Commit(v, v.actor, h.in(), chi.URLParam(v.r, "id"), true)
	if err != nil {
		return err
	}
	lines, err := w.bylines(v, h.Project, []*git.Commit{c.Commit})
	if err != nil {
		return err
	}
	p.Commit, p.Stats, p.Signature = lines[0], c.Stats, lines[0].Signature
	if c.Committer.Email != c.Author.Email {
		p.Committer = c.Committer.Name
	}
	if err := w.commitRefs(v, &p); err != nil {
		return err
	}
	s := diffSource{head: h, after: c.ID}
	if len(c.ParentIDs) > 0 {
		s.before = c.ParentIDs[0]
	}
	s.again = func(o git.DiffOptions) (*git.Diff, error) {
		return w.Repos.DiffCommits(v, v.actor, h.in(), s.before, s.after, o)
	}
	d, err := s.again(git.DiffOptions{IgnoreWhitespace: v.hideSpace()})
	if err != nil {
		return err
	}
	s.files = d.Files
	if p.Diff, err = v.diffView(s); err != nil {
		return err
	}
	if err := w.commitComments(v, &p); err != nil {
		return err
	}
	return v.showDiff(p, p.Diff)
}

// commentsParam is the parameter with the page of the comments on a commit. The
// diff has pages of its own.
const commentsParam = "comments_page"

// commitComments reads a page of the comments on a commit.
func (w *Web) commitComments(v *visit, p *commitPage) error {
	p.MayWrite = comment.CanComment(v.actor, p.Project)
	n := v.pageOf(commentsParam)
	page, err := w.Comments.List(v, v.actor, p.in(), string(p.Commit.ID), db.Paging{Limit: perDiscussions, Offset: (n - 1) * perDiscussions})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	p.Pager = pagerOf(v.r.URL.Query(), commentsParam, n, page.More)
	texts := make([]plan.Text, len(page.Items))
	for i, c := range page.Items {
		texts[i] = plan.Text{Source: c.Note, Whole: fmt.Sprintf("/api/v4/projects/%d/repository/commits/%s/comments", p.Project.ID, p.Commit.ID)}
	}
	html, err := w.renderAll(v, project.Place{Ref: p.in()}, texts...)
	if err != nil {
		return err
	}
	for i, c := range page.Items {
		p.Comments = append(p.Comments, commitComment{c, html[i]})
	}
	return nil
}

// commentOnCommit adds a comment to a commit.
func (w *Web) commentOnCommit(v *visit, ref project.Ref) error {
	id := chi.URLParam(v.r, "id")
	made, err := w.Comments.Create(v, v.actor, ref, id, comment.NewComment{Note: v.text("note")})
	if err != nil {
		return err
	}
	n, err := w.Comments.CountUpTo(v, v.actor, ref, id, made.ID)
	if err != nil {
		return err
	}
	to := pathTo(string(ref), "-", "commit", id)
	if last := (n-1)/perDiscussions + 1; last > 1 { // the newest are on the last page
		to += fmt.Sprintf("?%s=%d", commentsParam, last)
	}
	return v.redirect(fmt.Sprintf("%s#note_%d", to, made.ID))
}

// leadToComment redirects to the page that shows a comment on the commit. Links from
// other pages do not know which page that is.
func (w *Web) leadToComment(v *visit, h head, comment string) error {
	id, err := strconv.ParseInt(comment, 10, 64)
	if err != nil {
		return errs.NotFound("")
	}
	commit := chi.URLParam(v.r, "id")
	n, err := w.Comments.CountUpTo(v, v.actor, h.in(), commit, id)
	if err != nil {
		return err
	}
	// The URL names the page even if it is the first: the script asks only once.
	return v.redirect(fmt.Sprintf("%s?%s=%d#note_%d", pathTo(h.Project.FullPath, "-", "commit", commit), commentsParam, (n-1)/perDiscussions+1, id))
}

// commitRefs reads the branches and tags that contain the commit.
func (w *Web) commitRefs(v *visit, p *commitPage) error {
	for kind, to := range map[repo.RefKind]*[]string{repo.BranchRef: &p.Branches, repo.TagRef: &p.Tags} {
		page, err := w.Repos.CommitRefs(v, v.actor, p.in(), string(p.Commit.ID), kind, db.Paging{Limit: shownRefs})
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			*to = append(*to, r.Name)
		}
		p.MoreRefs = p.MoreRefs || page.More
	}
	return nil
}
