package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// glossary is the page with the table of retired words.
const glossary = "docs/glossary.md"

// area is a kind of text that is checked for retired words.
type area string

const (
	documents   area = "documents"   // *.md
	templates   area = "templates"   // text of pages: internal/web/templates and strings of internal/web
	summaries   area = "summaries"   // endpoint summaries of internal/api
	commandLine area = "commandLine" // help of internal/cli and internal/config
	identifiers area = "identifiers" // exported names, except those of internal/web
	pageNames   area = "pageNames"   // exported names of internal/web, which templates use
	messages    area = "messages"    // error messages: arguments of functions of errs
	parameters  area = "parameters"  // descriptions of API parameters: tags doc:"…"
)

// notConverted lists the areas that still contain retired words. Findings in
// them are logged and do not fail the test. Remove an area when it has none
// left; do not add one.
func notConverted() []area {
	return nil
}

// retired is a row of the table in the glossary.
type retired struct {
	first []string       // the first word of each form, in lower case
	word  *regexp.Regexp // any form of the word, as whole words
	use   string
	allow []*regexp.Regexp
}

// passage is a piece of text with its position.
type passage struct {
	file string
	line int
	text string
}

// TestWords checks that retired words of the glossary are not used.
func TestWords(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, glossary))
	if err != nil {
		t.Fatal(err)
	}
	list, err := readRetired(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Fatalf("%s has %d retired words; the table was not read", glossary, len(list))
	}
	fset := token.NewFileSet()
	tree := readTree(t, fset, skipped)
	texts := map[area][]passage{
		documents:   documentTexts(t),
		templates:   append(templateTexts(t), pageTexts(fset, tree["internal/web"])...),
		summaries:   summaryTexts(fset, tree["internal/api"]),
		commandLine: append(helpTexts(fset, tree["internal/cli"]), helpTexts(fset, tree["internal/config"])...),
		identifiers: exportedNames(fset, tree, func(pkg string) bool { return !pages(pkg) }),
		pageNames:   exportedNames(fset, tree, pages),
		messages:    messageTexts(fset, tree),
		parameters:  parameterTexts(fset, tree["internal/api"]),
	}
	for kind, passages := range texts {
		if len(passages) == 0 {
			t.Errorf("%s: no text was found", kind)
		}
		found := findRetired(list, passages)
		if slices.Contains(notConverted(), kind) {
			t.Logf("%s: %d retired words, not converted yet", kind, len(found))
			if testing.Verbose() {
				for _, f := range found {
					t.Log(f)
				}
			}
			continue
		}
		for _, f := range found {
			t.Error(f)
		}
	}
}

// readRetired reads the table below the heading "Retired words".
func readRetired(page string) ([]retired, error) {
	_, table, ok := strings.Cut(page, "\n## Retired words\n")
	if !ok {
		return nil, fmt.Errorf("%s has no heading \"Retired words\"", glossary)
	}
	var list []retired
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "Retired" {
			continue
		}
		r := retired{use: strings.TrimSpace(cells[2])}
		var forms []string
		for form := range strings.SplitSeq(cells[1], ",") {
			forms = append(forms, phrase(form))
			r.first = append(r.first, strings.ToLower(strings.Fields(form)[0]))
		}
		var err error
		if r.word, err = regexp.Compile(`(?i)` + whole(strings.Join(forms, "|"))); err != nil {
			return nil, err
		}
		for allowed := range strings.SplitSeq(cells[3], ",") {
			if strings.TrimSpace(allowed) == "" {
				continue
			}
			p, err := regexp.Compile(`(?i)` + whole(phrase(allowed)))
			if err != nil {
				return nil, err
			}
			r.allow = append(r.allow, p)
		}
		list = append(list, r)
	}
	return list, nil
}

// phrase returns a pattern for words with any white space between them.
func phrase(words string) string {
	fields := strings.Fields(words)
	for i, f := range fields {
		fields[i] = regexp.QuoteMeta(f)
	}
	return strings.Join(fields, `\s+`)
}

// whole limits a pattern to whole words. A hyphen is a part of a word, so that
// "in-house" does not contain "house".
func whole(pattern string) string { return `(?:^|[^\w-])(` + pattern + `)(?:$|[^\w-])` }

