package markup

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The Markdown parser has no limits of its own. The types here are its hooks: they
// ask the budget, and refuse what would make the work grow with the square of the
// text between two of their calls.

// maxDepth is how deep blocks of a text may be nested.
const maxDepth = 100

// countedReader counts how often the parser looks at a line: once for each block
// that is open there.
type countedReader struct {
	text.Reader
	budget *budget
	line   int
	looks  int // at the line
}

// maxLooks is how often the parser may look at a line. A block that opens there
// costs some ten looks.
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

// maxDelimiters is how many signs of emphasis a block may have. The parser
// compares each with those before it.
const maxDelimiters = 5000

// Trigger implements parser.InlineParser.
func (g *inlineGuard) Trigger() []byte { return []byte("*_~[]!<`( ") }

// Parse implements parser.InlineParser. It takes nothing.
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

// maxCells is how many cells a table may have. The parser fills up each row to
// the width of the first.
const maxCells = 100_000

// tableGuard looks at paragraphs before they become tables.
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

// mostOutput is how long the HTML of a text may become: a definition that is used
// many times makes it much longer than the text.
func mostOutput(source int) int { return min(64<<10+25*source, 8<<20) }

// countedBuffer holds what is rendered, up to a number of bytes, and gives it to
// the next reader.
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
