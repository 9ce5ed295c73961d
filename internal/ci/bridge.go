package ci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const (
	// maxChildDepth is the maximum nesting depth of child pipelines.
	maxChildDepth = 2
	// maxChain is the maximum length of a chain of pipelines that trigger each
	// other, and maxTree the maximum number of downstream pipelines of one
	// commit.
	maxChain = 20
	maxTree  = 1000
)

// bridgeWork is the background job that creates the pipeline of a trigger job.
type bridgeWork struct {
	JobID int64 `json:"job_id"`
}

// Kind implements queue.Work.
func (bridgeWork) Kind() string { return "ci_bridge" }

// workBridge creates the pipeline of a trigger job. If that is not possible,
// the job fails. Otherwise the job mirrors the status of the pipeline, or
// succeeds immediately (see followBridge).
func (s *Service) workBridge(ctx context.Context, w bridgeWork) error {
	j, err := findAnyJob(ctx, s.DB, w.JobID)
	if err != nil || j.Status != flow.Pending {
		return err
	}
	if j.Options.MirrorPipeline != "" {
		return s.followBridge(ctx, j.ID)
	}
	err = s.trigger(ctx, j)
	if errs.Is(err, errs.KindConflict) { // a previous attempt created the pipeline
		err = nil
	}
	if kind := errs.KindOf(err); kind != 0 && kind != errs.KindUnavailable {
		return s.endBridge(ctx, j.ID, End{Status: flow.Failed, Reason: bridgeFailure(kind)})
	}
	if err != nil {
		return fmt.Errorf("trigger job %d: %w", j.ID, err)
	}
	return s.followBridge(ctx, j.ID)
}

// bridgeFailure returns the failure reason of a trigger job whose pipeline
// could not be created.
func bridgeFailure(kind errs.Kind) FailureReason {
	switch kind {
	case errs.KindNotFound, errs.KindForbidden, errs.KindUnauthorized:
		return UnmetPrerequisites
	}
	return UnknownFailure
}

// trigger creates the pipeline of a trigger job.
func (s *Service) trigger(ctx context.Context, j *Job) error {
	sc, err := s.variableContextOf(ctx, j.PipelineID)
	if err != nil {
		return err
	}
	if j.UserID == nil {
		return errs.Forbidden("")
	}
	by, err := s.Users.As(ctx, *j.UserID)
	if err != nil {
		return err
	}
	if err := s.checkChain(ctx, sc.pipeline, j); err != nil {
		return err
	}
	list, err := s.readVariables(ctx, j)
	if err != nil {
		return err
	}
	var known []config.Variable
	for _, v := range list {
		known = append(known, config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw})
	}
	texts := flatExpansion(ctx, config.LookupIn(known))
	var m *pipelineDraft
	if j.Options.Trigger.Include != nil {
		m, err = s.proposeChild(ctx, by, j, sc)
	} else {
		m, err = s.proposeDownstream(ctx, by, j, texts)
	}
	if err != nil {
		return err
	}
	if m.variables, err = s.forwarded(j, sc.pipeline, texts); err != nil {
		return err
	}
	if m.inputs, err = inputsOf(j.Options.Trigger.Inputs); err != nil {
		return err
	}
	origin := "bridge/" + strconv.FormatInt(j.ID, 10)
	p := m.pipeline
	m.origin, p.ParentID, p.ParentJobID = &origin, &j.PipelineID, &j.ID
	p.facts.Upstream = &upstream{ProjectID: j.ProjectID, PipelineID: j.PipelineID, JobID: j.ID}
	_, err = s.create(ctx, m, true)
	return err
}

// proposeChild prepares a child pipeline: in the same project, at the same
// commit.
func (s *Service) proposeChild(ctx context.Context, by actor.Actor, j *Job, sc *variableContext) (*pipelineDraft, error) {
	src, err := s.Repos.Source(ctx, by, project.RefTo(j.ProjectID))
	if err != nil {
		return nil, err
	}
	parent := sc.pipeline
	m := &pipelineDraft{by: by, src: src, content: j.Options.Trigger.Content(), parent: j}
	m.pipeline = &Pipeline{
		ProjectID: j.ProjectID, Status: flow.Created, Source: FromParent, Ref: parent.Ref, Tag: parent.Tag, SHA: parent.SHA, BeforeSHA: parent.BeforeSHA,
		Child: true, facts: facts{TagMessage: parent.facts.TagMessage, ConfigPath: parent.facts.ConfigPath, Request: parent.facts.Request, OpenRequests: parent.facts.OpenRequests},
	}
	return m, s.complete(ctx, m)
}