// findRetired returns a sentence for each use of a retired word.
func findRetired(list []retired, texts []passage) []string {
	var found []string
	for _, p := range texts {
		lower := strings.ToLower(p.text)
		for _, r := range list {
			if !slices.ContainsFunc(r.first, func(word string) bool { return strings.Contains(lower, word) }) {
				continue
			}
			text := p.text
			for _, a := range r.allow {
				text = a.ReplaceAllStringFunc(text, blank)
			}
			for _, m := range r.word.FindAllStringSubmatchIndex(text, -1) {
				found = append(found, fmt.Sprintf("%s:%d: %q is a retired word, use %q (see %s)",
					p.file, p.line+strings.Count(text[:m[2]], "\n"), text[m[2]:m[3]], r.use, glossary))
			}
		}
	}
	return found
}

// blank replaces a text by spaces and keeps its line breaks.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// documentTexts returns the paragraphs of all Markdown files, without code and
// without the table of retired words.
func documentTexts(t *testing.T) []passage {
	t.Helper()
	var list []passage
	walk(t, ".", ".md", func(path, text string) {
		if path == glossary {
			text, _, _ = strings.Cut(text, "\n## Retired words\n")
		}
		list = append(list, paragraphs(path, text)...)
	})
	return list
}

// paragraphs splits Markdown at blank lines and removes code blocks, code
// spans, comments and link targets.
func paragraphs(path, text string) []passage {
	var list []passage
	var lines []string
	start, fenced := 0, false
	flush := func() {
		if len(lines) > 0 {
			prose := markdownCode.ReplaceAllStringFunc(strings.Join(lines, "\n"), blank)
			list = append(list, passage{file: path, line: start, text: prose})
		}
		lines = nil
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			flush()
			continue
		}
		if fenced || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "    ") {
			flush()
			continue
		}
		if len(lines) == 0 {
			start = n
		}
		lines = append(lines, line)
	}
	flush()
	return list
}

// markdownCode matches code spans, comments and link targets.
var markdownCode = regexp.MustCompile("(?s)`[^`]*`|<!--.*?-->|\\]\\([^)]*\\)")

// templateTexts returns the lines of page templates: text, attributes that are
// shown, and literals in actions that look like sentences.
func templateTexts(t *testing.T) []passage {
	t.Helper()
	var list []passage
	walk(t, "internal/web/templates", ".html", func(path, text string) {
		n := 1
		for line := range strings.Lines(strings.ReplaceAll(text, "\n\t", continued+"\t")) {
			list = append(list, passage{file: path, line: n, text: visible(strings.NewReplacer(continued, "", "\t", "").Replace(line))})
			n += 1 + strings.Count(line, continued)
		}
	})
	return list
}

// continued marks the break before a line of a template that is indented with
// tabs. It continues the line before.
const continued = "\x00"

// TestTemplateLines checks that templates have no long lines, tabs inside of a
// line or spaces at the end of a line.
func TestTemplateLines(t *testing.T) {
	t.Parallel()
	const most = 140
	check := func(path, text string) {
		n := 0
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimSuffix(line, "\n")
			code := strings.TrimLeft(line, "\t")
			if columns := 4*(len(line)-len(code)) + utf8.RuneCountInString(code); columns > most {
				t.Errorf("%s:%d: the line has %d columns, more than %d; continue it on a line that starts with tabs", path, n, columns, most)
			}
			if strings.Contains(code, "\t") || strings.HasSuffix(line, " ") {
				t.Errorf("%s:%d: the line has a tab, or a space at its end", path, n)
			}
		}
	}
	for _, dir := range []string{"internal/web/templates", "internal/openapi/docs", "internal/mail/templates"} {
		walk(t, dir, ".html", check)
	}
}

var (
	templateAction  = regexp.MustCompile(`\{\{.*?\}\}`)
	actionLiteral   = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")
	shownAttribute  = regexp.MustCompile(`(?:title|aria-label|placeholder|alt|content|data-confirm)="([^"]*)"`)
	templateElement = regexp.MustCompile(`<[^>]*>`)
)

