package repo

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// FileMatch is a path that matches a search.
type FileMatch struct {
	Path  string
	At    []int // positions of the matched characters, in bytes
	score int
}

// FileMatches are the best matches of a search.
type FileMatches struct {
	Items []FileMatch
	Total int  // number of paths that match
	Files int  // number of paths that were searched
	Cut   bool // the revision has more files than are searched
}

const (
	// maxFindPaths is the maximum number of paths of a revision that are searched.
	maxFindPaths = 100_000
	// maxFindQuery is the maximum length of a search in bytes.
	maxFindQuery = 200
)

// pathList are the paths of a revision, as they are and in lower case.
type pathList struct {
	paths, lower []string
	cut          bool
}

// FindFiles returns the files of a revision whose paths match a text fuzzily:
// the characters of each word occur in the path in this order. The best matches
// come first, at most limit. Without a text all files match. Users who can read
// the code may call it. NotFound; Invalid for a text that is too long.
func (s *Service) FindFiles(ctx context.Context, by actor.Actor, ref project.Ref, rev, text string, limit int) (*FileMatches, error) {
	if len(text) > maxFindQuery {
		return nil, errs.Invalid("The search has more than %d characters.", maxFindQuery)
	}
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	commit, err := s.commitAt(ctx, p, r, rev)
	if err != nil {
		return nil, missing(err, "Ref")
	}
	list, err := listPaths(ctx, r, commit)
	if err != nil {
		return nil, missing(err, "Ref")
	}
	return list.find(text, limit), nil
}

func listPaths(ctx context.Context, r git.Repo, commit git.OID) (*pathList, error) {
	name := "paths " + string(commit)
	if kept, ok := r.Kept(name); ok {
		return kept.(*pathList), nil
	}
	paths, more, err := r.Paths(ctx, string(commit), maxFindPaths)
	if err != nil {
		return nil, err
	}
	list := &pathList{paths: paths, lower: make([]string, len(paths)), cut: more}
	size := 0
	for i, path := range paths {
		list.lower[i] = path
		if low := strings.ToLower(path); len(low) == len(path) { // otherwise positions would differ
			list.lower[i] = low
		}
		size += 2*len(path) + 32
	}
	r.Keep(name, list, size)
	return list, nil
}

// find searches the paths. It keeps at most twice the limit in memory.
func (l *pathList) find(text string, limit int) *FileMatches {
	words := strings.Fields(strings.ToLower(text))
	found := &FileMatches{Files: len(l.paths), Cut: l.cut, Items: []FileMatch{}}
	better := func(a, b FileMatch) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(a.Path), len(b.Path)), strings.Compare(a.Path, b.Path))
	}
	for i, low := range l.lower {
		score := 0
		for _, word := range words {
			n := matchScore(low, word)
			if n == 0 {
				score = -1
				break
			}
			score += n
		}
		if score < 0 {
			continue
		}
		found.Total++
		if len(words) == 0 && len(found.Items) == limit {
			continue // without a text all match equally, so the first ones are kept
		}
		found.Items = append(found.Items, FileMatch{Path: l.paths[i], score: score})
		if len(words) > 0 && len(found.Items) == 2*limit {
			slices.SortFunc(found.Items, better)
			found.Items = found.Items[:limit]
		}
	}
	if len(words) > 0 {
		slices.SortFunc(found.Items, better)
	}
	found.Items = found.Items[:min(len(found.Items), limit)]
	for i := range found.Items {
		m := &found.Items[i]
		low := m.Path
		if l := strings.ToLower(m.Path); len(l) == len(low) {
			low = l
		}
		for _, word := range words {
			m.At = append(m.At, matchAt(low, word)...)
		}
		slices.Sort(m.At)
		m.At = slices.Compact(m.At)
	}
	return found
}

// matchScore rates how well a word matches a path; 0 if it does not. The best match is the
// whole file name, then the start of the name, a part of the name, a part of the path, and
// finally single characters in order, which rate higher the closer they are.
func matchScore(path, word string) int {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch i := strings.Index(name, word); {
	case name == word:
		return 1000
	case i == 0:
		return 900
	case i > 0 && strings.IndexByte("-_. ", name[i-1]) >= 0:
		return 850
	case i > 0:
		return 800
	}
	// Most paths do not match, which is determined without allocating memory.
	if strings.Contains(path, word) {
		i := strings.LastIndex(path, word)
		if i == 0 || path[i-1] == '/' {
			return 700
		}
		return 600
	}
	if !inOrder(path, word) {
		return 0
	}
	at := fuzzyAt(path, word)
	if at == nil {
		return 0
	}
	score := 400
	for i, n := range at {
		switch {
		case i > 0 && n == at[i-1]+1:
			score += 12
		case n == 0 || strings.IndexByte("/-_. ", path[n-1]) >= 0:
			score += 8
		case i > 0:
			score -= min(n-at[i-1], 12)
		}
	}
	return min(max(score, 1), 590)
}

// inOrder reports whether the characters of a word are in a path, in order.
func inOrder(path, word string) bool {
	for i := range len(word) {
		at := strings.IndexByte(path, word[i])
		if at < 0 {
			return false
		}
		path = path[at+1:]
	}
	return true
}

// matchAt returns the positions in a path that a word matches.
func matchAt(path, word string) []int {
	from := strings.LastIndexByte(path, '/') + 1
	i := strings.Index(path[from:], word)
	if i >= 0 {
		i += from
	} else {
		i = strings.LastIndex(path, word)
	}
	if i < 0 {
		return fuzzyAt(path, word)
	}
	var at []int
	for n := range word {
		at = append(at, i+n)
	}
	return at
}

// fuzzyAt finds the characters of a word in a path, in order. It searches from the end,
// because file names are more significant than directories; nil if a character is missing.
func fuzzyAt(path, word string) []int {
	at := make([]int, 0, len(word))
	end := len(path)
	for len(word) > 0 {
		r, n := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-n]
		i := strings.LastIndex(path[:end], string(r))
		if i < 0 {
			return nil
		}
		at, end = append(at, i), i
	}
	slices.Reverse(at)
	return at
}
