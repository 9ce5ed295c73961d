package app

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"svc/internal/actor"
)

// maxShown limits the number of problems that are shown per repository.
const maxShown = 10

// ExamineBuckets compares the object stores of storages with the packs of their
// repositories. It returns one finding for each storage.
func (a *App) ExamineBuckets(ctx context.Context) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		for _, s := range a.buckets.storages {
			var shown []string
			problems := 0
			r, err := s.Check(ctx, func(text string) {
				if problems++; problems <= maxShown {
					shown = append(shown, text)
				}
			})
			if more := problems - maxShown; more > 0 {
				shown = append(shown, fmt.Sprintf("and %d more", more))
			}
			if err == nil && problems > 0 {
				err = fmt.Errorf("%d problems: %s", problems, strings.Join(shown, "; "))
			}
			text := fmt.Sprintf("%s: %d packs with %d bytes are whole, %d objects are not used", s.Name, r.Packs, r.Bytes, r.Unused)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name, err)
			}
			if !yield(Finding{Part: "bucket", Text: text, Err: err}) {
				return
			}
		}
	}
}

// ExamineRepositories runs git fsck on every repository. It returns a finding for
// each damaged repository and one for all others together. progress is called
// with the number of checked repositories and the name of the last one.
func (a *App) ExamineRepositories(ctx context.Context, progress func(done int, path string)) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		done, whole := 0, 0
		for c := range a.Repos.CheckAll(ctx, actor.System()) {
			if c.Project == nil && c.AuxRepo == nil {
				yield(Finding{Part: "repositories", Err: c.Err})
				return
			}
			done++
			err := c.Err
			if err == nil && len(c.Problems) > 0 {
				var lines []string
				for _, p := range c.Problems[:min(len(c.Problems), maxShown)] {
					lines = append(lines, strings.TrimSpace(p.Text))
				}
				if more := len(c.Problems) - maxShown; more > 0 {
					lines = append(lines, fmt.Sprintf("and %d more", more))
				}
				err = fmt.Errorf("%d problems: %s", len(c.Problems), strings.Join(lines, "; "))
			}
			if err == nil {
				whole++
			} else if !yield(Finding{Part: "repository", Err: fmt.Errorf("%s: %w", c.Name(), err)}) {
				return
			}
			progress(done, c.Name())
		}
		yield(Finding{Part: "repositories", Text: fmt.Sprintf("%d of %d are whole", whole, done)})
	}
}
