package markup

import (
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// The lexers of the library are state machines of backtracking regular expressions.
// A match may take quadratic time or worse, and a lexer cannot be canceled: a match
// that takes more than 250 ms counts as no match, and the next rule is tried.
// Therefore this file runs the rules in its own loop, which checks a budget before
// each match.

// matchTime is how long a regular expression may run before the budget is checked
// again, in wall-clock time. A match that exceeds it is retried within the budget,
// because it may be slow only due to the load of the machine.
const matchTime = 50 * time.Millisecond

// switchedOff are the lexers that are not used, with the reason.
var switchedOff = map[string]string{
	"Raku": "its rules scan the text and run other lexers themselves, out of reach of the budget",
}

// session is a set of lexers that share one budget. One goroutine uses it at a
// time.
type session struct {
	library  *library
	budget   *budget
	registry *chroma.LexerRegistry
	known    map[chroma.Lexer]chroma.Lexer // from library lexers to bounded ones; nil if switched off
}

func (y *library) session() *session {
	s := &session{library: y, registry: chroma.NewLexerRegistry(), known: map[chroma.Lexer]chroma.Lexer{}}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		if own := s.bounded(l); own != nil {
			s.registry.Register(named{own})
		}
	}
	return s
}

// named is a lexer that other lexers find only by its name and aliases. The library
// would also match the language of an embedded text against file name patterns,
// without a budget.
type named struct{ chroma.Lexer }

// Config implements chroma.Lexer.
func (n named) Config() *chroma.Config {
	config := *n.Lexer.Config()
	config.Filenames, config.AliasFilenames = nil, nil
	return &config
}

// bounded returns a lexer that runs the rules of a library lexer within the budget,
// or nil if the lexer is not supported or switched off.
func (s *session) bounded(l chroma.Lexer) chroma.Lexer {
	own, ok := s.known[l]
	if ok {
		return own
	}
	if own = s.bind(l); own == nil || switchedOff[l.Config().Name] != "" {
		own = nil
	}
	s.known[l] = own
	return own
}

func (s *session) bind(l chroma.Lexer) chroma.Lexer {
	if r, ok := l.(*chroma.RegexLexer); ok {
		return &boundedLexer{Lexer: r, session: s, rules: s.library.rulesOf(r)}
	}
	// The other types wrap lexers, which are in their fields.
	parts := func(names ...string) []chroma.Lexer {
		var list []chroma.Lexer
		for _, name := range names {
			part, ok := field[chroma.Lexer](l, name)
			if !ok {
				return nil
			}
			if part = s.bounded(part); part == nil {
				return nil
			}
			list = append(list, part)
		}
		return list
	}
	if p := parts("root", "language"); p != nil {
		return chroma.DelegatingLexer(p[0], p[1])
	}
	if p := parts("lexer"); p != nil {
		if mapper, ok := field[func(chroma.Token) []chroma.Token](l, "mapper"); ok {
			return chroma.RemappingLexer(p[0], mapper)
		}
	}
	if p := parts("Lexer"); p != nil { // Markdown and HTTP, without embedded languages
		return p[0]
	}
	return nil
}

// field returns an unexported field of a struct of the library. It returns false if
// there is no such field of type T.
func field[T any](of any, name string) (T, bool) {
	var none T
	v := reflect.ValueOf(of)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return none, false
	}
	f := v.Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return none, false
	}
	value, ok := reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Interface().(T)
	return value, ok
}

// compiled returns the compiled rules of a lexer, which all sessions share. They are
// compiled on first use, because compiling the rules of all lexers takes seconds.
type compiled func() (chroma.CompiledRules, error)

// library holds the rules of all lexers.
type library struct {
	mu    sync.Mutex
	rules map[*chroma.RegexLexer]compiled
}

func (y *library) rulesOf(l *chroma.RegexLexer) compiled {
	y.mu.Lock()
	defer y.mu.Unlock()
	if c, ok := y.rules[l]; ok {
		return c
	}
	if y.rules == nil {
		y.rules = map[*chroma.RegexLexer]compiled{}
	}
	c := sync.OnceValues(func() (chroma.CompiledRules, error) { return compile(l) })
	y.rules[l] = c
	return c
}

// compile returns the compiled rules of a lexer. The library does not export them,
// so compile creates a copy of the lexer with a mutator that receives them.
func compile(l *chroma.RegexLexer) (chroma.CompiledRules, error) {
	raw, err := l.Rules()
	if err != nil {
		return nil, err
	}
	raw = raw.Clone()
	for state, list := range raw {
		for i, rule := range list {
			raw[state][i] = tame(l.Config().Name, rule)
		}
	}
	var taken taker
	raw[takerState] = []chroma.Rule{{Pattern: `(?!)`, Type: chroma.Text, Mutator: &taken}}
	same, err := chroma.NewLexer(l.Config(), func() chroma.Rules { return raw })
	if err != nil {
		return nil, err
	}
	if _, err := same.Rules(); err != nil {
		return nil, err
	}
	for _, list := range taken.rules {
		for _, rule := range list {
			if rule.Regexp != nil {
				rule.Regexp.MatchTimeout = matchTime
			}
		}
	}
	return taken.rules, nil
}

// tame replaces rules that run another lexer without looking it up by name, because
// that lexer would not have a budget.
func tame(lexer string, r chroma.Rule) chroma.Rule {
	switch {
	case lexer == "Go" && strings.HasPrefix(r.Pattern, "(`)"): // a template in a string
		r.Type = chroma.ByGroups(chroma.LiteralString, chroma.LiteralString, chroma.LiteralString)
	case lexer == "reStructuredText":
		if _, ok := r.Type.(chroma.EmitterFunc); ok { // a block of code
			r.Type = chroma.LiteralString
		}
	}
	return r
}

