package ci

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/notify"
	"svc/internal/project"
)

// pipelineKind is the target kind of pipelines in notify.
const pipelineKind = "Pipeline"

// notifyEnd notifies the user who started a pipeline of its result. Child
// pipelines are part of their parent.
func (s *Service) notifyEnd(ctx context.Context, tx *db.Tx, p *Pipeline) error {
	if !s.Notify.Enabled() || p.UserID == nil || p.Child || p.Status != flow.Failed && p.Status != flow.Success {
		return nil
	}
	event := notify.FailedPipeline
	if p.Status == flow.Success {
		fixed, err := s.fixes(ctx, tx, p)
		if err != nil {
			return err
		}
		if event = notify.SuccessPipeline; fixed {
			event = notify.FixedPipeline
		}
	}
	return s.Notify.Notify(ctx, tx, notify.Event{Type: event, TargetKind: pipelineKind, TargetID: p.ID, ProjectID: p.ProjectID})
}

// fixes reports whether the previous finished pipeline of the ref failed, or
// this one did before its jobs were retried.
func (s *Service) fixes(ctx context.Context, tx *db.Tx, p *Pipeline) (bool, error) {
	failed, err := s.Notify.HasEvent(ctx, tx, pipelineKind, p.ID, notify.FailedPipeline)
	if err != nil || failed {
		return failed, err
	}
	return failedBefore(ctx, tx, p)
}

// notifications implements notify.Source for pipelines.
type notifications struct{ s *Service }

// Notifications returns the kind of targets, and the source, of the emails about pipelines.
func (s *Service) Notifications() (string, notify.Source) { return pipelineKind, notifications{s} }

// Recipients implements notify.Source.
func (n notifications) Recipients(ctx context.Context, e *notify.Event) (notify.Recipients, error) {
	p, err := findPipeline(ctx, n.s.DB, e.ProjectID, e.TargetID)
	if err != nil || p.UserID == nil {
		return notify.Recipients{}, err
	}
	return notify.Recipients{BySettings: []int64{*p.UserID}, SkipWatchers: true}, nil
}

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	in, p, err := n.s.Pipeline(ctx, by, project.RefTo(events[0].ProjectID), events[0].TargetID)
	if err != nil {
		return nil, err
	}
	id := strconv.FormatInt(p.ID, 10)
	v := &notify.View{
		Project: in, Noun: "pipeline", Path: "/" + in.FullPath + "/-/pipelines/" + id,
		Headers: [][2]string{{"Pipeline-Id", id}, {"Pipeline-Ref", p.Ref}, {"Pipeline-Status", string(p.Status)}},
	}
	// A retried pipeline ends several times; the email reports the last result.
	head, word := "", ""
	switch events[len(events)-1].Type {
	case notify.FailedPipeline:
		head, word = "has failed", "Failed"
	case notify.FixedPipeline:
		head, word = "has been fixed", "Fixed"
	case notify.SuccessPipeline:
		head, word = "has passed", "Successful"
	default:
		return v, nil
	}
	v.Subject = fmt.Sprintf("%s pipeline for %s (%s)", word, p.Ref, p.SHA[:min(8, len(p.SHA))])
	text, err := n.details(ctx, p)
	if err != nil {
		return nil, err
	}
	v.Events = events[len(events)-1:]
	v.Sections = []mail.Section{{Head: fmt.Sprintf("Pipeline #%s for %s %s.", id, p.Ref, head), Text: text, HTML: mail.Plain(text)}}
	return v, nil
}

// details returns the text of a pipeline email.
func (n notifications) details(ctx context.Context, p *Pipeline) (string, error) {
	lines := []string{"Commit: " + p.SHA}
	if d := p.Duration(); d != nil {
		lines = append(lines, "Duration: "+d.Round(1e9).String())
	}
	if p.YAMLErrors != "" {
		return strings.Join(append(lines, "", p.YAMLErrors), "\n"), nil
	}
	const most = 20
	failed, err := findFailed(ctx, n.s.DB, p.ID, most)
	if err != nil {
		return "", fmt.Errorf("failed jobs of pipeline %d: %w", p.ID, err)
	}
	if len(failed) > 0 {
		lines = append(lines, "Failed jobs: "+strings.Join(failed, ", "))
	}
	return strings.Join(lines, "\n"), nil
}

// Subscribe implements notify.Source. There are no subscriptions to pipelines.
func (notifications) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return false }
