package hook

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/featureflag"
	"svc/internal/project"
)

// FlagToggled sends the event of a feature flag that was turned on or off.
func (s *Service) FlagToggled(ctx context.Context, tx *db.Tx, t featureflag.Toggle) error {
	list, err := s.listening(ctx, tx, t.Project.ID)
	if err != nil || !wants(list, FeatureFlags) {
		return err
	}
	o, err := s.flagEvent(ctx, tx, t.Project.ID, t.By.ID, t.Flag)
	if err != nil {
		return fmt.Errorf("hooks of feature flag %d: %w", t.Flag.ID, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) flagEvent(ctx context.Context, q db.Q, projectID, by int64, f *featureflag.Flag) (occurrence, error) {
	in, err := project.In(ctx, q, projectID)
	if err != nil {
		return occurrence{}, err
	}
	found, err := findUsersByID(ctx, q, []int64{by})
	if err != nil {
		return occurrence{}, err
	}
	var page any
	if p := found[by]; p != nil {
		page = s.Site.URL + "/" + p.username
	}
	return occurrence{projectID: in.ID, trigger: FeatureFlags, payload: object{
		"object_kind": "feature_flag", "project": s.projectObject(in), "user": s.userObject(found[by]), "user_url": page,
		"object_attributes": object{"id": f.ID, "name": f.Name, "description": f.Description, "active": f.Active},
	}}, nil
}
