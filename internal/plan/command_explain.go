package plan

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/plan/quickaction"
	"svc/internal/project"
)

// Explanation describes what the quick actions of a text would do.
type Explanation struct {
	Text    string   // without the quick actions
	Effects []string // of the quick actions that would be applied
	Refused []string // reasons why other quick actions would not be applied, including unknown ones
}

// maxUnknown is the maximum number of unknown commands that an Explanation names.
const maxUnknown = 10

// Explain returns what the quick actions of a text would do to a target of the
// project that the actor can see. It changes nothing. NotFound.
func (s *Service) Explain(ctx context.Context, by actor.Actor, ref project.Ref, on *CommandTarget, text string) (*Explanation, error) {
	proj, err := s.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil {
		return nil, err
	}
	rest, list := s.ParseCommands(on.Kind, text)
	e := &Explanation{Text: rest}
	r := &commandRun{ctx: ctx, s: s, by: by, proj: proj, on: on, out: &Outcome{Changes: map[string]any{}}}
	for _, inv := range list {
		message, refused, err := r.run(inv)
		switch {
		case err != nil:
			return nil, err
		case refused != "":
			e.Refused = append(e.Refused, refused)
		case message == "": // the command runs after the text has been saved
			e.Effects = append(e.Effects, quickaction.Effect(inv.Command.Description, inv.Args))
		default:
			e.Effects = append(e.Effects, quickaction.Present(message))
		}
	}
	if on.Apply != nil && len(list) > 0 {
		if _, err := on.Apply(ctx, r.out); err != nil {
			refused, ok := errs.As(err)
			if !ok {
				return nil, fmt.Errorf("explain quick actions: %w", err)
			}
			e.Refused = append(e.Refused, sentenceOf(refused))
		}
	}
	e.Refused = append(e.Refused, s.unknownCommands(on.Kind, rest, len(list))...)
	return e, nil
}

// unknownCommands describes the lines of a text that look like quick actions and
// remain in it. count is the number of quick actions that were found.
func (s *Service) unknownCommands(kind Kind, rest string, count int) []string {
	var list []string
	quickaction.Replace(rest, func(name, _ string) (string, bool) {
		reason := "/" + name + " is not a quick action. It remains in the text."
		switch c := s.commands[kind][name]; {
		case c != nil && count == maxInvocations:
			reason = fmt.Sprintf("Only the first %d quick actions are applied.", maxInvocations)
		case c != nil:
			return "", false
		case slices.ContainsFunc(commandTable(), func(c *Command) bool { return c.Name == name || slices.Contains(c.Aliases, name) }):
			reason = "/" + name + " cannot be used on " + kind.noun() + "s. It remains in the text."
		}
		if len(list) < maxUnknown && !slices.Contains(list, reason) {
			list = append(list, reason)
		}
		return "", false
	})
	return list
}
