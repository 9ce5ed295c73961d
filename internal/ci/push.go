package ci

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strings"

	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// lane is the queue lane for background jobs that compile configurations. They
// read repositories and are slow, so other background jobs must not wait for
// them.
const lane = "pipelines"

// maxPushed is the maximum number of refs of one push that get a pipeline.
const maxPushed = 4

// pushWork is the background job that creates the pipeline of a pushed ref.
type pushWork struct {
	ProjectID int64    `json:"project_id"`
	UserID    int64    `json:"user_id"`
	Ref       string   `json:"ref"` // full name
	Old       string   `json:"old"`
	New       string   `json:"new"`
	Options   []string `json:"options,omitempty"`
	Origin    string   `json:"origin"` // prevents a second pipeline if the background job is retried
}

// Kind implements queue.Work.
func (pushWork) Kind() string { return "ci_push" }

// Pushed adds a background job that creates pipelines for the pushed branches
// and tags.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, p repo.Push) error {
	userID := p.By.ID
	if p.By.Deploy != nil {
		userID = p.By.Deploy.UserID
	}
	if userID <= 0 || p.Project.Builds == project.Disabled || hasOption(p.Options, "ci.no_pipeline") {
		return nil
	}
	made := 0
	for _, c := range p.Changes {
		if c.New == git.ZeroOID || made == maxPushed {
			continue
		}
		made++
		w := pushWork{
			ProjectID: p.Project.ID, UserID: userID, Ref: c.Ref, Old: string(c.Old), New: string(c.New), Options: p.Options,
			Origin: "push/" + rand.Text(),
		}
		if err := s.Queue.Add(ctx, tx, w, queue.In(lane)); err != nil {
			return err
		}
	}
	return nil
}

func hasOption(options []string, name string) bool {
	for _, o := range options {
		if o == name {
			return true
		}
	}
	return false
}

// optionVariables parses the push options ci.variable="NAME=value".
func optionVariables(options []string) []variable.Given {
	var list []variable.Given
	for key, value := range optionPairs(options, "ci.variable=") {
		if config.ValidKey(key) {
			list = append(list, variable.Given{Key: key, Value: value})
		}
	}
	return list
}

// optionInputs parses the push options ci.input="name=value".
func optionInputs(options []string) map[string]any {
	inputs := map[string]any{}
	for name, value := range optionPairs(options, "ci.input=") {
		inputs[name] = config.Texts{value}
	}
	return inputs
}

func optionPairs(options []string, prefix string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, o := range options {
			text, ok := strings.CutPrefix(o, prefix)
			if !ok {
				continue
			}
			if key, value, ok := strings.Cut(strings.Trim(text, `"`), "="); ok && !yield(key, value) {
				return
			}
		}
	}
}

func (s *Service) workPush(ctx context.Context, w pushWork) error {
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	src, err := s.Repos.Source(ctx, by, project.RefTo(w.ProjectID))
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	if !src.Project.MayChange(by, project.BuildsPart, project.NoAccess) {
		return nil
	}
	name, tag := strings.TrimPrefix(w.Ref, git.Heads), false
	if strings.HasPrefix(w.Ref, git.Tags) {
		name, tag = strings.TrimPrefix(w.Ref, git.Tags), true
	}
	m := &pipelineDraft{
		by: by, src: src, variables: optionVariables(w.Options), inputs: optionInputs(w.Options), skip: hasOption(w.Options, "ci.skip"), origin: &w.Origin,
	}
	m.pipeline = &Pipeline{
		ProjectID: w.ProjectID, Status: flow.Created, Source: FromPush, Ref: name, Tag: tag, SHA: w.New, BeforeSHA: w.Old,
	}
	if tag {
		commit, err := src.CommitAt(ctx, w.New) // an annotated tag is resolved to its commit
		if err != nil {
			return errs.IgnoreNotFound(err)
		}
		m.pipeline.SHA = string(commit.ID)
		if ref, err := src.Find(ctx, w.Ref); err == nil {
			m.pipeline.facts.TagMessage = ref.Message
		} else if !errs.Is(err, errs.KindNotFound) {
			return err
		}
	}
	if err := s.complete(ctx, m); err != nil {
		return errs.IgnoreRefusal(err)
	}
	if _, err := s.create(ctx, m, true); errs.IgnoreRefusal(err) != nil {
		return fmt.Errorf("pipeline of push to project %d: %w", w.ProjectID, err)
	}
	return nil
}
