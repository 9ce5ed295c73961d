package plan

import (
	"strings"

	"svc/internal/plan/quickaction"
)

// Invocation is a use of a quick action in a text.
type Invocation struct {
	Command *Command
	Args    string
}

// maxInvocations is the maximum number of quick actions in a text. Further ones
// remain part of the text.
const maxInvocations = 100

// ParseCommands returns a text without its quick actions, and the quick actions. A
// quick action is a line that starts with a slash and the name of a command for
// this kind of object. Lines in code blocks, quotes and HTML comments are not
// parsed.
func (s *Service) ParseCommands(kind Kind, text string) (rest string, list []Invocation) {
	if !strings.Contains(text, "/") {
		return text, nil
	}
	known := s.commands[kind]
	return parseCommands(text, func(name string) *Command { return known[name] })
}

func parseCommands(text string, find func(name string) *Command) (rest string, list []Invocation) {
	rest = quickaction.Replace(text, func(name, args string) (string, bool) {
		c := find(name)
		switch {
		case len(list) == maxInvocations || c == nil || c.text:
			return "", false
		case c.substitute != nil:
			return c.substitute(args), true
		}
		list = append(list, Invocation{c, args})
		return "", true
	})
	if len(list) > 0 {
		rest = strings.Trim(rest, "\r\n")
	}
	return rest, list
}