// proposeDownstream prepares a pipeline in another project, at the head of the
// branch that the trigger names, or of the default branch.
func (s *Service) proposeDownstream(ctx context.Context, by actor.Actor, j *Job, texts expansion) (*pipelineDraft, error) {
	t := j.Options.Trigger
	in, ref := project.Ref(texts.All(t.Project)), texts.All(t.Branch)
	if err := texts.err(); err != nil {
		return nil, err
	}
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	if ref == "" {
		ref = proj.DefaultBranch
	}
	return s.propose(ctx, by, proj, NewPipeline{Ref: ref}, FromPipeline)
}

// forwarded returns the variables that a trigger job passes to its downstream
// pipeline.
func (s *Service) forwarded(j *Job, p *Pipeline, texts expansion) ([]variable.Given, error) {
	var out []variable.Given
	t := j.Options.Trigger
	if t.Forward.PipelineVariables {
		given, err := s.pipelineVariables(p)
		if err != nil {
			return nil, err
		}
		out = append(out, given...)
	}
	if t.Forward.YAMLVariables {
		for _, v := range j.Options.Variables {
			value := v.Value
			if !v.Raw {
				value = texts.Existing(value)
			}
			out = append(out, variable.Given{Key: v.Key, Value: value, Raw: v.Raw})
		}
	}
	return out, texts.err()
}

func inputsOf(text json.RawMessage) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var inputs map[string]any
	return inputs, json.Unmarshal(text, &inputs)
}

// checkChain returns Invalid if child pipelines are nested too deeply, if the
// chain of pipelines that trigger each other is too long (as in a cycle), or if
// the commit has too many downstream pipelines.
func (s *Service) checkChain(ctx context.Context, p *Pipeline, j *Job) error {
	depth, length := 0, 0
	for at := p; ; length++ {
		if at.Child {
			depth++
		}
		if length > maxChain {
			return errs.Invalid("The pipelines trigger each other in a loop")
		}
		if at.ParentID == nil {
			break
		}
		next, err := findAnyPipeline(ctx, s.DB, *at.ParentID)
		if errs.Is(err, errs.KindNotFound) {
			break
		}
		if err != nil {
			return err
		}
		at = next
	}
	if j.Options.Trigger.Include != nil && depth >= maxChildDepth {
		return errs.Invalid("Child pipelines cannot be nested deeper than %d levels", maxChildDepth)
	}
	made, err := countDownstream(ctx, s.DB, p.ProjectID, p.SHA)
	if err != nil {
		return err
	}
	if made >= maxTree {
		return errs.Invalid("Too many pipelines for one commit")
	}
	return nil
}

// parentArtifacts returns a function that reads files from the artifacts of the
// jobs in the pipeline of a trigger job. The configuration of the child
// pipeline can include them.
func (s *Service) parentArtifacts(bridge *Job) func(ctx context.Context, job, path string, limit int) ([]byte, error) {
	return func(ctx context.Context, job, path string, limit int) ([]byte, error) {
		j, err := latestNamed(ctx, s.DB, bridge.PipelineID, job)
		if err != nil {
			return nil, err
		}
		if j == nil {
			return nil, fs.ErrNotExist
		}
		text, err := s.entryText(ctx, j.ID, path, int64(limit)+1)
		if kind := errs.KindOf(err); kind != 0 && kind != errs.KindUnavailable || errors.Is(err, db.ErrNoRows) {
			return nil, fmt.Errorf("artifacts of %s: %w", job, fs.ErrNotExist)
		}
		return text, err
	}
}

// entryText reads up to limit bytes of a file in the archive of a job.
func (s *Service) entryText(ctx context.Context, jobID int64, path string, limit int64) ([]byte, error) {
	entry, err := s.Artifacts.OpenEntry(ctx, jobID, path)
	if err != nil {
		return nil, err
	}
	defer entry.Close()
	return io.ReadAll(io.LimitReader(entry, limit))
}

// endBridge ends a trigger job, unless it has already ended.
func (s *Service) endBridge(ctx context.Context, id int64, end End) error {
	return s.inBridge(ctx, id, func(tx *db.Tx, j *Job) error {
		if j.Status == flow.Pending {
			if err := s.beginJob(ctx, tx, j, nil); err != nil {
				return err
			}
		}
		return s.finishJob(ctx, tx, j, end)
	})
}

func (s *Service) inBridge(ctx context.Context, id int64, do func(*db.Tx, *Job) error) error {
	seen, err := findAnyJob(ctx, s.DB, id)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "pipelines", seen.PipelineID); err != nil {
			return err
		}
		j, err := findAnyJob(ctx, tx, id)
		if err != nil || j.Status.Done() {
			return err
		}
		return do(tx, j)
	})
	if err != nil {
		return fmt.Errorf("trigger job %d: %w", id, err)
	}
	return nil
}
