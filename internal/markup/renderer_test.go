package markup

import (
	"context"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2/lexers"

	"svc/internal/limit"
	"svc/internal/waittest"
)

// few limits only the steps, so that tests do not depend on the speed of the
// machine.
var few = Limits{CPU: time.Hour, Steps: 200_000}

// TestLexersAreBounded runs each lexer on texts that can take quadratic time. All
// lexers must stop within the budget, or be in switchedOff.
func TestLexersAreBounded(t *testing.T) {
	t.Parallel()
	const parts = 8 // compiling the rules of all lexers takes a minute with the race detector
	for part := range parts {
		t.Run(fmt.Sprintf("part %d", part), func(t *testing.T) {
			t.Parallel()
			var y library
			s := y.session()
			for i, l := range lexers.GlobalLexerRegistry.Lexers {
				name := l.Config().Name
				if i%parts != part || testing.Short() && i%10 != 0 {
					continue
				}
				if s.bounded(l) == nil {
					if switchedOff[name] == "" {
						t.Errorf("%s is out of reach of the budget", name)
					}
					continue
				}
				checkLexer(t, s, name, "a(\"<{[#$`'/*", 1<<10)
			}
		})
	}
	for name := range switchedOff {
		if lexers.Get(name) == nil {
			t.Errorf("%s is switched off, and there is no such lexer", name)
		}
	}
}

// checkLexer checks that a lexer stops within a small budget.
func checkLexer(t *testing.T, s *session, name, piece string, size int) {
	t.Helper()
	source := strings.Repeat(piece, size/len(piece)+1)
	limits := Limits{CPU: time.Second, Steps: 20_000}
	var b *budget
	cost, err := spending(t.Context(), limits, func(own *budget) error {
		b = own
		if lines, ok := s.highlight(own, lexers.Get(name), source); !ok || len(lines) == 0 {
			return fmt.Errorf("no lines")
		}
		return nil
	})
	if err != nil && !errors.Is(err, errCostly) {
		t.Errorf("%s, %q: %v", name, piece, err)
	}
	// The first step over the limit stops the lexer. A running match does not count
	// steps: it is stopped by its time limit.
	if b.steps > limits.Steps+limits.Steps/1000+len(source) || cost > limits.CPU+10*time.Second {
		t.Errorf("%s, %q: %d steps, %v", name, piece, b.steps, cost)
	}
}

// FuzzLexers searches for texts for which a lexer exceeds its budget.
func FuzzLexers(f *testing.F) {
	var y library
	s := y.session()
	for i := 0; i < len(lexers.GlobalLexerRegistry.Lexers); i += 40 { // TestLexersAreBounded has all of them
		f.Add(uint16(i), "a(\"<{[#$`'/*")
	}
	f.Fuzz(func(t *testing.T, which uint16, piece string) {
		l := lexers.GlobalLexerRegistry.Lexers[int(which)%len(lexers.GlobalLexerRegistry.Lexers)]
		if piece == "" || s.bounded(l) == nil {
			return
		}
		checkLexer(t, s, l.Config().Name, piece, 16<<10)
	})
}

// costlyMarkdown returns texts for which a Markdown parser without limits needs
// quadratic time or memory.
func costlyMarkdown(size int) map[string]string {
	all := func(s string) string { return strings.Repeat(s, size/len(s)+1) }
	var ticks strings.Builder
	for i := 1; ticks.Len() < size; i++ {
		ticks.WriteString("e" + strings.Repeat("`", i))
	}
	return map[string]string{
		"open links": all("[a]("), "open destinations": all("[a](<b"), "brackets": all("["), "images": all("!["),
		"emphasis": all("*a _b "), "closers": all("a_ "), "strikethrough": all("~a ~~b "),
		"quotes": all(">"), "quotes with tabs": all(">\t"), "lists": all("- "), "ordered lists": all("1. "),
		"backticks": ticks.String(), "comments": all("<!--"), "instructions": all("a <?"), "attributes": all("a <a b=\""),
		"addresses": all("www."), "footnotes": all("[^1]: a\n"),
		"long definition": "[a]: " + strings.Repeat("x", size/2) + "\n\n" + strings.Repeat("[a]", size/6),
		"wide table":      strings.Repeat("|a", size/8) + "\n" + strings.Repeat("|-", size/8) + "\n" + strings.Repeat("|\n", size/4),
		"references":      all("#1 @a ~\"b"),
		"formulas":        all("$a "), "open formulas": all("$$a "), "code formulas": all("$`a "), "emoji": all(":a"), "wiki links": all("[[a|"), "alerts": all("> [!note] a\n\n"), "contents": all("[TOC]\n\n# a\n\n"), "own addresses": all("<img src=\"a\" "),
	}
}

