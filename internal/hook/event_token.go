package hook

import (
	"context"
	"fmt"
	"time"

	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// announceBefore are the numbers of days before the expiration date of an access token on
// which its event is sent.
var announceBefore = []int{7, 1}

// tokenRow is an access token of a project or group.
type tokenRow struct {
	id, userID         int64
	name, expires      string
	created            time.Time
	projectID, groupID *int64
}

func (t *tokenRow) object() object {
	return object{"id": t.id, "user_id": t.userID, "name": t.name, "created_at": zone(t.created), "expires_at": t.expires}
}

// AnnounceExpiry sends the events of project and group access tokens that expire in
// a week or tomorrow.
func (s *Service) AnnounceExpiry(ctx context.Context) error {
	for _, days := range announceBefore {
		list, err := findExpiring(ctx, s.DB, s.expiry(days))
		if err != nil {
			return fmt.Errorf("find expiring access tokens: %w", err)
		}
		for _, t := range list {
			if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.announce(ctx, tx, t) }); err != nil {
				return fmt.Errorf("announce access token %d: %w", t.id, err)
			}
		}
	}
	return nil
}

// expiry returns the date in some days.
func (s *Service) expiry(days int) string {
	return s.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly)
}

func (s *Service) announce(ctx context.Context, tx *db.Tx, t *tokenRow) error {
	payload := object{"object_kind": "access_token", "event_name": "expiring_access_token", "object_attributes": t.object()}
	if t.projectID == nil {
		return s.emitInGroup(ctx, tx, *t.groupID, occurrence{trigger: AccessTokens, payload: payload})
	}
	list, err := s.listening(ctx, tx, *t.projectID)
	if err != nil || !wants(list, AccessTokens) {
		return err
	}
	p, err := project.In(ctx, tx, *t.projectID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	payload["project"] = s.projectObject(p)
	return s.emit(ctx, tx, list, occurrence{projectID: p.ID, trigger: AccessTokens, payload: payload})
}

// sampleToken is the event of a made-up access token.
func (s *Service) sampleToken(p *project.Project) occurrence {
	t := tokenRow{id: 1, userID: 1, name: "sample", created: s.Now(), expires: s.expiry(announceBefore[0])}
	return occurrence{projectID: p.ID, trigger: AccessTokens, payload: object{
		"object_kind": "access_token", "event_name": "expiring_access_token", "object_attributes": t.object(), "project": s.projectObject(p),
	}}
}

func (s *Service) sampleDeployment(ctx context.Context, id, projectID int64) (occurrence, error) {
	d, err := findDeployment(ctx, s.DB, deployment.StatusChange{ProjectID: projectID, ID: id})
	if err != nil {
		return occurrence{}, err
	}
	if d == nil {
		return occurrence{}, errs.NotFound("")
	}
	return s.deploymentEvent(ctx, s.DB, d)
}

func (s *Service) sampleMilestone(ctx context.Context, p *project.Project) (occurrence, error) {
	attributes, err := newestMilestone(ctx, s.DB, p.ID)
	if err != nil {
		return occurrence{}, err
	}
	return occurrence{projectID: p.ID, trigger: Milestones, payload: object{
		"object_kind": "milestone", "event_type": "milestone", "action": "create", "object_attributes": attributes, "project": s.projectObject(p),
	}}, nil
}
