package config

import "slices"

// allows evaluates only: every part of it must match.
func (s *scope) allows(p *policy, variables Lookup) (bool, error) {
	if p == nil {
		return true, nil
	}
	if p.hasRefs && !s.anyRef(p.Refs) {
		return false, nil
	}
	if p.Variables != nil && !p.anyVariable(variables) {
		return false, nil
	}
	if p.Changes != nil {
		return s.touches(&changes{paths: p.Changes}, p.pos, variables)
	}
	return true, nil
}

// forbids evaluates except: one matching part is enough.
func (s *scope) forbids(p *policy, variables Lookup) (bool, error) {
	if p == nil {
		return false, nil
	}
	if p.hasRefs && s.anyRef(p.Refs) || p.anyVariable(variables) {
		return true, nil
	}
	if p.Changes != nil {
		return s.touches(&changes{paths: p.Changes}, p.pos, variables)
	}
	return false, nil
}

func (p *policy) anyVariable(variables Lookup) bool {
	return slices.ContainsFunc(p.exprs, func(e *Expression) bool { return e.True(variables) })
}

func (s *scope) anyRef(refs []string) bool { return slices.ContainsFunc(refs, s.isRef) }

func (s *scope) isRef(ref string) bool {
	name, project := splitRef(ref)
	if project != "" && project != s.in.At.Project {
		return false
	}
	switch name {
	case "tags":
		return s.in.Tag && !s.in.MergeRequest
	case "branches":
		return !s.in.Tag && !s.in.MergeRequest
	case "merge_requests":
		return s.in.MergeRequest
	case s.in.Source, plural(s.in.Source):
		return true
	}
	if s.in.MergeRequest { // neither a branch nor a tag
		return false
	}
	if !looksLikePattern(name) {
		return name == s.in.Ref
	}
	re, err := Regexp(name)
	return err == nil && re.MatchString(s.in.Ref)
}

// plural returns the keyword of a source in only and except.
func plural(source string) string {
	switch source {
	case "":
		return "\x00" // no ref has this name
	case "push":
		return "pushes"
	case "external_pull_request_event":
		return "external_pull_requests"
	}
	return source + "s"
}
