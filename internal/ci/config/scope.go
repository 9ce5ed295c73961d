package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"svc/internal/expand"
)

// scope provides the data that the rules of a pipeline refer to. It calls each callback
// once per argument.
type scope struct {
	ctx     context.Context
	in      *Input
	files   map[Place][]string
	folders map[Place][]string
	changed map[string]changedFiles
	places  map[[2]string]Place
	globs   globs
	scoped  [][]Variable // from Input.Scoped
	expands *expand.Budget
}

type changedFiles struct {
	paths []string
	known bool
}

func newScope(ctx context.Context, in *Input) *scope {
	return &scope{
		ctx:     ctx,
		in:      in,
		files:   map[Place][]string{},
		folders: map[Place][]string{},
		changed: map[string]changedFiles{},
		places:  map[[2]string]Place{},
		globs:   globs{},
		expands: expand.NewBudget(ctx),
	}
}

// paths lists the files at a place.
func (s *scope) paths(at Place) ([]string, error) {
	if known, ok := s.files[at]; ok {
		return known, nil
	}
	if s.in.Files == nil || at.Commit == "" {
		return nil, nil
	}
	paths, err := s.in.Files.Paths(s.ctx, at)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", at.Project, err)
	}
	s.files[at] = paths
	return paths, nil
}

// directories lists the directories at a place, with a slash at the end.
func (s *scope) directories(at Place, paths []string) []string {
	known, ok := s.folders[at]
	if ok {
		return known
	}
	last := ""
	for _, path := range paths { // sorted: the files of a directory follow each other
		dir := path[:strings.LastIndexByte(path, '/')+1]
		if strings.HasPrefix(last, dir) {
			continue
		}
		for i := range dir {
			if parent := dir[:i+1]; dir[i] == '/' && !strings.HasPrefix(last, parent) {
				known = append(known, parent)
			}
		}
		last = dir
	}
	s.folders[at] = known
	return known
}

// match returns the first rule that matches, or nil; at is the place whose files
// rules:exists looks up. A rule that cannot be evaluated is an *Error.
func (s *scope) match(rules []*rule, at Place, variables Lookup) (*rule, error) {
	for _, r := range rules {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		met, err := s.meets(r, at, variables)
		if err != nil {
			return nil, err
		}
		if met {
			return r, nil
		}
	}
	return nil, nil
}

func (s *scope) meets(r *rule, at Place, variables Lookup) (bool, error) {
	if r.condition != nil && !r.condition.True(variables) {
		return false, nil
	}
	if r.changes != nil {
		met, err := s.touches(r.changes, r.pos, variables)
		if err != nil || !met {
			return false, err
		}
	}
	if r.exists != nil {
		met, err := s.exists(r, at, variables)
		if err != nil || !met {
			return false, err
		}
	}
	return true, nil
}

// touches reports whether a file of rules:changes has changed.
func (s *scope) touches(c *changes, pos Pos, variables Lookup) (bool, error) {
	e := Nested(s.expands, variables)
	compareTo := e.Existing(c.compareTo)
	if err := s.expanded(pos); err != nil {
		return false, err
	}
	files, ok := s.changed[compareTo]
	if !ok {
		if s.in.Changed == nil {
			return true, nil
		}
		var err error
		files.paths, files.known, err = s.in.Changed(s.ctx, compareTo)
		if errors.Is(err, fs.ErrNotExist) {
			return false, failAt(pos, "rules:changes:compare_to", "rules:changes:compare_to is not a valid ref")
		}
		if err != nil {
			return false, fmt.Errorf("list the changed files: %w", err)
		}
		s.changed[compareTo] = files
	}
	if !files.known {
		return true, nil
	}
	patterns := e.Each(c.paths)
	if err := s.expanded(pos); err != nil {
		return false, err
	}
	return s.globs.anyMatch(patterns, files.paths), nil
}

// exists reports whether a file of rules:exists exists.
func (s *scope) exists(r *rule, at Place, variables Lookup) (bool, error) {
	e := r.exists
	if e.project != "" {
		var err error
		if at, err = s.place(e, r.pos, variables); err != nil {
			return false, err
		}
	}
	paths, err := s.paths(at)
	if err != nil {
		return false, err
	}
	patterns := Nested(s.expands, variables).Each(e.paths)
	if err := s.expanded(r.pos); err != nil {
		return false, err
	}
	var ofFiles, ofDirectories []string
	for _, p := range patterns {
		directory := strings.HasSuffix(p, "/")
		switch {
		case s.globs.get(p).match != nil && directory:
			ofDirectories = append(ofDirectories, p)
		case s.globs.get(p).match != nil:
			ofFiles = append(ofFiles, p)
		default:
			// A plain name is looked up, because the list may be long.
			i, found := slices.BinarySearch(paths, p)
			if found || directory && p != "/" && i < len(paths) && strings.HasPrefix(paths[i], p) {
				return true, nil
			}
		}
	}
	if s.globs.anyMatch(ofFiles, paths) {
		return true, nil
	}
	return len(ofDirectories) > 0 && s.globs.anyMatch(ofDirectories, s.directories(at, paths)), nil
}

// place finds the project of rules:exists:project.
func (s *scope) place(e *exists, pos Pos, variables Lookup) (Place, error) {
	flat := Flat(s.expands, variables)
	key := [2]string{flat.Existing(e.project), flat.Existing(e.ref)}
	if err := s.expanded(pos); err != nil {
		return Place{}, err
	}
	if at, ok := s.places[key]; ok {
		return at, nil
	}
	hidden := func(v string) string {
		return mask(v, append([][]Variable{s.in.Predefined, s.in.Variables}, s.scoped...)...)
	}
	missing := failAt(pos, "rules:exists:project", "rules:exists:project `%s` is not a valid project path", hidden(key[0]))
	if s.in.Files == nil {
		return Place{}, missing
	}
	at, err := s.in.Files.Find(s.ctx, key[0], key[1])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Place{}, missing
	case err != nil:
		return Place{}, fmt.Errorf("find project %s: %w", hidden(key[0]), err)
	case at.Commit == "":
		return Place{}, failAt(pos, "rules:exists:ref", "rules:exists:ref `%s` is not a valid ref in project `%s`", hidden(key[1]), hidden(key[0]))
	}
	s.places[key] = at
	return at, nil
}

// expanded returns an error if the expansion of variables exceeded its budget: an error of
// the author of the file, unless the context has ended.
func (s *scope) expanded(pos Pos) error {
	err := s.expands.Err()
	if errors.Is(err, expand.ErrLimit) {
		return failAt(pos, "", "%s", err)
	}
	return err
}
