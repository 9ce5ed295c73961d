package markup

import (
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	tasks "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Tasks tells of the boxes in the lists of tasks of a text, in their order,
// whether each is ticked.
func Tasks(source string) []bool {
	var list []bool
	for _, at := range findTasks(source) {
		list = append(list, ticked(source[at]))
	}
	return list
}

// SetTask ticks the nth box of a text, counted from 0, or takes the tick away.
// It is false when there is no such box, or when it is so already: somebody was
// faster.
func SetTask(source string, n int, done bool) (string, bool) {
	list := findTasks(source)
	if n < 0 || n >= len(list) {
		return source, false
	}
	at, sign := list[n], " "
	if done {
		sign = "x"
	}
	if done == ticked(source[at]) {
		return source, false
	}
	return source[:at] + sign + source[at+1:], true
}

func ticked(sign byte) bool { return sign == 'x' || sign == 'X' }

// findTasks gives where the signs of the boxes stand.
func findTasks(source string) []int {
	doc := engine(Options{}, nil).Parser().Parse(text.NewReader([]byte(source)))
	var list []int
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Kind() != tasks.KindTaskCheckBox || n.Parent().Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		start := n.Parent().Lines().At(0).Start
		if open := strings.IndexByte(source[start:], '['); open >= 0 && start+open+1 < len(source) {
			list = append(list, start+open+1)
		}
		return ast.WalkContinue, nil
	})
	return list
}

// marks stand for the boxes of a text until it has been cleaned: what a box
// becomes would not pass. Nobody who writes a text can know them.
type marks struct {
	secret string
	count  int
}

func newMarks() *marks { return &marks{secret: rand.Text()} }

func (m *marks) put(w util.BufWriter, done bool) {
	sign := "o"
	if done {
		sign = "x"
	}
	_, _ = w.WriteString("\uE0F0" + m.secret + sign + strconv.Itoa(m.count) + "\uE0F1")
	m.count++
}

// fill puts boxes where the marks are.
func (m *marks) fill(html string, box func(n int, done bool) string) string {
	return regexp.MustCompile("\uE0F0"+m.secret+"([ox])([0-9]+)\uE0F1").ReplaceAllStringFunc(html, func(mark string) string {
		mark = strings.TrimSuffix(strings.TrimPrefix(mark, "\uE0F0"+m.secret), "\uE0F1")
		n, _ := strconv.Atoi(mark[1:]) // only digits match
		return box(n, mark[0] == 'x')
	})
}
