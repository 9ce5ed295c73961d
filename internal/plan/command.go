package plan

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// Command describes a quick action: a line of a comment or description that
// changes the object.
type Command struct {
	Name        string
	Aliases     []string
	Params      string // an example
	Description string

	on    []Kind
	needs need
	text  bool // it stays in the text
	// substitute replaces the line by a text.
	substitute func(args string) string
	// do collects the change in the outcome. A nil do is a command of another
	// feature, which exists if the feature has registered it.
	do func(r *commandRun, args string) (message string, err error)
	// old commands need an object that exists: they cannot be in the description
	// of a new one.
	old bool
}

// need is what a user must be allowed to do with the object.
type need int

const (
	needsComment need = iota
	needsEdit         // title, description and state
	needsPlan         // planning fields
)

// CommandHandler runs a quick action of another feature, after the transaction of
// the comment. It checks the rights of the actor itself, and returns what it did.
// head is the head of the merge request that the actor has seen; empty: any.
type CommandHandler func(ctx context.Context, by actor.Actor, in *project.Project, i *Issuable, args, head string) (message string, err error)

// OnCommand registers the handler of a quick action of another feature; it is
// called at start-up.
func (s *Service) OnCommand(kind Kind, name string, h CommandHandler) {
	for _, c := range commandTable() {
		if c.Name != name || !slices.Contains(c.on, kind) {
			continue
		}
		c.do = func(r *commandRun, args string) (string, error) {
			r.out.after = append(r.out.after, func(ctx context.Context, i *Issuable) (string, error) {
				return h(ctx, r.by, r.in, i, args, r.on.Head)
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

// CommandsFor lists the quick actions that an actor can use on an issue or merge
// request, or with nil on a new one of a kind. The actor sees it.
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

// Commands lists the quick actions that exist, by name, for the documentation.
func Commands() []*Command { return commandTable() }

// Kinds are the kinds of objects that a command is for.
func (c *Command) Kinds() []Kind { return c.on }

// CommandTarget is an issue or merge request, for quick actions of an actor. It is
// created by the feature that owns the object.
type CommandTarget struct {
	*Issuable
	Issue      *Issue // nil for a merge request
	Edit, Plan bool
	Head       string // expected head of a merge request; empty: any
	// Apply prepares the changes that quick actions make, and returns what makes
	// them in a transaction. Users and branches are checked here.
	Apply func(ctx context.Context, out *Outcome) (func(ctx context.Context, tx *db.Tx) error, error)
}

// allows reports whether the actor may use a command.
func (on *CommandTarget) allows(c *Command) bool {
	switch {
	case on.ID == 0 && c.old:
		return false
	case c.needs == needsEdit:
		return on.Edit
	case c.needs == needsPlan:
		return on.Plan
	}
	return true
}

// NewTarget returns a new issue of a project for quick actions, to users who can
// read its issues. NotFound.
func (s *Service) NewTarget(ctx context.Context, by actor.Actor, ref project.Ref) (*CommandTarget, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.IssuePart)
	if err != nil {
		return nil, err
	}
	return s.commandTarget(by, in, &Issue{Issuable: NewIssuable(IssueKind, by, in, s.Now())}), nil
}
