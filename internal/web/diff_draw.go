package web

import (
	"context"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"svc/internal/git"
	"svc/internal/markup"
	"svc/internal/secret"
)

// maxHighlightedDiff is the maximum size in bytes of a text that is
// highlighted.
const maxHighlightedDiff = 64 << 10

// diffLine is a line of a comparison: ' ' is in both files, '-' and '+' are in
// the old and the new one, '@' begins a part, and '\' is a remark.
type diffLine struct {
	kind     byte
	old, new int // numbers of lines
	text     string
	html     string
}

// parseDiff parses the text of a comparison. Carriage returns at the end of
// every line are left out; if only some lines have them they are shown.
func (w *Web) parseDiff(ctx context.Context, name, text string) []diffLine {
	raw := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	windows := true
	for _, line := range raw {
		if line != "" && strings.IndexByte(" +-", line[0]) >= 0 && !strings.HasSuffix(line, "\r") {
			windows = false
		}
	}
	list := make([]diffLine, 0, len(raw))
	var sides [2][]string // lines of the old and the new file
	var at [][2]int       // of each line in sides, or -1
	old, now := 0, 0
	for _, line := range raw {
		if line == "" {
			continue
		}
		l := diffLine{kind: line[0]}
		place := [2]int{-1, -1}
		content := line[1:]
		if windows {
			content = strings.TrimSuffix(content, "\r")
		}
		switch l.kind {
		case '@':
			old, now = hunk(line)
			content = line
		case ' ', '-', '+':
			if l.kind != '+' {
				l.old, place[0] = old, len(sides[0])
				sides[0] = append(sides[0], content)
				old++
			}
			if l.kind != '-' {
				l.new, place[1] = now, len(sides[1])
				sides[1] = append(sides[1], content)
				now++
			}
		case '\\':
			content = strings.TrimSpace(content)
		default:
			continue
		}
		l.text = shown(content)
		l.html = template.HTMLEscapeString(l.text)
		list, at = append(list, l), append(at, place)
	}
	w.highlightSides(ctx, name, list, sides, at)
	markChanges(list)
	return list
}

// markChanges marks the words that differ between removed lines and the added
// lines that replace them: the first with the first, and so on.
func markChanges(list []diffLine) {
	var words wordDiff
	for i := 0; i < len(list); {
		removed, added := changed(list[i:])
		for n := range min(removed, added) {
			old, now := &list[i+n], &list[i+removed+n]
			gone, came := words.compare(old.text, now.text)
			old.html, now.html = markWords(old.html, old.text, gone), markWords(now.html, now.text, came)
		}
		i += max(removed+added, 1)
	}
}

// changed counts the removed lines at the beginning of a list and the added
// lines after them.
func changed(lines []diffLine) (removed, added int) {
	removed = run(lines, '-')
	return removed, run(lines[removed:], '+')
}

// highlightSides highlights the lines of both files, as far as they are known.
func (w *Web) highlightSides(ctx context.Context, name string, list []diffLine, sides [2][]string, at [][2]int) {
	for side, lines := range sides {
		text := strings.Join(lines, "\n")
		if len(text) == 0 || len(text) > maxHighlightedDiff {
			continue
		}
		highlighted, err := w.Markup.Lines(ctx, markup.Source{Name: name, Text: shownText(text)})
		if err != nil || len(highlighted) < len(lines) {
			continue // the line stays without highlighting
		}
		for i, place := range at {
			if place[side] >= 0 {
				list[i].html = highlighted[place[side]]
			}
		}
	}
}

// hunk parses the numbers of the first lines in "@@ -1,2 +3,4 @@".
func hunk(line string) (old, now int) {
	for _, word := range strings.Fields(line) {
		number, _, _ := strings.Cut(strings.TrimLeft(word, "-+"), ",")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		switch word[0] {
		case '-':
			old = n
		case '+':
			return old, n
		}
	}
	return old, now
}

// drawnDiff is drawDiff with a cache for texts without threads on their lines.
func (w *Web) drawnDiff(ctx context.Context, name, text string, parallel bool, below lineNotes) template.HTML {
	if len(below.at) > 0 {
		return w.drawDiff(ctx, name, text, parallel, below)
	}
	key := rendering{name: fmt.Sprint("changes of ", name, parallel), id: git.OID(secret.Digest(text))}
	html, ok := w.painted.get(key)
	if !ok {
		html = w.drawDiff(ctx, name, text, parallel, lineNotes{})
		if !markup.Degraded(ctx) {
			w.painted.put(key, html)
		}
	}
	return html
}

// drawDiff draws the rows of a table. There may be thousands, so they are drawn
// without a template. The stylesheet adds line numbers and signs, so that copied
// text has only the lines. The threads on a line are below it.
func (w *Web) drawDiff(ctx context.Context, name, text string, parallel bool, below lineNotes) template.HTML {
	var b strings.Builder
	lines := w.parseDiff(ctx, name, text)
	if !parallel {
		for _, l := range lines {
			drawLine(&b, l)
			drawBelow(&b, "3", below, &l)
		}
		return template.HTML(b.String())
	}
	for i := 0; i < len(lines); {
		if k := lines[i].kind; k == '@' || k == '\\' {
			b.WriteString(`<tr class="` + class(k) + `"><td colspan="4">` + lines[i].html + "</td></tr>\n")
			i++
			continue
		}
		if lines[i].kind == ' ' {
			drawPair(&b, &lines[i], &lines[i])
			drawBelow(&b, "4", below, &lines[i])
			i++
			continue
		}
		removed, added := changed(lines[i:])
		for n := range max(removed, added) {
			var old, now *diffLine
			if n < removed {
				old = &lines[i+n]
			}
			if n < added {
				now = &lines[i+removed+n]
			}
			drawPair(&b, old, now)
			drawBelow(&b, "4", below, old)
			drawBelow(&b, "4", below, now)
		}
		i += removed + added
	}
	return template.HTML(b.String())
}

// run returns the number of consecutive lines of a kind.
func run(lines []diffLine, kind byte) int {
	n := 0
	for n < len(lines) && lines[n].kind == kind {
		n++
	}
	return n
}

func class(kind byte) string {
	return map[byte]string{'@': "hunk", '\\': "hint", '+': "add", '-': "del", ' ': "same"}[kind]
}

func drawLine(b *strings.Builder, l diffLine) {
	if l.kind == '@' || l.kind == '\\' {
		b.WriteString(`<tr class="` + class(l.kind) + `"><td colspan="3">` + l.html + "</td></tr>\n")
		return
	}
	b.WriteString(`<tr class="` + class(l.kind) + `"><td` + number(l.old) + "></td><td" + number(l.new) + "></td><td>" + l.html + "</td></tr>\n")
}

func drawPair(b *strings.Builder, old, now *diffLine) {
	b.WriteString("<tr>")
	for i, l := range []*diffLine{old, now} {
		if l == nil {
			b.WriteString(`<td></td><td class="none"></td>`)
			continue
		}
		n := l.old
		if i == 1 {
			n = l.new
		}
		b.WriteString("<td" + number(n) + `></td><td class="` + class(l.kind) + `">` + l.html + "</td>")
	}
	b.WriteString("</tr>\n")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return ` data-n="` + strconv.Itoa(n) + `"`
}