// visible returns the text of a template line that is visible on the page.
func visible(line string) string {
	var shown []string
	plain := templateAction.ReplaceAllStringFunc(line, func(action string) string {
		for _, literal := range actionLiteral.FindAllString(action, -1) {
			if text := literal[1 : len(literal)-1]; strings.Contains(text, " ") || text != "" && unicode.IsUpper(rune(text[0])) {
				shown = append(shown, text)
			}
		}
		return " "
	})
	for _, m := range shownAttribute.FindAllStringSubmatch(plain, -1) {
		shown = append(shown, m[1])
	}
	shown = append(shown, templateElement.ReplaceAllString(plain, " "))
	return html.UnescapeString(strings.Join(shown, " . "))
}

// pageTexts returns the string literals with a space, without HTML elements.
func pageTexts(fset *token.FileSet, files []source) []passage {
	list := literals(fset, files, func(n ast.Node) []ast.Expr {
		if lit, ok := n.(*ast.BasicLit); ok && strings.Contains(lit.Value, " ") {
			return []ast.Expr{lit}
		}
		return nil
	})
	for i := range list {
		list[i].text = templateElement.ReplaceAllString(list[i].text, " ")
	}
	return list
}

// summaryTexts returns the first argument of each call of summary.
func summaryTexts(fset *token.FileSet, files []source) []passage {
	return literals(fset, files, func(n ast.Node) []ast.Expr {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return nil
		}
		name, ok := call.Fun.(*ast.Ident)
		if !ok || name.Name != "summary" {
			return nil
		}
		return call.Args[:1]
	})
}

// messageTexts returns the texts that are passed to functions of errs.
func messageTexts(fset *token.FileSet, tree map[string][]source) []passage {
	var list []passage
	for _, files := range tree {
		list = append(list, literals(fset, files, func(n ast.Node) []ast.Expr {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return nil
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || fmt.Sprint(sel.X) != "errs" {
				return nil
			}
			return call.Args
		})...)
	}
	return list
}

// parameterTexts returns the descriptions of parameters.
func parameterTexts(fset *token.FileSet, files []source) []passage {
	return literals(fset, files, func(n ast.Node) []ast.Expr {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return nil
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return nil
		}
		text := reflect.StructTag(tag).Get("doc")
		return []ast.Expr{&ast.BasicLit{ValuePos: field.Tag.ValuePos, Kind: token.STRING, Value: strconv.Quote(text)}}
	})
}

// helpTexts returns the fields Short, Long and help, and the help of flags.
func helpTexts(fset *token.FileSet, files []source) []passage {
	return literals(fset, files, func(n ast.Node) []ast.Expr {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if ok && slices.Contains([]string{"Short", "Long", "help"}, key.Name) {
				return []ast.Expr{n.Value}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(sel.Sel.Name, "Var") && len(n.Args) > 2 {
				return n.Args[len(n.Args)-1:]
			}
		}
		return nil
	})
}

// literals returns the string literals below the expressions that pick returns.
func literals(fset *token.FileSet, files []source, pick func(ast.Node) []ast.Expr) []passage {
	var list []passage
	for _, s := range files {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if n == nil {
				return true
			}
			for _, e := range pick(n) {
				ast.Inspect(e, func(n ast.Node) bool {
					lit, ok := n.(*ast.BasicLit)
					if ok && lit.Kind == token.STRING {
						if text, err := strconv.Unquote(lit.Value); err == nil {
							list = append(list, at(fset, lit, text))
						}
					}
					return true
				})
			}
			return true
		})
	}
	return list
}

// pages reports whether a package belongs to the pages.
func pages(pkg string) bool { return pkg == "internal/web" || strings.HasPrefix(pkg, "internal/web/") }