// TestMarkdownIsBounded checks that rendering texts with quadratic cost is stopped.
func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	for name, source := range costlyMarkdown(32 << 10) {
		checkMarkdown(t, name, source)
	}
	// A usual text is rendered.
	html, err := New(Deps{}).Markdown(t.Context(), strings.Repeat("> *a* [b](c) `d`\n\n", 1000), Options{})
	if err != nil || !strings.Contains(html, "<em>a</em>") {
		t.Errorf("%.100q, %v", html, err)
	}
}

func checkMarkdown(t *testing.T, name, source string) {
	t.Helper()
	limits := Limits{CPU: time.Second, Steps: 100_000}
	var b *budget
	cost, err := spending(t.Context(), limits, func(own *budget) error {
		b = own
		safe, err := markdown(own, source, style{link: func(to string, _ bool) string { return to }, wiki: true})
		if len(safe) > 4*mostOutput(len(source)) {
			t.Errorf("%s: %d bytes become %d", name, len(source), len(safe))
		}
		return err
	})
	if err != nil && !errors.Is(err, errCostly) {
		t.Errorf("%s: %v", name, err)
	}
	if b.steps > limits.Steps+len(source) || cost > limits.CPU+10*time.Second {
		t.Errorf("%s: %d steps, %v", name, b.steps, cost)
	}
}

// FuzzMarkdownWork searches for texts that exceed their budget.
func FuzzMarkdownWork(f *testing.F) {
	for _, source := range costlyMarkdown(20) {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, piece string) {
		if piece != "" {
			checkMarkdown(t, piece, strings.Repeat(piece, 32<<10/len(piece)+1))
		}
	})
}

// TestCostlyCodeIsPlain checks that expensive code is returned as plain lines, and
// that it is highlighted only once.
func TestCostlyCodeIsPlain(t *testing.T) {
	t.Parallel()
	r := New(Deps{Limits: few})
	for range 2 {
		lines, err := r.Lines(t.Context(), Source{Name: "x.py", Text: strings.Repeat("a <b>\n", 20_000)})
		if err != nil || len(lines) != 20_000 || lines[7] != "a &lt;b&gt;" {
			t.Fatalf("%d lines, %.100q, %v", len(lines), lines[0], err)
		}
	}
	if s := r.Stats(); s.Runs != 1 || s.Costly != 1 || s.Steps > int64(few.Steps)+1000 {
		t.Errorf("%+v", s)
	}
	// An expensive code block does not make the whole text plain.
	html, err := r.Markdown(t.Context(), "# Title\n\n```python\n"+strings.Repeat("a <b>\n", 20_000)+"```\n\n```python\ndef f(): pass\n```\n", Options{Highlight: true})
	if err != nil || !strings.Contains(html, "Title</h1>") || !strings.Contains(html, "a &lt;b&gt;\na") {
		t.Errorf("%.100q, %v", html, err)
	}
}

// TestLinesAreTheText checks that highlighted lines have the text of the file, also
// where a lexer drops a part of it.
func TestLinesAreTheText(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`<[^>]*>`)
	r := New(Deps{})
	for _, c := range []struct {
		name, text  string
		highlighted bool
	}{
		{"x.go", "package x\r\n\r\nfunc f() {}", true},
		{"x.py", "def f():\n    return \"\xff\"\n\n", true},
		{"x.odin", "#+build linux,darwin,windows\npackage x\n", false},
		{"Caddyfile", "{\n\n\temail a@example.org\n}\nexample.org\n", false},
	} {
		lines, err := r.Lines(t.Context(), Source{Name: c.name, Text: c.text})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(lines, "\n")
		plain := func(text string) string {
			return strings.TrimRight(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r", ""), "\n")
		}
		if got, want := plain(html.UnescapeString(tag.ReplaceAllString(all, ""))), plain(c.text); got != want {
			t.Errorf("%s: the lines are %q, want %q", c.name, got, want)
		}
		if strings.Contains(all, "<span") != c.highlighted {
			t.Errorf("%s: %s", c.name, all)
		}
	}
}

