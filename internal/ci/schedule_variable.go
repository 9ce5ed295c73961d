package ci

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/errs"
	"svc/internal/project"
)

// SetScheduleVariables replaces the variables of a schedule, for its owner.
// NotFound; Forbidden; Invalid when two have one name.
func (s *Service) SetScheduleVariables(ctx context.Context, by actor.Actor, in project.Ref, id int64, list []PipelineVariable) error {
	if err := checkVariables(list); err != nil {
		return err
	}
	for i, v := range list {
		if slices.ContainsFunc(list[:i], func(o PipelineVariable) bool { return o.Key == v.Key }) {
			return errs.InvalidField("variables", "have duplicate values (%s)", v.Key)
		}
	}
	_, err := s.changeSchedule(ctx, by, in, id, ownsSchedule, audit.Details{Change: "variables"}, func(_ *project.Project, sch *Schedule) error {
		was, err := s.scheduleVariables(sch)
		if err != nil {
			return err
		}
		for i, v := range list { // the form knows nothing of it
			if at := slices.IndexFunc(was, func(o PipelineVariable) bool { return o.Key == v.Key }); at >= 0 {
				list[i].Raw = was[at].Raw
			}
		}
		sch.variables, err = s.seal(list, schedulePlace(sch.ID))
		return err
	})
	return err
}
