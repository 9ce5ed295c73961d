package merge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// The default templates of commit messages.
const (
	mergeTemplate  = "Merge branch '%{source_branch}' into '%{target_branch}'\n\n%{title}\n\n%{issues}\n\nSee merge request %{reference}"
	squashTemplate = "%{title}"
)

// words are the values of the variables of a template by name.
type words map[string]string

var word = regexp.MustCompile(`%\{[a-z_]+\}`)

func (w words) merge(in *project.Project, a Acceptance) string {
	return w.message(a.MergeMessage, in.Settings.MergeCommitTemplate, mergeTemplate)
}

func (w words) squash(in *project.Project, a Acceptance) string {
	return w.message(a.SquashMessage, in.Settings.SquashCommitTemplate, squashTemplate)
}

// message returns given, or the expanded template if it is blank. usual replaces a
// blank template.
func (w words) message(given, template, usual string) string {
	if strings.TrimSpace(given) != "" {
		return given
	}
	if strings.TrimSpace(template) == "" {
		template = usual
	}
	return w.expand(template)
}

// expand replaces the variables of a template. A line that becomes empty is removed,
// together with an empty line before it.
func (w words) expand(template string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(template, "\r\n", "\n"), "\n") {
		full := word.ReplaceAllStringFunc(line, func(name string) string {
			if value, known := w[name[2:len(name)-1]]; known {
				return value
			}
			return name
		})
		if strings.TrimSpace(full) == "" && strings.TrimSpace(line) != "" {
			if n := len(lines); n > 0 && lines[n-1] == "" {
				lines = lines[:n-1]
			}
			continue
		}
		lines = append(lines, strings.TrimRight(full, " \t"))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// words returns the values of the template variables for a merge request.
func (s *Service) words(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest) (words, error) {
	ids, err := findIssuesOf(ctx, s.DB, m.ID, true)
	if err != nil {
		return nil, fmt.Errorf("issues of merge request %d: %w", m.ID, err)
	}
	issues, err := s.Plan.IssuesAmong(ctx, by, ids)
	if err != nil {
		return nil, err
	}
	var closes []string
	for _, i := range issues {
		name := fmt.Sprintf("#%d", i.IID)
		if i.ProjectID != in.ID {
			name = i.ProjectPath + name
		}
		closes = append(closes, name)
	}
	w := words{
		"source_branch": m.SourceBranch, "target_branch": m.TargetBranch, "title": m.Title, "description": m.Description, "issues": "",
		"reference": fmt.Sprintf("%s!%d", in.FullPath, m.IID), "local_reference": fmt.Sprintf("!%d", m.IID),
		"url": fmt.Sprintf("%s/%s/-/merge_requests/%d", s.URL, in.FullPath, m.IID), "merged_by": signed(by.Name, by.CommitEmail),
		"merge_request_author": "", "approved_by": "", "reviewed_by": "", "source_project_id": "", "co_authored_by": "",
		"first_commit": "", "first_multiline_commit": m.Title, "first_multiline_commit_description": "", "all_commits": "",
	}
	if n := len(closes); n == 1 {
		w["issues"] = "Closes " + closes[0]
	} else if n > 1 {
		w["issues"] = "Closes " + strings.Join(closes[:n-1], ", ") + " and " + closes[n-1]
	}
	if m.SourceProjectID != nil {
		w["source_project_id"] = fmt.Sprint(*m.SourceProjectID)
	}
	if m.Author != nil {
		address, err := s.Users.CommitAddress(ctx, m.AuthorID)
		if err != nil {
			return nil, err
		}
		w["merge_request_author"] = signed(m.Author.Name, address)
	}
	approved, err := s.approvedBy(ctx, m)
	if err != nil {
		return nil, err
	}
	reviewed, err := s.reviewedBy(ctx, m)
	if err != nil {
		return nil, err
	}
	w["approved_by"], w["reviewed_by"] = strings.Join(approved, "\n"), strings.Join(reviewed, "\n")
	return w, s.commitWords(ctx, in, m, w)
}

func signed(name, email string) string { return name + " <" + email + ">" }

// commitWords sets the values that depend on the commits of a merge request.
func (s *Service) commitWords(ctx context.Context, in *project.Project, m *MergeRequest, w words) error {
	v, err := newestVersion(ctx, s.DB, m.ID)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	page, err := s.Repos.CommitsOf(ctx, in, git.OID(v.Base), git.OID(v.Head), db.Paging{Limit: maxRead})
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var all, coAuthors []string
	for _, c := range slices.Backward(page.Items) {
		if w["first_commit"] == "" {
			w["first_commit"] = strings.TrimSpace(c.Message)
		}
		_, more, long := strings.Cut(strings.TrimSpace(c.Message), "\n")
		if long && w["first_multiline_commit_description"] == "" {
			w["first_multiline_commit"], w["first_multiline_commit_description"] = strings.TrimSpace(c.Message), strings.TrimSpace(more)
		}
		all = append(all, "* "+strings.TrimSpace(c.Message))
		who := "Co-authored-by: " + signed(c.Author.Name, c.Author.Email)
		if (m.Author == nil || c.Author.Email != m.Author.Email) && !slices.Contains(coAuthors, who) {
			coAuthors = append(coAuthors, who)
		}
	}
	w["all_commits"], w["co_authored_by"] = strings.Join(all, "\n\n"), strings.Join(coAuthors, "\n")
	return nil
}
