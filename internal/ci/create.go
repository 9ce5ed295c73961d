package ci

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/jobqueue"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/expand"
	"svc/internal/git"
	"svc/internal/project"
)

// maxPayload is the maximum size of TRIGGER_PAYLOAD in bytes. Every job of the
// pipeline gets the variable, and lists of pipelines read it.
const maxPayload = 128 << 10

// create creates a pipeline with its jobs and starts it. Invalid if there is no
// CI/CD configuration or its rules exclude the pipeline. If the configuration
// has errors or the variables are not allowed, keep stores a failed pipeline;
// without keep, these are errors too. Conflict if the origin has already
// created a pipeline.
func (s *Service) create(ctx context.Context, m *pipelineDraft, keep bool) (*Pipeline, error) {
	if refused := m.mayGive(); refused != nil {
		if !keep || m.pipeline.ParentJobID != nil {
			return nil, refused
		}
		m.variables = nil
		return m.pipeline, s.storeFailed(ctx, m, refused.Error())
	}
	// Not a variable that the caller chooses: it is there without the permission to
	// give variables.
	if m.payload != "" && len(m.payload) <= maxPayload {
		m.variables = append(m.variables, variable.Given{Key: "TRIGGER_PAYLOAD", Value: m.payload, Type: variable.File, Raw: true})
	}
	c, plan, err := s.plan(ctx, m)
	var faults config.Errors
	var none *config.NoPipeline
	switch {
	case errors.Is(err, errNoConfig):
		return nil, errs.InvalidField("base", "Missing CI config file")
	case errors.As(err, &none):
		return nil, errs.InvalidField("base", "%s", none.Error())
	case errors.As(err, &faults) && keep:
		return m.pipeline, s.storeFailed(ctx, m, faults.Error())
	case errors.As(err, &faults):
		return nil, &errs.Error{Kind: errs.KindInvalid, Fields: map[string][]string{"base": faults.Messages()}}
	case err != nil:
		return nil, fmt.Errorf("compile the CI configuration of project %d: %w", m.src.Project.ID, err)
	case m.skip || m.pipeline.Source == FromPush && skips(m.commit.Message):
		plan = &config.Plan{}
		m.pipeline.Status = flow.Skipped
		m.pipeline.FinishedAt = &m.pipeline.CreatedAt
	}
	return m.pipeline, s.store(ctx, m, c, plan)
}

// maxReason is the maximum length in bytes of the errors that are stored with a
// pipeline.
const maxReason = 64 << 10

// storeFailed stores a failed pipeline without jobs, with the reason.
func (s *Service) storeFailed(ctx context.Context, m *pipelineDraft, reason string) error {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	m.pipeline.YAMLErrors = reason
	m.pipeline.Status = flow.Failed
	m.pipeline.FinishedAt = &m.pipeline.CreatedAt
	return s.store(ctx, m, nil, &config.Plan{})
}

var skipMark = regexp.MustCompile(`(?i)\[(ci[ _-]skip|skip[ _-]ci)\]`)

// skips reports whether a commit message asks to skip the pipeline.
func skips(message string) bool { return skipMark.MatchString(message) }

