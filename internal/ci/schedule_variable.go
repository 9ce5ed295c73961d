package ci

import (
	"slices"

	"svc/internal/actor"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
)

// checkScheduleVariables says what is wrong with the variables of a change.
func checkScheduleVariables(by actor.Actor, p *project.Project, given *[]variable.Given) error {
	if given == nil {
		return nil
	}
	if len(*given) > 0 && !variable.MayGive(by, p) {
		return errs.InvalidField("base", variable.NotAllowed)
	}
	if err := variable.Check(*given); err != nil {
		return err
	}
	for i, v := range *given {
		if slices.ContainsFunc((*given)[:i], func(o variable.Given) bool { return o.Key == v.Key }) {
			return errs.InvalidField("variables", "have duplicate values (%s)", v.Key)
		}
	}
	return nil
}

// giveVariables replaces the variables of a schedule, unless none are given.
func (s *Service) giveVariables(sch *Schedule, given *[]variable.Given) error {
	if given == nil {
		return nil
	}
	was, err := s.scheduleVariables(sch)
	if err != nil {
		return err
	}
	list := slices.Clone(*given)
	for i, v := range list { // who replaces them knows nothing of it
		if at := slices.IndexFunc(was, func(o variable.Given) bool { return o.Key == v.Key }); at >= 0 {
			list[i].Raw = was[at].Raw
		}
	}
	sch.variables, err = s.Variables.Seal(list, schedulePlace(sch.ID))
	return err
}

// shownVariables are those of a schedule; an empty list for none.
func (s *Service) shownVariables(sch *Schedule) ([]variable.Given, error) {
	list, err := s.scheduleVariables(sch)
	if list == nil {
		list = []variable.Given{}
	}
	return list, err
}
