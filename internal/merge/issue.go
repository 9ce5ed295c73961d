package merge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
)

// issueName matches a reference to an issue: #1, group/project#1 or a URL.
const issueName = `(?:(?:\w[\w.-]*(?:/\w[\w.-]*)*)?#\d{1,18}\b|https?://[^\s()<>]+?/-/issues/\d{1,18}\b)`

var (
	anIssue = regexp.MustCompile(issueName)
	// closing matches closing patterns with the issues that they reference.
	closing = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):?[ \t]+` +
		`((?:issues?[ \t]+)?` + issueName + `(?:(?:[ \t]*,[ \t]*(?:and[ \t]+)?|[ \t]+and[ \t]+)(?:issues?[ \t]+)?` + issueName + `)*)`)
)

// issueRef is a reference to an issue in a text.
type issueRef struct {
	Project string // path; empty: the project of the text
	IID     int64
}

// maxNamed is the maximum number of issue references per text.
const maxNamed = 50

// issuesIn returns the issues that a text references, and whether it closes them.
// URLs of other instances are ignored.
func issuesIn(text, url string) map[issueRef]bool {
	named := map[issueRef]bool{}
	if len(text) > plan.MaxText {
		text = text[:plan.MaxText]
	}
	add := func(list []string, closes bool) {
		for _, name := range list {
			ref, ok := parseIssue(name, url)
			if _, known := named[ref]; ok && (known || len(named) < maxNamed) {
				named[ref] = named[ref] || closes
			}
		}
	}
	for _, found := range closing.FindAllStringSubmatch(text, maxNamed) {
		add(anIssue.FindAllString(found[1], maxNamed), true)
	}
	add(anIssue.FindAllString(text, maxNamed), false)
	return named
}

func parseIssue(name, url string) (ref issueRef, ok bool) {
	var digits string
	if before, number, short := strings.Cut(name, "#"); short && !strings.Contains(before, "://") {
		ref.Project, digits = before, number
	} else {
		path, local := strings.CutPrefix(name, url+"/")
		if ref.Project, digits, ok = strings.Cut(path, "/-/issues/"); !local || !ok {
			return ref, false
		}
	}
	ref.IID, ok = number(digits)
	return ref, ok && ref.IID > 0
}

// namedIssues returns the IDs of the issues that a merge request and its commits
// reference and its author can see, and whether the merge request closes them.
func (s *Service) namedIssues(ctx context.Context, in *project.Project, m *MergeRequest, commits []*git.Commit) (map[int64]bool, error) {
	var texts strings.Builder
	texts.WriteString(m.Title + "\n\n" + m.Description)
	for _, c := range commits {
		texts.WriteString("\n\n" + c.Message)
	}
	named := issuesIn(texts.String(), s.URL)
	if len(named) == 0 {
		return map[int64]bool{}, nil
	}
	by, err := s.Users.As(ctx, m.AuthorID)
	if err != nil {
		return map[int64]bool{}, ignoreRefusal(err)
	}
	found := map[int64]bool{}
	for ref, closes := range named {
		i, err := s.findIssue(ctx, by, in, ref)
		if err != nil {
			return nil, err
		}
		if i != nil {
			found[i.ID] = found[i.ID] || closes
		}
	}
	return found, nil
}

// namedAgain is like namedIssues, with the current commits of the merge request.
func (s *Service) namedAgain(ctx context.Context, in *project.Project, m *MergeRequest) (map[int64]bool, error) {
	v, err := newestVersion(ctx, s.DB, m.ID)
	if errors.Is(err, db.ErrNoRows) {
		return s.namedIssues(ctx, in, m, nil)
	}
	if err != nil {
		return nil, err
	}
	page, err := s.Repos.CommitsOf(ctx, in, git.OID(v.Base), git.OID(v.Head), db.Paging{Limit: maxRead})
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	return s.namedIssues(ctx, in, m, page.Items)
}

// findIssue resolves a reference in a text of a project. It returns nil if the
// issue does not exist or the actor cannot see it.
func (s *Service) findIssue(ctx context.Context, by actor.Actor, in *project.Project, ref issueRef) (*plan.Issue, error) {
	at := project.RefTo(in.ID)
	switch {
	case ref.Project != "" && !strings.Contains(ref.Project, "/"): // in the same namespace
		at = project.Ref(in.Namespace.FullPath + "/" + ref.Project)
	case ref.Project != "":
		at = project.Ref(ref.Project)
	}
	i, err := s.Plan.Issue(ctx, by, at, ref.IID)
	if err != nil {
		return nil, ignoreRefusal(err)
	}
	return i, nil
}

// ignoreRefusal returns nil for expected errors such as NotFound and Forbidden.
// ErrMoving is returned: the repository will be available again soon.
func ignoreRefusal(err error) error {
	if errs.IsRefusal(err) && !errors.Is(err, project.ErrMoving) {
		return nil
	}
	return err
}

// ClosesIssues lists the issues that a merge request closes when it is merged and
// that the actor can see. NotFound.
func (s *Service) ClosesIssues(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*plan.Issue, error) {
	in, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if m.TargetBranch != in.DefaultBranch {
		return []*plan.Issue{}, nil
	}
	ids, err := findIssuesOf(ctx, s.DB, m.ID, true)
	if err != nil {
		return nil, fmt.Errorf("issues of merge request %d: %w", m.ID, err)
	}
	return s.Plan.IssuesAmong(ctx, by, ids)
}

// RelatedIssues lists the issues that a merge request references and that the actor
// can see. NotFound.
func (s *Service) RelatedIssues(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*plan.Issue, error) {
	_, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	ids, err := findIssuesOf(ctx, s.DB, m.ID, false)
	if err != nil {
		return nil, fmt.Errorf("issues of merge request %d: %w", m.ID, err)
	}
	return s.Plan.IssuesAmong(ctx, by, ids)
}

// OfIssue lists the merge requests that reference an issue, or with closes those
// that close it, and that the actor can see. NotFound.
func (s *Service) OfIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, closes bool, p db.Paging) (db.Page[*MergeRequest], error) {
	i, err := s.Plan.Issue(ctx, by, ref, iid)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	page, err := listOfIssue(ctx, s.DB, s.visible(by, nil), i.ID, closes, p)
	if err != nil {
		return page, fmt.Errorf("merge requests of issue %d: %w", i.ID, err)
	}
	return page, s.fill(ctx, page.Items...)
}

// CountOfIssues counts the merge requests that close each of the issues.
func (s *Service) CountOfIssues(ctx context.Context, by actor.Actor, ids []int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := countOfIssues(ctx, s.DB, s.visible(by, nil), ids)
	if err != nil {
		return nil, fmt.Errorf("count merge requests of issues: %w", err)
	}
	return found, nil
}