const takerState = "svc: compiled rules"

// taker is a mutator that receives the rules of a lexer when they are compiled.
type taker struct{ rules chroma.CompiledRules }

// Mutate implements chroma.Mutator; its rule never matches.
func (*taker) Mutate(*chroma.LexerState) error { return nil }

// MutateLexer implements chroma.LexerMutator.
func (t *taker) MutateLexer(rules chroma.CompiledRules, state string, rule int) error {
	t.rules = rules
	rules[state][rule].Mutator = nil // once is enough
	return nil
}

// boundedLexer runs the rules of a lexer within the budget of its session.
type boundedLexer struct {
	chroma.Lexer
	session *session
	rules   compiled
	self    *chroma.RegexLexer // see standIn; created on first use
}

// SetRegistry implements chroma.Lexer. It does nothing: the lexer uses the registry
// of its session.
func (l *boundedLexer) SetRegistry(*chroma.LexerRegistry) chroma.Lexer { return l }

// Tokenise implements chroma.Lexer.
func (l *boundedLexer) Tokenise(o *chroma.TokeniseOptions, source string) (chroma.Iterator, error) {
	rules, err := l.rules()
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &chroma.TokeniseOptions{State: "root", EnsureLF: true}
	}
	if o.EnsureLF {
		source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	}
	l.session.budget.spend(1 + len(source)/100)
	r := &run{budget: l.session.budget, first: o.State}
	if !o.Nested && l.Config().EnsureNL && !strings.HasSuffix(source, "\n") {
		source += "\n"
		r.added = 1
	}
	if l.self == nil {
		l.self = l.standIn(rules)
	}
	r.state = &chroma.LexerState{
		Lexer: l.self, Registry: l.session.registry, Text: []rune(source), Rules: rules,
		Stack: []string{o.State}, MutatorContext: map[any]any{},
	}
	return r.next, nil
}

// standIn returns a lexer of the library's type that calls l, for rules that lex a
// part of a match with the same lexer. In each state it has one rule, which matches
// the whole text.
func (l *boundedLexer) standIn(rules chroma.CompiledRules) *chroma.RegexLexer {
	all := chroma.EmitterFunc(func(groups []string, s *chroma.LexerState) chroma.Iterator {
		it, err := l.Tokenise(&chroma.TokeniseOptions{State: s.State, Nested: true}, groups[0])
		if err != nil {
			panic(stop{errCostly})
		}
		return it
	})
	states := chroma.Rules{}
	for state := range maps.Keys(rules) {
		states[state] = []chroma.Rule{{Pattern: `[\s\S]+`, Type: all}}
	}
	return chroma.MustNewLexer(&chroma.Config{Name: l.Config().Name}, func() chroma.Rules { return states })
}

// run is the state of a lexer that tokenizes one text. It replaces
// chroma.LexerState.Iterator.
type run struct {
	budget *budget
	state  *chroma.LexerState
	first  string // state
	added  int    // 1 if a line feed was added to the text
	inner  []chroma.Iterator
}

func (r *run) next() chroma.Token {
	s := r.state
	for s.Pos < len(s.Text)-r.added && len(s.Stack) > 0 {
		if t, ok := r.emitted(); ok {
			return t
		}
		s.State = s.Stack[len(s.Stack)-1]
		rule := r.match(s.Rules[s.State])
		if rule == nil {
			if s.Text[s.Pos] == '\n' && s.State != r.first {
				s.Stack = []string{r.first}
				continue
			}
			s.Pos++
			return chroma.Token{Type: chroma.Error, Value: string(s.Text[s.Pos-1 : s.Pos])}
		}
		s.Pos += utf8.RuneCountInString(s.Groups[0])
		if rule.Mutator != nil {
			if rule.Mutator.Mutate(s) != nil {
				panic(stop{errCostly}) // a bug of the lexer
			}
		}
		if rule.Type != nil {
			r.inner = append(r.inner, rule.Type.Emit(s.Groups, s))
		}
	}
	if t, ok := r.emitted(); ok {
		return t
	}
	if s.Pos != len(s.Text) && len(s.Stack) == 0 {
		rest := string(s.Text[s.Pos:])
		s.Pos = len(s.Text)
		return chroma.Token{Type: chroma.Error, Value: rest}
	}
	return chroma.EOF
}

// emitted returns the next token that the last rules emitted, or false if there is
// none.
func (r *run) emitted() (chroma.Token, bool) {
	for len(r.inner) > 0 {
		last := len(r.inner) - 1
		r.budget.spend(1)
		switch t := r.inner[last](); {
		case t.Type == chroma.Ignore:
		case t == chroma.EOF:
			r.inner = r.inner[:last]
		default:
			return t, true
		}
	}
	return chroma.EOF, false
}

// match returns the first rule that matches, or nil, and sets the groups of the
// match.
func (r *run) match(rules []*chroma.CompiledRule) *chroma.CompiledRule {
	s := r.state
	for i, rule := range rules {
		r.budget.spend(1)
		m, err := rule.Regexp.FindRunesMatchStartingAt(s.Text, s.Pos)
		for err != nil { // it took longer than matchTime
			r.budget.look()
			r.budget.spend(r.budget.limits.Steps / 1000)
			m, err = rule.Regexp.FindRunesMatchStartingAt(s.Text, s.Pos)
		}
		if m == nil || m.RuneIndex != s.Pos {
			continue
		}
		groups := m.Groups()
		s.Rule, s.Groups, s.NamedGroups = i, make([]string, len(groups)), make(map[string]string, len(groups))
		for n, g := range groups {
			s.Groups[n] = g.String()
			s.NamedGroups[g.Name] = s.Groups[n]
		}
		return rule
	}
	return nil
}
