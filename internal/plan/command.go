package plan

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// Command is a quick action: a line of a comment or description that changes the
// issue or merge request.
type Command struct {
	Name        string
	Aliases     []string
	Params      string // example arguments
	Description string

	on    []Kind
	needs need
	text  bool // the line stays in the text
	// substitute returns the text that replaces the line.
	substitute func(args string) string
	// do adds the change to the outcome. It is nil for a command of another feature
	// until that feature calls OnCommand.
	do func(r *commandRun, args string) (message string, err error)
	// existing commands need an object that exists. They are not allowed in the
	// description of a new one.
	existing bool
}

// need is the permission that a command requires.
type need int

const (
	needsComment need = iota
	needsEdit         // title, description and state
	needsPlan         // planning fields
)

// CommandHandler runs a quick action of another feature after the transaction of
// the comment. It checks the permissions of the actor and returns a message for
// the user. head is the head SHA of the merge request that the actor has seen, or
// empty.
type CommandHandler func(ctx context.Context, by actor.Actor, proj *project.Project, i *Issuable, args, head string) (message string, err error)

// OnCommand registers the handler of a quick action of another feature. It is
// called at startup.
func (s *Service) OnCommand(kind Kind, name string, h CommandHandler) {
	for _, c := range commandTable() {
		if c.Name != name || !slices.Contains(c.on, kind) {
			continue
		}
		c.do = func(r *commandRun, args string) (string, error) {
			r.out.after = append(r.out.after, func(ctx context.Context, i *Issuable) (string, error) {
				return h(ctx, r.by, r.proj, i, args, r.on.Head)
			})
			return "", nil
		}
		s.addCommand(kind, c)
	}
}

func (s *Service) addCommand(kind Kind, c *Command) {
	if s.commands[kind] == nil {
		s.commands[kind] = map[string]*Command{}
	}
	for _, name := range append([]string{c.Name}, c.Aliases...) {
		s.commands[kind][name] = c
	}
}

// CommandsFor lists the quick actions that the actor may use on a target that they
// can see.
func (s *Service) CommandsFor(on *CommandTarget) []*Command {
	var list []*Command
	for name, c := range s.commands[on.Kind] {
		if name == c.Name && on.allows(c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *Command) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// Commands lists all quick actions by name, for the documentation.
func Commands() []*Command { return commandTable() }

// Kinds returns the kinds of objects that the command can be used on.
func (c *Command) Kinds() []Kind { return c.on }

// CommandTarget is an issue or merge request that an actor uses quick actions on.
// The feature that owns the object creates it.
type CommandTarget struct {
	*Issuable
	Issue      *Issue // nil for a merge request
	Edit, Plan bool
	Head       string // expected head SHA of a merge request; empty for any
	// Apply validates the changes of quick actions, such as users and branches, and
	// returns a function that saves them in a transaction.
	Apply func(ctx context.Context, out *Outcome) (func(ctx context.Context, tx *db.Tx) error, error)
}

// allows reports whether the actor may use a command.
func (on *CommandTarget) allows(c *Command) bool {
	switch {
	case on.ID == 0 && c.existing:
		return false
	case c.needs == needsEdit:
		return on.Edit
	case c.needs == needsPlan:
		return on.Plan
	}
	return true
}

// NewTarget returns the target of quick actions in the description of a new issue.
// Requires read access to issues. NotFound.
func (s *Service) NewTarget(ctx context.Context, by actor.Actor, ref project.Ref) (*CommandTarget, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	return s.commandTarget(by, proj, &Issue{Issuable: NewIssuable(IssueKind, by, proj, s.Now())}), nil
}