// TestOneRenderingOfAText checks that concurrent calls for a text share one
// rendering.
func TestOneRenderingOfAText(t *testing.T) {
	t.Parallel()
	r := New(Deps{})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var runs atomic.Int64
	work := func(*budget) (string, error) {
		if runs.Add(1) == 1 {
			close(begun)
		}
		<-goOn
		return "x", nil
	}
	got := make(chan result, 3)
	for range 3 {
		go func() {
			found, err := r.render(t.Context(), sumOf("a"), work)
			if err != nil {
				t.Error(err)
			}
			got <- found
		}()
	}
	waittest.Receive(t, "the work", begun)
	waittest.For(t, "three callers", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		f := r.flights[flightKey{sum: sumOf("a")}]
		return f != nil && f.waiting == 3
	})
	close(goOn)
	for range 3 {
		if found := waittest.Receive(t, "a result", got); !found.ok || found.html != "x" {
			t.Errorf("%+v", found)
		}
	}
	if runs.Load() != 1 {
		t.Errorf("%d renderings", runs.Load())
	}
}

// TestRenderingEndsWithItsCallers cancels the waiting callers one by one: the work
// is canceled with the last one.
func TestRenderingEndsWithItsCallers(t *testing.T) {
	t.Parallel()
	r := New(Deps{})
	begun, ended := make(chan struct{}), make(chan struct{})
	work := func(b *budget) (string, error) {
		defer close(ended)
		close(begun)
		for {
			b.spend(0)
		}
	}
	first, leave := context.WithCancel(t.Context())
	second, leaveToo := context.WithCancel(t.Context())
	got := make(chan error, 2)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := r.render(ctx, sumOf("a"), work)
			got <- err
		}()
	}
	waittest.Receive(t, "the work", begun)
	waittest.For(t, "two callers", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		f := r.flights[flightKey{sum: sumOf("a")}]
		return f != nil && f.waiting == 2
	})
	leave()
	if err := waittest.Receive(t, "the first caller", got); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Error("the work ended while a caller waited for it")
	default:
	}
	leaveToo()
	waittest.Receive(t, "the second caller", got)
	waittest.Receive(t, "the end of the work", ended)
	waittest.For(t, "the slot", func() bool { return r.Stats().Held == 0 })
}

// TestRenderingShare uses all slots for anonymous callers: users can still render,
// and further anonymous callers get plain text.
func TestRenderingShare(t *testing.T) {
	t.Parallel()
	r := New(Deps{Limits: Limits{CPU: time.Hour}, Share: &limit.ShareLimits{Total: 2, Reserve: 1}})
	from := func(addr string, user int64) context.Context {
		ctx := WithPage(limit.WithAddress(t.Context(), addr))
		limit.Identify(ctx, user)
		return ctx
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := r.render(from("192.0.2.1:1", 0), sumOf("a"), func(*budget) (string, error) {
			close(begun)
			<-goOn
			return "a", nil
		})
		done <- err
	}()
	waittest.Receive(t, "the first rendering", begun)
	anonymous := from("192.0.2.2:1", 0)
	html, err := r.Markdown(anonymous, "*b*", Options{})
	if err != nil || html != "<pre>*b*</pre>" || !Degraded(anonymous) {
		t.Errorf("%q, %v", html, err)
	}
	user := from("192.0.2.1:1", 7)
	if html, err := r.Markdown(user, "*b*", Options{}); err != nil || !strings.Contains(html, "<em>b</em>") || Degraded(user) {
		t.Errorf("%q, %v", html, err)
	}
	// A cached rendering needs no slot.
	if html, err := r.Markdown(from("192.0.2.3:1", 0), "*b*", Options{}); err != nil || !strings.Contains(html, "<em>b</em>") {
		t.Errorf("%q, %v", html, err)
	}
	close(goOn)
	if err := waittest.Receive(t, "the first rendering", done); err != nil {
		t.Error(err)
	}
}
