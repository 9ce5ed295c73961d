package markup

import (
	"path"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// lexerTable finds the lexer for a file name or language, with the same result as
// the library. The library matches a name against each pattern with each ignored
// suffix, which takes milliseconds and more than a millisecond per byte of the name.
// That is too slow: a comparison has many files, and the language of a code block
// may be long.
type lexerTable struct {
	languages map[string]chroma.Lexer // by name and alias, in lower case
	kinds     [2]patterns             // of primary and of alias patterns
}

// patterns are file name patterns with their lexers.
type patterns struct {
	names   map[string][]ranked // patterns without wildcards
	endings map[string][]ranked // *.ending, without the asterisk
	globs   []glob              // others
}

// ranked is a lexer with its priority and its order in the library.
type ranked struct {
	lexer    chroma.Lexer
	priority float32
	order    int
}

type glob struct {
	pattern string
	ranked
}

// maxLexerName is the maximum length of a name that is looked up: the limit of file
// names on most systems.
const maxLexerName = 255

// ignoredEndings are file name suffixes of backups and templates, which do not
// indicate the language: a.go.orig.
var ignoredEndings = []string{
	"~", ".bak", ".old", ".orig", ".dpkg-dist", ".dpkg-old", ".ucf-dist", ".ucf-new", ".ucf-old", ".rpmnew", ".rpmorig", ".rpmsave", ".in",
}

var lexerNames = sync.OnceValue(func() *lexerTable {
	t := &lexerTable{languages: map[string]chroma.Lexer{}}
	for i := range t.kinds {
		t.kinds[i] = patterns{names: map[string][]ranked{}, endings: map[string][]ranked{}}
	}
	for i, l := range lexers.GlobalLexerRegistry.Lexers {
		config := l.Config()
		for _, name := range append([]string{config.Name}, config.Aliases...) {
			t.languages[strings.ToLower(name)] = lexers.Get(name)
		}
		r := ranked{l, config.Priority, i}
		if r.priority == 0 {
			r.priority = 1
		}
		for kind, list := range [][]string{config.Filenames, config.AliasFilenames} {
			for _, pattern := range list {
				t.kinds[kind].add(pattern, r)
			}
		}
	}
	return t
})

func (p *patterns) add(pattern string, r ranked) {
	ending, ok := strings.CutPrefix(pattern, "*")
	switch {
	case !strings.ContainsAny(pattern, "*?[\\"):
		p.names[pattern] = append(p.names[pattern], r)
	case ok && strings.HasPrefix(ending, ".") && !strings.ContainsAny(ending, "*?[\\"):
		p.endings[ending] = append(p.endings[ending], r)
	default:
		p.globs = append(p.globs, glob{pattern, r})
	}
}

// language returns the lexer for a language name or file name extension, or nil.
func (t *lexerTable) language(name string) chroma.Lexer {
	if len(name) > maxLexerName {
		return nil
	}
	if l := t.languages[strings.ToLower(name)]; l != nil {
		return l
	}
	if l := t.find("x." + name); l != nil {
		return l
	}
	return t.find(name)
}

// find returns the lexer for a file, or nil.
func (t *lexerTable) find(file string) chroma.Lexer {
	name := path.Base(file)
	if len(name) > maxLexerName {
		return nil
	}
	for _, kind := range t.kinds {
		best := ranked{}
		kind.match(name, &best)
		for _, ending := range ignoredEndings {
			if stem, ok := strings.CutSuffix(name, ending); ok {
				kind.match(stem, &best)
			}
		}
		if best.lexer != nil {
			return best.lexer
		}
	}
	return nil
}

// match replaces best with the lexer for a name if that one ranks higher.
func (p *patterns) match(name string, best *ranked) {
	for _, r := range p.names[name] {
		r.better(best)
	}
	for i := range len(name) {
		if name[i] == '.' {
			for _, r := range p.endings[name[i:]] {
				r.better(best)
			}
		}
	}
	for _, g := range p.globs {
		if ok, err := path.Match(g.pattern, name); ok && err == nil {
			g.better(best)
		}
	}
}

func (r ranked) better(best *ranked) {
	if best.lexer == nil || r.priority > best.priority || r.priority == best.priority && r.order < best.order {
		*best = r
	}
}
