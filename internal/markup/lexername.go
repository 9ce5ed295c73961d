package markup

import (
	"path"
	"strings"
	"sync"

	"svc/internal/lru"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// lexerTable finds the lexer for the name of a file. The library compares a
// name with every pattern that it knows, which takes milliseconds; a page of a
// comparison has many files, of few kinds.
type lexerTable struct {
	names map[string]bool // that a pattern is
	globs []string        // patterns that say more than how a name ends

	mu    sync.Mutex
	known *lru.Map[string, chroma.Lexer] // nil for plain text
}

// maxLexers bounds what is known: anyone can make files with new endings.
const maxLexers = 1000

var lexerNames = sync.OnceValue(func() *lexerTable {
	t := &lexerTable{names: map[string]bool{}, known: lru.New[string, chroma.Lexer](maxLexers, nil)}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		config := l.Config()
		for _, pattern := range append(append([]string(nil), config.Filenames...), config.AliasFilenames...) {
			rest, ending := strings.CutPrefix(pattern, "*.")
			switch {
			case !strings.ContainsAny(pattern, "*?["):
				t.names[pattern] = true
			case !ending || strings.ContainsAny(rest, ".*?["):
				t.globs = append(t.globs, pattern)
			}
		}
	}
	return t
})

// find returns the lexer for a file, nil if there is none.
func (t *lexerTable) find(file string) chroma.Lexer {
	name := path.Base(file)
	kind := "x" + path.Ext(name)
	if t.special(name) {
		kind = name
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.known.Get(kind)
	if !ok {
		l = lexers.Match(kind)
		t.known.Put(kind, l, 1)
	}
	return l
}

// special reports whether more than the ending of a name counts.
func (t *lexerTable) special(name string) bool {
	if t.names[name] {
		return true
	}
	for _, glob := range t.globs {
		if ok, err := path.Match(glob, name); ok && err == nil {
			return true
		}
	}
	return false
}
