package markup

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	tasks "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Tasks returns for each checkbox in the task lists of a text whether it is
// checked, in order. A text that is too expensive to render has none.
func (r *Renderer) Tasks(ctx context.Context, source string) ([]bool, error) {
	if !strings.Contains(source, "[") {
		return nil, nil
	}
	found, err := r.render(ctx, sumOf("tasks", source), func(b *budget) (string, error) {
		var signs strings.Builder
		for _, at := range tasksIn(b, source) {
			signs.WriteByte(source[at])
		}
		return signs.String(), nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]bool, len(found.html))
	for i := range list {
		list[i] = ticked(found.html[i])
	}
	return list, nil
}

// SetTask checks or unchecks the nth checkbox of a text, counted from 0. It returns
// false if there is no such checkbox, or if it already has this state, for example
// because of a concurrent change.
func SetTask(ctx context.Context, source string, n int, done bool) (string, bool) {
	list := findTasks(ctx, source)
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

// findTasks returns the offsets of the characters in the checkboxes of a text. A
// text that is too expensive to render has none.
func findTasks(ctx context.Context, source string) []int {
	var list []int
	_, err := spending(ctx, scanLimits, func(b *budget) error {
		list = tasksIn(b, source)
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}

func tasksIn(b *budget, source string) []int {
	var list []int
	doc := engine(b, style{}, source).Parser().Parse(&countedReader{Reader: text.NewReader([]byte(source)), budget: b})
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if b.spend(1); !entering || n.Kind() != tasks.KindTaskCheckBox || n.Parent().Lines().Len() == 0 {
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

// marks generates placeholders for the checkboxes of a text, because the sanitizer
// would remove the checkboxes. They contain a secret, so that users cannot write
// them.
type marks struct {
	secret string
	count  int
}

func (m *marks) put(w util.BufWriter, done bool) {
	sign := "o"
	if done {
		sign = "x"
	}
	_, _ = w.WriteString("\uE0F0" + m.secret + sign + strconv.Itoa(m.count) + "\uE0F1")
	m.count++
}

// fill replaces the placeholders with checkboxes.
func (m *marks) fill(html string, box func(n int, done bool) string) string {
	return regexp.MustCompile("\uE0F0"+m.secret+"([ox])([0-9]+)\uE0F1").ReplaceAllStringFunc(html, func(mark string) string {
		mark = strings.TrimSuffix(strings.TrimPrefix(mark, "\uE0F0"+m.secret), "\uE0F1")
		n, _ := strconv.Atoi(mark[1:]) // only digits match
		return box(n, mark[0] == 'x')
	})
}
