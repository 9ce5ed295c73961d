package plan

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/project"
)

// MaxCompletions is the maximum number of suggestions for autocompletion.
const MaxCompletions = 10

// CompleteIssues suggests issues of a project for the text after "#": issues whose
// number starts with the text, or the newest issues whose title contains it.
// Requires read access to issues. NotFound.
func (s *Service) CompleteIssues(ctx context.Context, by actor.Actor, ref project.Ref, text string) ([]*Issue, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	list, err := completeIssues(ctx, s.DB, s.issuesIn(by, place{project: proj}), proj.ID, NewTyped(text))
	if err != nil {
		return nil, fmt.Errorf("complete issues: %w", err)
	}
	return list, nil
}

// Typed is the text to complete.
type Typed struct {
	Text   string
	Number int64 // number of an issue or merge request; 0 if the text is not a number
}

// NewTyped returns the text to complete. Only the first 100 bytes count.
func NewTyped(text string) Typed {
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1e12 {
		n = 0
	}
	return Typed{text, n}
}