// exportedNames returns the exported identifiers of the packages that in
// selects, split into words.
func exportedNames(fset *token.FileSet, tree map[string][]source, in func(pkg string) bool) []passage {
	var list []passage
	add := func(name *ast.Ident) {
		if name.IsExported() {
			list = append(list, at(fset, name, nameWords(name.Name)))
		}
	}
	for pkg, files := range tree {
		if !strings.HasPrefix(pkg, "internal/") || !in(pkg) {
			continue
		}
		for _, s := range files {
			if s.test {
				continue
			}
			for _, decl := range s.file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					add(d.Name)
				case *ast.GenDecl:
					ast.Inspect(d, func(n ast.Node) bool {
						switch n := n.(type) {
						case *ast.TypeSpec:
							add(n.Name)
						case *ast.ValueSpec:
							for _, name := range n.Names {
								add(name)
							}
						case *ast.Field:
							for _, name := range n.Names {
								add(name)
							}
						}
						return true
					})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b passage) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return list
}

// nameWords splits a name in camel case: "HasTold" is "Has Told".
func nameWords(name string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) || r == '_' {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

func at(fset *token.FileSet, n ast.Node, text string) passage {
	p := fset.Position(n.Pos())
	return passage{file: strings.TrimPrefix(p.Filename, root+"/"), line: p.Line, text: text}
}

// walk calls f with the path below the root and the text of each file with the
// extension.
func walk(t *testing.T, dir, ext string, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && hidden(path, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ext:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(below), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFindRetired(t *testing.T) {
	t.Parallel()
	list, err := readRetired("# Glossary\n\n## Retired words\n\n| Retired | Use | Allowed in |\n| --- | --- | --- |\n" +
		"| letter, letters | email | letter by letter |\n| can not | cannot | |\n| house | – | |\n")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		text string
		want []string // the expected words
	}{
		{"Letters are sent.", []string{"Letters"}},
		{"A newsletter is sent.", nil},
		{"Compared letter by letter.", nil},
		{"A letter, compared letter by letter.", []string{"letter"}},
		{"It can\nnot be", []string{"can\nnot"}},
		{"In-house.", nil},
		{"letter letter", []string{"letter"}},
	}
	for _, tt := range tests {
		found := findRetired(list, []passage{{file: "x", line: 1, text: tt.text}})
		if len(found) != len(tt.want) {
			t.Errorf("%q: found %q, want %q", tt.text, found, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(found[i], strconv.Quote(want)) {
				t.Errorf("%q: found %q, want %q", tt.text, found[i], want)
			}
		}
	}
}

func TestWordTexts(t *testing.T) {
	t.Parallel()
	var prose []string
	for _, p := range paragraphs("x.md", "# Head\n\nOne `code span`\ntwo [link](three.md).\n\n```\ncode\n```\n\n    indented\n<!-- four -->\n") {
		prose = append(prose, fmt.Sprintf("%s:%d %s", p.file, p.line, strings.Join(strings.Fields(p.text), " ")))
	}
	if want := []string{"x.md:1 # Head", "x.md:3 One two [link .", "x.md:11"}; !slices.EqualFunc(prose, want, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
		t.Errorf("paragraphs: got %q, want %q", prose, want)
	}
	line := `<p title="Shown">{{template "letters"}}Text {{field "x" "Label" | hint "A hint."}}<a href="/letter">link</a>&amp;</p>`
	if got := visible(line); strings.Contains(got, "letter") || !strings.Contains(got, "Shown") || !strings.Contains(got, "A hint.") || !strings.Contains(got, "Label") || !strings.Contains(got, "link") {
		t.Errorf("visible: got %q", got)
	}
	for name, want := range map[string]string{"HasTold": "Has Told", "JSONBody": "JSONBody", "max_size": "max size"} {
		if got := nameWords(name); got != want {
			t.Errorf("nameWords(%q) = %q, want %q", name, got, want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x; var a = T{Short: "one", help: "two"}; func f() { handle(summary("three")); s.BoolVar(&a, "x", false, "four") }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := []source{{name: "x.go", file: file}}
	fset := token.NewFileSet()
	if got := len(summaryTexts(fset, files)); got != 1 {
		t.Errorf("summaryTexts: got %d", got)
	}
	if got := len(helpTexts(fset, files)); got != 3 {
		t.Errorf("helpTexts: got %d", got)
	}
	file, err = parser.ParseFile(fset, "y.go", "package y; var a, b, c = \"word\", \"two words\", `<p class=\"letter x\">`", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := pageTexts(fset, []source{{name: "y.go", file: file}}); len(got) != 2 || got[0].text != "two words" || strings.Contains(got[1].text, "letter") {
		t.Errorf("pageTexts: got %v", got)
	}
}
