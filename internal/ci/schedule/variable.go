package schedule

import (
	"slices"

	"svc/internal/actor"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
)

// checkVariables checks the variables of a change. Invalid.
func checkVariables(by actor.Actor, p *project.Project, given *[]variable.Given) error {
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

// replaceVariables replaces the variables of a schedule, unless given is nil.
func (s *Service) replaceVariables(sch *Schedule, given *[]variable.Given) error {
	if given == nil {
		return nil
	}
	was, err := s.VariablesOf(sch)
	if err != nil {
		return err
	}
	list := slices.Clone(*given)
	for i, v := range list { // clients do not send it
		if at := slices.IndexFunc(was, func(o variable.Given) bool { return o.Key == v.Key }); at >= 0 {
			list[i].Raw = was[at].Raw
		}
	}
	sch.variables, err = s.Variables.Seal(list, sealPlace(sch.ID))
	return err
}

// shownVariables returns the variables of a schedule; an empty list for none.
func (s *Service) shownVariables(sch *Schedule) ([]variable.Given, error) {
	list, err := s.VariablesOf(sch)
	if list == nil {
		list = []variable.Given{}
	}
	return list, err
}
