package codesearch

import (
	"errors"
	"regexp/syntax"
	"strings"

	"github.com/sourcegraph/zoekt/query"

	"svc/internal/errs"
	"svc/internal/re2"
)

// Query is a search.
type Query struct {
	ProjectID int64 // 0: all projects
	GroupID   int64 // projects of a group and its subgroups; 0: all
	Live      bool  // without archived projects
	NoForks   bool

	Text      string // in a line or path; empty selects files by the filters
	Regex     bool   // Text is a regular expression
	Case      bool   // a and A are different
	Paths     []Path
	Languages []Language
	Context   int // lines before and after a match
}

// Path is a condition on the path of a file.
type Path struct {
	Expr string // a regular expression
	Not  bool
}

// Language is a condition on the language of a file.
type Language struct {
	Name string // as package git calls it
	Not  bool
}

// maxExpr is the number of bytes of a regular expression.
const maxExpr = 1000

// maxExprSteps is how many steps an expression may have: a file is searched at once,
// and takes some 15 ns for each step and byte.
const maxExprSteps = 500

// exprFlags are those of zoekt: a dot does not match a line break.
const exprFlags = syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups

// parse returns the query for zoekt. Invalid for a bad regular expression.
func (q Query) parse() (query.Q, error) {
	var all []query.Q
	switch {
	case q.Text == "":
	case q.Regex:
		re, err := parseExpr(q.Text)
		if err != nil {
			return nil, err
		}
		all = append(all, &query.Regexp{Regexp: re, CaseSensitive: q.Case})
	case strings.ContainsAny(q.Text, "\n\x00"):
		all = append(all, &query.Const{Value: false}) // no line has it
	default:
		all = append(all, &query.Substring{Pattern: q.Text, CaseSensitive: q.Case})
	}
	for _, p := range q.Paths {
		re, err := parseExpr(p.Expr)
		if err != nil {
			return nil, err
		}
		all = append(all, not(p.Not, &query.Regexp{Regexp: re, FileName: true}))
	}
	for _, l := range q.Languages {
		all = append(all, not(l.Not, &query.Language{Language: l.Name}))
	}
	if len(all) == 0 {
		return nil, errs.Invalid("search is empty")
	}
	return query.Simplify(query.NewAnd(all...)), nil
}

func not(is bool, q query.Q) query.Q {
	if is {
		return &query.Not{Child: q}
	}
	return q
}

// parseExpr parses a regular expression. Invalid with the reason.
func parseExpr(text string) (*syntax.Regexp, error) {
	if len(text) > maxExpr {
		return nil, errs.Invalid("The regular expression is too long (maximum is %d bytes)", maxExpr)
	}
	re, err := syntax.Parse(text, exprFlags)
	if err != nil {
		reason := err.Error()
		if e, ok := errors.AsType[*syntax.Error](err); ok {
			reason = string(e.Code)
			if e.Expr != "" {
				reason += ": " + e.Expr
			}
		}
		return nil, errs.Invalid("The regular expression is invalid: %s", reason)
	}
	if re2.StepsOf(re) > maxExprSteps {
		return nil, errs.Invalid("The regular expression has too many repetitions")
	}
	if matchesEmpty(re) {
		return nil, errs.Invalid("The regular expression is invalid: it matches every line")
	}
	return re, nil
}

// matchesEmpty reports whether an expression matches the empty text, and so every
// line of every file.
func matchesEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || matchesEmpty(re.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return matchesEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !matchesEmpty(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if matchesEmpty(sub) {
				return true
			}
		}
	}
	return false
}
