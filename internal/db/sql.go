package db

import (
	"iter"
	"strconv"
	"strings"
)

// rebind turns ? placeholders into $1, $2, … outside of quoted text and
// comments.
func rebind(query string) string {
	return replace(query, func(b *strings.Builder, n int) {
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	})
}

// bounds returns the positions of the arguments of LIMIT and OFFSET in a query.
func bounds(query string) (list []bound) {
	replace(query, func(b *strings.Builder, n int) {
		switch {
		case strings.HasSuffix(b.String(), "LIMIT "):
			list = append(list, bound{arg: n - 1})
		case strings.HasSuffix(b.String(), "OFFSET "):
			list = append(list, bound{arg: n - 1, offset: true})
		}
	})
	return list
}

// bound is an argument of LIMIT or OFFSET.
type bound struct {
	arg    int // its index
	offset bool
}

// steady replaces ? placeholders by +?, which has the same value, outside of quoted text
// and comments. SQLite's planner uses the values of some placeholders, such as those of a
// join, and recompiles the statement each time they are bound, which costs more than
// running it. The unary plus prevents this.
func steady(query string) string {
	return replace(query, func(b *strings.Builder, _ int) { b.WriteString("+?") })
}

// replace replaces each placeholder by the output of write. Placeholders are numbered from
// 1.
func replace(query string, write func(b *strings.Builder, n int)) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + 16)
	n := 0
	for query != "" {
		size := inert(query)
		if size == 0 && query[0] == '?' {
			n++
			write(&b, n)
			query = query[1:]
			continue
		}
		size = max(size, 1)
		b.WriteString(query[:size])
		query = query[size:]
	}
	return b.String()
}

// inert returns the length of the quoted text or comment at the start of the query, or 0. A
// doubled quote counts as two adjacent quoted texts.
func inert(query string) int {
	for _, form := range [...]struct{ open, end string }{{"'", "'"}, {`"`, `"`}, {"--", "\n"}, {"/*", "*/"}} {
		body, ok := strings.CutPrefix(query, form.open)
		if !ok {
			continue
		}
		if i := strings.Index(body, form.end); i >= 0 {
			return len(form.open) + i + len(form.end)
		}
		return len(query)
	}
	return 0
}

// reads reports whether the query only reads: a SELECT, or a WITH that contains no keyword
// that writes.
func reads(query string) bool {
	query = strings.TrimLeft(query, " \t\n")
	first := ""
	for query != "" {
		if size := inert(query); size > 0 {
			query = query[size:]
			continue
		}
		size := strings.IndexFunc(query, func(r rune) bool { return !letter(r) })
		if size < 0 {
			size = len(query)
		}
		if size == 0 {
			query = query[1:]
			continue
		}
		word := query[:size]
		query = query[size:]
		if first == "" {
			first = strings.ToUpper(word)
			if first != "WITH" {
				return first == "SELECT"
			}
		}
		if strings.EqualFold(word, "INSERT") || strings.EqualFold(word, "UPDATE") || strings.EqualFold(word, "DELETE") {
			return false
		}
	}
	return first == "WITH"
}

// words returns the words of a query, outside of quoted text and comments.
func words(query string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for query != "" {
			size := strings.IndexFunc(query, func(r rune) bool { return !letter(r) })
			if size < 0 {
				size = len(query)
			}
			if size > 0 && !yield(query[:size]) {
				return
			}
			if query = query[size:]; query != "" {
				query = query[max(inert(query), 1):]
			}
		}
	}
}

func letter(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
