package merge

import (
	"context"
	"fmt"
	"net/url"

	"svc/internal/actor"
	"svc/internal/project"
)

// maxHints is the maximum number of pushed branches for which hints are sent.
const maxHints = 3

// PushHints returns messages for a user who has pushed a branch: the URL of its merge
// request, or of the page to create one. Errors are ignored.
func (s *Service) PushHints(ctx context.Context, by actor.Actor, in *project.Project, branches []string) []string {
	// The first branch of a repository becomes the default branch: there is no
	// branch to merge it into.
	if by.Anonymous() || in.DefaultBranch == "" || len(branches) > maxHints || !in.Settings.PrintingMergeRequestLinkEnabled || !in.MayRead(by, project.MergePart) {
		return nil
	}
	var lines []string
	say := func(text, address string) { lines = append(lines, "", text, "  "+s.URL+"/"+address, "") }
	for _, branch := range branches {
		if branch == in.DefaultBranch {
			continue
		}
		open, err := findFromBranch(ctx, s.DB, in.ID, branch)
		if err != nil {
			return lines
		}
		if len(open) == 0 {
			query := url.Values{"merge_request[source_branch]": {branch}}
			say("To create a merge request for "+branch+", visit:", in.FullPath+"/-/merge_requests/new?"+query.Encode())
			continue
		}
		for _, m := range open {
			if _, err := s.Projects.RequireView(ctx, by, project.RefTo(m.ProjectID), project.MergePart); err == nil {
				say("View merge request for "+branch+":", fmt.Sprintf("%s/-/merge_requests/%d", m.ProjectPath, m.IID))
				break
			}
		}
	}
	return lines
}
