package plan

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/project"
)

// MaxCompletions is how many suggestions a completion has.
const MaxCompletions = 10

// CompleteIssues suggests issues of a project for the text after "#", to users who
// can read its issues: those whose number starts with it, or the newest ones whose
// title contains it. NotFound.
func (s *Service) CompleteIssues(ctx context.Context, by actor.Actor, ref project.Ref, text string) ([]*Issue, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	list, err := completeIssues(ctx, s.DB, s.issuesIn(by, place{project: in}), in.ID, NewTyped(text))
	if err != nil {
		return nil, fmt.Errorf("complete issues: %w", err)
	}
	return list, nil
}

// Typed is the text that a completion is for.
type Typed struct {
	Text   string
	Number int64 // of an issue or merge request; 0 for a text
}

// NewTyped returns what was typed. Completion looks at 100 bytes.
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
