// Package emoji has a table of emoji: characters, names and groups.
//
// table.txt has a line for each emoji: its group, its characters and its names, the
// first of which is stored and shown. It was compiled from the names of gemoji and
// Gemojione (both MIT licensed), which users of other forges know. The order is that
// of Unicode; variants with a skin tone are at the end.
package emoji

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed table.txt
var source string

// Emoji is an emoji with its names.
type Emoji struct {
	Name    string   // "thumbsup"
	Aliases []string // "+1"
	Text    string   // "👍"
	Group   string   // "people"
}

// Toned reports whether the emoji is a variant with a skin tone. Pickers omit these.
func (e *Emoji) Toned() bool {
	return len(e.Name) > 6 && e.Name[len(e.Name)-6:len(e.Name)-1] == "_tone"
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 64

// table is the parsed table.
type table struct {
	all    []*Emoji
	byName map[string]*Emoji
	byText map[string]*Emoji
}

var parsed = sync.OnceValue(func() *table {
	t := &table{byName: map[string]*Emoji{}, byText: map[string]*Emoji{}}
	for line := range strings.Lines(source) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		names := strings.Fields(parts[2])
		e := &Emoji{Name: names[0], Aliases: names[1:], Text: parts[1], Group: parts[0]}
		t.all = append(t.all, e)
		t.byText[plain(e.Text)] = e
		for _, name := range names {
			t.byName[name] = e
		}
	}
	return t
})

// plain removes variation selectors, which request the colored form of a symbol.
func plain(text string) string { return strings.ReplaceAll(text, "\ufe0f", "") }

// All returns all emoji in the order of pickers. The caller must not change the
// list.
func All() []*Emoji { return parsed().all }

// Find returns an emoji by one of its names, without colons; nil if there is
// none.
func Find(name string) *Emoji { return parsed().byName[name] }

// FindText returns an emoji by its characters; nil if there is none.
func FindText(text string) *Emoji { return parsed().byText[plain(text)] }
