package markup

import (
	"context"
	"errors"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Rewrite replaces references in a Markdown source, except in code and links, with the
// texts that resolve returns. References for which it returns none are not changed, and
// neither is a text that is too expensive to parse.
func Rewrite(ctx context.Context, source string, resolve func([]Reference) (map[Reference]string, error)) (string, error) {
	if candidate(source, 0) < 0 {
		return source, nil
	}
	var list []placed
	_, err := spending(ctx, scanLimits, func(b *budget) error {
		list = placedIn(b, source)
		return nil
	})
	if errors.Is(err, errCostly) || err == nil && len(list) == 0 {
		return source, nil
	} else if err != nil {
		return "", err
	}
	var asked []Reference
	seen := map[Reference]bool{}
	for _, p := range list {
		if !seen[p.ref] && len(asked) < maxReferences {
			seen[p.ref], asked = true, append(asked, p.ref)
		}
	}
	found, err := resolve(asked)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	done := 0
	for _, p := range list {
		if instead, ok := found[p.ref]; ok {
			out.WriteString(source[done:p.from] + instead)
			done = p.to
		}
	}
	return out.String() + source[done:], nil
}

// placed is a reference and its place in a source.
type placed struct {
	from, to int
	ref      Reference
}

// placedIn returns the references of a text in order.
func placedIn(b *budget, source string) []placed {
	var list []placed
	doc := engine(b, style{}, source).Parser().Parse(&countedReader{Reader: text.NewReader([]byte(source)), budget: b})
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if b.spend(1); !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link, *ast.Image, *ast.AutoLink, *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if previous, ok := n.PreviousSibling().(*ast.Text); ok && previous.Segment.Stop == n.Segment.Start {
				return ast.WalkContinue, nil // was read with the previous one
			}
			// The parser splits texts at characters that can have a meaning.
			at, end := n.Segment.Start, n.Segment.Stop
			for next, ok := n.NextSibling().(*ast.Text); ok && next.Segment.Start == end; next, ok = next.NextSibling().(*ast.Text) {
				end = next.Segment.Stop
			}
			for _, p := range split(source[at:end]) {
				if p.ref != nil && (at == 0 || source[at-1] != '\\') {
					list = append(list, placed{at, at + len(p.text), *p.ref})
				}
				at += len(p.text)
			}
		}
		return ast.WalkContinue, nil
	})
	return list
}
