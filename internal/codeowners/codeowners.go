// Package codeowners parses CODEOWNERS files and finds the owners of paths.
//
// Anyone who can push can write the file, so its size, the number of its entries and
// the time of matching are limited.
package codeowners

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Paths returns the paths of the file in a repository, in the order in which they
// are searched.
func Paths() []string { return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"} }

// The limits of a file. What exceeds them is ignored.
const (
	// MaxSize is the maximum number of bytes that are read.
	MaxSize    = 256 << 10
	maxEntries = 2000 // entries and headings
	maxOwners  = 100  // of an entry
	maxPattern = 1024 // bytes of a pattern
	maxName    = 255  // bytes of the name of a section
	// MaxApprovals is the maximum number of approvals that a section can require.
	MaxApprovals = 100
)

// File is a parsed CODEOWNERS file.
type File struct {
	Sections []*Section
	byName   map[string]*Section // by lowercase name
}

// Section is a group of entries. The entries before the first heading are in a
// section without a name.
type Section struct {
	Name      string
	Optional  bool  // approvals are not required
	Approvals int64 // required by each rule of the section
	Entries   []*Entry
	owners    []string // default owners of the entries
}

// Required returns the number of approvals that a rule of the section requires.
func (s *Section) Required() int64 {
	if s.Optional {
		return 0
	}
	return s.Approvals
}

// Entry is a line of a file: a pattern, and the owners of the paths that match.
type Entry struct {
	Section *Section
	Pattern string // as in the file
	Owners  Owners
	exclude bool
	parts   []string
}

// Owners are the owners of an entry: users and groups by name, users by email
// address, and roles.
type Owners struct {
	Names  []string // without @, in the order of the file
	Emails []string
	Roles  []string // developer, maintainer or owner
}

// Empty reports whether there are no owners.
func (o Owners) Empty() bool { return len(o.Names)+len(o.Emails)+len(o.Roles) == 0 }

// Parse parses a file. Invalid lines are ignored.
func Parse(text string) *File {
	if len(text) > MaxSize {
		text = text[:MaxSize]
	}
	f := &File{byName: map[string]*Section{}}
	at, lines := f.section(""), 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
		if line == "" || line[0] == '#' {
			continue
		}
		if lines == maxEntries {
			break
		}
		lines++
		if h, ok := heading(line); ok {
			at = f.section(h.Name)
			first := at.Approvals == 0
			at.Optional = h.Optional && (first || at.Optional)
			at.Approvals = max(at.Approvals, h.Approvals)
			at.owners = h.owners
			continue
		}
		if e := entry(at, line); e != nil {
			at.add(e)
		}
	}
	if s := f.Sections[0]; len(s.Entries) == 0 {
		f.Sections = f.Sections[1:]
	}
	return f
}

// section returns the section with a name, ignoring case.
func (f *File) section(name string) *Section {
	key := strings.ToLower(name)
	if s := f.byName[key]; s != nil {
		return s
	}
	s := &Section{Name: name}
	if name == "" {
		s.Approvals = 1
	}
	f.Sections, f.byName[key] = append(f.Sections, s), s
	return s
}

// heading parses a line like ^[Name][2] @owner.
func heading(line string) (s Section, ok bool) {
	line, s.Optional = strings.CutPrefix(line, "^")
	if !strings.HasPrefix(line, "[") {
		return s, false
	}
	name, rest, found := strings.Cut(line[1:], "]")
	name = strings.TrimSpace(name)
	if !found || name == "" || len(name) > maxName {
		return s, false
	}
	s.Name, s.Approvals = name, 1
	if count, after, ok := strings.Cut(rest, "]"); ok && strings.HasPrefix(count, "[") {
		n, err := strconv.ParseInt(count[1:], 10, 64)
		if err != nil || n < 0 {
			return s, false
		}
		s.Approvals, rest = min(max(n, 1), MaxApprovals), after
	}
	if rest != "" && !unicode.IsSpace(rune(rest[0])) {
		return s, false // a pattern with a character class
	}
	s.owners = words(rest)
	return s, true
}

