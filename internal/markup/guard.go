package markup

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The Markdown parser has no limits. The types in this file are hooks of the parser:
// they spend the budget, and reject input for which the work between two of their
// calls would be quadratic.

// maxDepth is the maximum nesting depth of blocks.
const maxDepth = 100

// countedReader counts how often the parser reads a line: once for each block that
// is open there.
type countedReader struct {
	text.Reader
	budget *budget
	line   int
	looks  int // reads of the line
}

// maxLooks is how often the parser may read a line. A block that opens there causes
// about ten reads.
const maxLooks = 20 * maxDepth

// PeekLine implements text.Reader.
func (r *countedReader) PeekLine() ([]byte, text.Segment) {
	r.budget.spend(1)
	if line, _ := r.Position(); line != r.line {
		r.line, r.looks = line, 0
	}
	if r.looks++; r.looks > maxLooks {
		panic(stop{errCostly})
	}
	return r.Reader.PeekLine()
}

// inlineGuard is called before the parsers of emphasis, links, code and HTML.
type inlineGuard struct {
	budget     *budget
	parent     ast.Node
	delimiters int // of parent
}

// maxDelimiters is the maximum number of emphasis delimiters in a block. The parser
// compares each with all delimiters before it.
const maxDelimiters = 5000

// Trigger implements parser.InlineParser.
func (g *inlineGuard) Trigger() []byte { return []byte("*_~[]!<`( ") }

// Parse implements parser.InlineParser. It consumes nothing.
func (g *inlineGuard) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	g.budget.spend(1)
	if parent != g.parent {
		g.parent, g.delimiters = parent, 0
		depth := 0
		for n := parent; n != nil; n = n.Parent() {
			if depth++; depth > maxDepth {
				panic(stop{errCostly})
			}
		}
	}
	switch block.Peek() {
	case '*', '_', '~':
		if g.delimiters++; g.delimiters > maxDelimiters {
			panic(stop{errCostly})
		}
	}
	return nil
}

// maxCells is the maximum number of cells in a table. The parser extends each row to
// the width of the first row.
const maxCells = 100_000

// tableGuard checks paragraphs before they become tables.
type tableGuard struct{ budget *budget }

// Transform implements parser.ParagraphTransformer. It changes nothing.
func (g tableGuard) Transform(p *ast.Paragraph, r text.Reader, _ parser.Context) {
	lines := p.Lines()
	g.budget.spend(1 + lines.Len())
	if lines.Len() < 2 {
		return
	}
	width := 1
	for i := range min(2, lines.Len()) {
		line := lines.At(i)
		width = max(width, 1+bytes.Count(line.Value(r.Source()), []byte("|")))
	}
	if width > 2 && width*lines.Len() > maxCells {
		panic(stop{errCostly})
	}
}

// mostOutput returns the maximum length of the HTML of a text. A link reference
// definition that is used many times makes the HTML much longer than the text.
func mostOutput(source int) int { return min(64<<10+25*source, 8<<20) }

// countedBuffer is a buffer of rendered HTML with a maximum size.
type countedBuffer struct {
	bytes.Buffer
	budget *budget
	most   int
}

// Write implements io.Writer.
func (w *countedBuffer) Write(p []byte) (int, error) {
	w.budget.spend(1)
	if w.Len()+len(p) > w.most {
		panic(stop{errCostly})
	}
	return w.Buffer.Write(p)
}

// Read implements io.Reader.
func (w *countedBuffer) Read(p []byte) (int, error) {
	w.budget.spend(1)
	return w.Buffer.Read(p)
}