// store writes a pipeline and its jobs and starts it, in one transaction.
func (s *Service) store(ctx context.Context, m *pipelineDraft, c *config.Config, plan *config.Plan) error {
	p := m.pipeline
	p.Name, p.Stages = plan.Name, plan.Stages
	if p.Stages == nil {
		p.Stages = []string{}
	}
	if p.AutoCancel = AutoCancel(plan.AutoCancel.OnNewCommit); p.AutoCancel == "" {
		p.AutoCancel = Conservative
	}
	p.CancelOnFailure = plan.AutoCancel.OnJobFailure == "all"
	urls, err := s.environmentURLs(ctx, m, plan)
	if err != nil {
		return fmt.Errorf("make pipeline of project %d: %w", m.src.Project.ID, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		p.ID, p.IID, p.variables = 0, 0, ""
		if err := insertPipeline(ctx, tx, p, m.origin); err != nil {
			return err
		}
		var err error
		if p.variables, err = s.Variables.Seal(m.variables, pipelinePlace(p.ID)); err != nil {
			return err
		}
		if p.variables != "" {
			if err := setVariables(ctx, tx, p.ID, p.variables); err != nil {
				return err
			}
		}
		if p.ScheduleID != nil {
			if err := s.Schedules.SetLastPipeline(ctx, tx, *p.ScheduleID, p.ID); err != nil {
				return err
			}
		}
		for i := range plan.Jobs {
			if err := s.storeJob(ctx, tx, m, &plan.Jobs[i], urls[i]); err != nil {
				return fmt.Errorf("job %s: %w", plan.Jobs[i].Name, err)
			}
		}
		if p.Status.Done() {
			return errors.Join(s.publishChange(ctx, tx, p), s.changed(ctx, tx, p))
		}
		now, err := s.advance(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		*p = *now
		if p.Child || m.src.Project.Settings.AutoCancelPendingPipelines == "disabled" {
			return nil
		}
		return s.Queue.Add(ctx, tx, redundantWork{PipelineID: p.ID})
	})
	if db.IsUnique(err, "pipelines_origin") {
		return errs.Conflict("The pipeline was already created")
	}
	if err != nil {
		return fmt.Errorf("make pipeline of project %d: %w", m.src.Project.ID, err)
	}
	return nil
}

// environmentURLs returns the environment URL of each job, as far as it is
// known before the job runs.
func (s *Service) environmentURLs(ctx context.Context, m *pipelineDraft, plan *config.Plan) ([]string, error) {
	urls := make([]string, len(plan.Jobs))
	sc, err := s.newVariableContext(ctx, m.src.Project, m.pipeline, m.commit)
	if err != nil {
		return nil, err
	}
	predefined, budget := sc.predefined(), expand.NewBudget(ctx)
	for i := range plan.Jobs {
		j := &plan.Jobs[i]
		if j.Environment == nil || j.Environment.URL == "" {
			continue
		}
		own := []config.Variable{
			{Key: "CI_ENVIRONMENT_NAME", Value: j.Environment.Name},
			{Key: "CI_ENVIRONMENT_SLUG", Value: deployment.Slug(j.Environment.Name)},
		}
		known, err := config.Resolve(budget, append(append(append([]config.Variable{}, predefined...), own...), append(j.Variables, variable.Config(m.variables)...)...))
		if err != nil {
			continue
		}
		address := config.Flat(budget, config.LookupIn(known)).Existing(j.Environment.URL)
		if deployment.ValidURL(address) && !strings.Contains(address, "$") {
			urls[i] = address
		}
	}
	return urls, ctx.Err()
}

// storeJob writes a job of a new pipeline, with its resource group, environment
// and deployment.
func (s *Service) storeJob(ctx context.Context, tx *db.Tx, m *pipelineDraft, o *config.Job, url string) error {
	p := m.pipeline
	j := &Job{
		JobState: JobState{ProjectID: p.ProjectID, PipelineID: p.ID, Status: flow.Created}, Bridge: o.Trigger != nil || o.MirrorPipeline != "",
		Name: o.Name, Stage: o.Stage, StageIndex: o.StageIndex, When: flow.When(o.When), AllowFailure: o.AllowFailure,
		Ref: p.Ref, Tag: p.Tag, Protected: p.Protected, Interruptible: o.Interruptible != nil && *o.Interruptible, UserID: p.UserID,
		Timeout: time.Duration(o.Timeout) * time.Second, CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt, Options: *o,
	}
	if j.Timeout == 0 {
		j.Timeout = time.Duration(m.src.Project.Settings.BuildTimeout) * time.Second
	}
	if o.Needs != nil {
		j.Needs = []flow.Need{}
		for _, n := range o.Needs {
			j.Needs = append(j.Needs, flow.Need{Name: n.Job, Optional: n.Optional})
		}
	}
	var err error
	if j.TagSetID, err = jobqueue.TagSet(ctx, tx, o.Tags); err != nil {
		return err
	}
	if o.ResourceGroup != "" {
		id, err := deployment.EnsureResourceGroup(ctx, tx, p.ProjectID, o.ResourceGroup, p.CreatedAt)
		if err != nil {
			return err
		}
		j.ResourceGroupID = &id
	}
	if o.Environment != nil && o.Environment.Name != "" {
		if err := s.joinEnvironment(ctx, tx, p, j, url); err != nil {
			return err
		}
	}
	if err := insertJob(ctx, tx, j); err != nil {
		return err
	}
	if err := s.Events.JobChanged.Publish(ctx, tx, j.change()); err != nil {
		return err
	}
	return s.addDeployment(ctx, tx, j)
}

// joinEnvironment finds or creates the environment of a job. If the expanded
// name is not valid, the job gets no environment.
func (s *Service) joinEnvironment(ctx context.Context, tx *db.Tx, p *Pipeline, j *Job, url string) error {
	o := j.Options.Environment
	e := &deployment.Environment{
		ProjectID: p.ProjectID, Name: o.Name, Slug: deployment.Slug(o.Name), Tier: o.Tier, ExternalURL: url, CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt,
	}
	if e.Tier == "" {
		e.Tier = deployment.DefaultTier(o.Name)
	}
	if e.Check() != nil {
		return nil
	}
	if err := deployment.EnsureEnvironment(ctx, tx, e); err != nil {
		return err
	}
	j.EnvironmentID = &e.ID
	return nil
}

// NewPipeline has the fields of a pipeline that a user creates.
type NewPipeline struct {
	Ref       string
	Variables []variable.Given
	Inputs    map[string]any
	Payload   string // the parameters of a trigger as JSON; empty for other pipelines
}

// CreatePipeline creates a pipeline for the head of a branch or tag, for
// Developers and above; on a protected ref, for users who may push to it or
// merge into it. Invalid with all reasons why it cannot be created.
func (s *Service) CreatePipeline(ctx context.Context, by actor.Actor, in project.Ref, n NewPipeline) (*project.Project, *Pipeline, error) {
	return s.createPipeline(ctx, by, in, n, FromAPI)
}

func (s *Service) createPipeline(ctx context.Context, by actor.Actor, in project.Ref, n NewPipeline, source Source) (*project.Project, *Pipeline, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.propose(ctx, by, proj, n, source)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.create(ctx, m, false)
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// propose prepares a pipeline for the head of a ref. Invalid if the ref does
// not exist or the actor may not run pipelines on it.
func (s *Service) propose(ctx context.Context, by actor.Actor, proj *project.Project, n NewPipeline, source Source) (*pipelineDraft, error) {
	if err := variable.Check(n.Variables); err != nil {
		return nil, err
	}
	src, err := s.Repos.SourceOf(by, proj)
	if err != nil {
		return nil, err
	}
	ref, err := src.Find(ctx, n.Ref)
	if errs.Is(err, errs.KindNotFound) {
		return nil, errs.InvalidField("base", "Reference not found")
	}
	if err != nil {
		return nil, err
	}
	m := &pipelineDraft{by: by, src: src, variables: n.Variables, inputs: n.Inputs, payload: n.Payload}
	m.pipeline = &Pipeline{
		ProjectID: proj.ID, Status: flow.Created, Source: source, Ref: ref.Name, Tag: ref.Tag, SHA: string(ref.Commit), BeforeSHA: string(git.ZeroOID),
		facts: facts{TagMessage: ref.Message},
	}
	return m, s.complete(ctx, m)
}

// complete checks that the actor may run the pipeline, and sets its remaining
// fields.
func (s *Service) complete(ctx context.Context, m *pipelineDraft) error {
	p := m.pipeline
	may, err := m.src.MayRun(ctx, p.branch(), p.Tag)
	if err != nil {
		return err
	}
	if !may {
		return errs.InvalidField("base", "You do not have sufficient permission to run a pipeline on '%s'. "+
			"Please select a different branch or contact your administrator for assistance.", p.branch())
	}
	if m.commit, err = m.src.CommitAt(ctx, p.SHA); errs.Is(err, errs.KindNotFound) {
		return errs.InvalidField("base", "Commit not found")
	} else if err != nil {
		return err
	}
	if p.Protected, err = m.src.Protected(ctx, p.Ref, p.Tag); err != nil {
		return err
	}
	if !p.Tag && p.ProjectID == m.src.Project.ID {
		if p.facts.OpenRequests, err = s.openRequests(ctx, p.ProjectID, p.branch()); err != nil {
			return err
		}
	}
	p.CreatedAt = s.Now()
	p.UpdatedAt = p.CreatedAt
	if m.by.ID > 0 {
		p.UserID = &m.by.ID
	}
	return nil
}

// mayGive checks that the actor may set the variables of a pipeline. All
// pipelines are checked here, regardless of where the variables come from.
// Child pipelines are exempt: their variables are those of the parent pipeline,
// which were checked there, and those in the CI/CD configuration of the same
// project.
func (m *pipelineDraft) mayGive() error {
	if len(m.variables) == 0 || m.parent != nil || variable.MayGive(m.by, m.src.Project) {
		return nil
	}
	if m.pipeline.ParentJobID != nil {
		return errs.Forbidden(variable.NotAllowed)
	}
	return errs.InvalidField("base", variable.NotAllowed)
}