// add adds an entry. It replaces an earlier entry with the same pattern.
func (s *Section) add(e *Entry) {
	s.Entries = slices.DeleteFunc(s.Entries, func(was *Entry) bool { return was.Pattern == e.Pattern && was.exclude == e.exclude })
	s.Entries = append(s.Entries, e)
}

// entry parses a line with a pattern and owners; nil if it is not valid.
func entry(in *Section, line string) *Entry {
	e := &Entry{Section: in}
	line, e.exclude = strings.CutPrefix(line, "!")
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if line[i] == ' ' || line[i] == '\t' {
			end = i
			break
		}
	}
	e.Pattern = line[:end]
	if e.Pattern == "" || len(e.Pattern) > maxPattern {
		return nil
	}
	e.parts = split(e.Pattern)
	owners := words(line[end:])
	if len(owners) == 0 {
		owners = in.owners
	}
	e.Owners = parseOwners(owners)
	return e
}

// words returns the words of a line before a comment.
func words(text string) []string {
	list := strings.Fields(text)
	if at := slices.IndexFunc(list, func(word string) bool { return word[0] == '#' }); at >= 0 {
		list = list[:at]
	}
	return list[:min(len(list), maxOwners)]
}

// parseOwners parses references to owners. Other words are ignored.
func parseOwners(list []string) (o Owners) {
	add := func(to *[]string, word string) {
		if !slices.Contains(*to, word) {
			*to = append(*to, word)
		}
	}
	for _, word := range list {
		switch {
		case strings.HasPrefix(word, "@@"):
			role := strings.TrimSuffix(strings.ToLower(word[2:]), "s")
			if role == "developer" || role == "maintainer" || role == "owner" {
				add(&o.Roles, role)
			}
		case strings.HasPrefix(word, "@"):
			if name := strings.Trim(word[1:], "/"); name != "" && len(name) <= maxPattern {
				add(&o.Names, name)
			}
		case strings.Contains(word, "@"):
			add(&o.Emails, strings.ToLower(word))
		}
	}
	return o
}

// maxSteps limits the time to find the owners of paths to about a second.
const maxSteps = 100_000_000

// Owning returns the entries that own a path, at most one of each section: the last
// match, unless an exclusion matches. The path has no leading slash.
func (f *File) Owning(path string) []*Entry {
	steps := maxSteps
	return f.owning(path, &steps)
}

func (f *File) owning(path string, steps *int) []*Entry {
	var found []*Entry
	names := strings.Split(path, "/")
	for _, s := range f.Sections {
		*steps--
		if e := s.owning(names, steps); e != nil && !e.Owners.Empty() {
			found = append(found, e)
		}
	}
	return found
}

func (s *Section) owning(names []string, steps *int) (owning *Entry) {
	for _, e := range slices.Backward(s.Entries) {
		*steps--
		if owning != nil && !e.exclude || !matchParts(e.parts, names, steps) {
			continue
		}
		if e.exclude {
			return nil
		}
		owning = e
	}
	return owning
}

// OwnedPath is a path with the entries that own it.
type OwnedPath struct {
	Path    string
	Entries []*Entry
}

// OwnedPaths returns the paths that have owners. ok is false if the step limit is
// exceeded; the caller must then treat all paths as owned.
func (f *File) OwnedPaths(paths []string) (list []OwnedPath, ok bool) {
	steps := maxSteps
	for _, path := range paths {
		if entries := f.owning(path, &steps); len(entries) > 0 {
			list = append(list, OwnedPath{path, entries})
		}
		if steps < 0 {
			return nil, false
		}
	}
	return list, true
}

// Matching returns the entries that own any of the paths, in the order of the file.
// If the step limit is exceeded, it returns all entries with owners, so that a slow
// file cannot bypass approval by owners.
func (f *File) Matching(paths []string) []*Entry {
	owning, steps := map[*Entry]bool{}, maxSteps
	for _, path := range paths {
		for _, e := range f.owning(path, &steps) {
			owning[e] = true
		}
		if steps < 0 {
			break
		}
	}
	var found []*Entry
	for _, s := range f.Sections {
		for _, e := range s.Entries {
			if owning[e] || steps < 0 && !e.exclude && !e.Owners.Empty() {
				found = append(found, e)
			}
		}
	}
	return found
}
