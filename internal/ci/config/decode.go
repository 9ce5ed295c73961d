package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder checks the merged configuration and creates the definitions. It
// continues after an error, to report all of them.
type decoder struct {
	ctx      context.Context
	config   *Config
	errs     Errors
	warnings Errors
	jobless  bool // there is no visible job
	rows     int  // combinations in the matrices so far
	stageAt  map[string]int
}

// spot is a keyword in messages: key for programs, words for users.
type spot struct{ key, words string }

// entry is a keyword that has its own section, such as "jobs:build:cache config".
func entry(loc, key string) spot { return whole(within(loc, key)) }

// attribute is a keyword within a section, such as "jobs:build:artifacts expire in".
func attribute(loc, key string) spot {
	return spot{within(loc, key), loc + " " + strings.ReplaceAll(key, "_", " ")}
}

// whole is the section itself.
func whole(loc string) spot { return spot{loc, loc + " config"} }

// within returns the path of a key; the root has no name.
func within(loc, key string) string {
	if loc == "" {
		return key
	}
	return loc + ":" + key
}

func (d *decoder) fail(at Pos, s spot, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, newError(at, s.key, s.words+" "+fmt.Sprintf(format, args...)))
	}
}

func (d *decoder) warn(at Pos, key, format string, args ...any) {
	if len(d.warnings) < maxErrors {
		d.warnings = append(d.warnings, failAt(at, key, format, args...))
	}
}

// table checks that a section is a table with known keys.
func (d *decoder) table(n *node, loc string, known ...string) bool {
	if n.kind != table {
		d.fail(n.pos, whole(loc), "should be a hash")
		return false
	}
	d.known(n, loc, known...)
	return true
}

func (d *decoder) known(n *node, loc string, known ...string) {
	var unknown []string
	at := n.pos
	for _, f := range n.fields {
		if slices.Contains(known, f.key) {
			continue
		}
		if unknown == nil {
			at = f.pos
		}
		unknown = append(unknown, f.key)
	}
	if unknown != nil {
		d.fail(at, whole(loc), "contains unknown keys: %s", strings.Join(unknown, ", "))
	}
}

func (d *decoder) text(n *node, s spot) string {
	if n == nil {
		return ""
	}
	if n.kind != text {
		d.fail(n.pos, s, "should be a string")
		return ""
	}
	return n.text
}

func (d *decoder) texts(n *node, s spot) []string {
	if n == nil {
		return nil
	}
	if out, ok := stringsOf(n); ok && n.kind == list {
		return out
	}
	d.fail(n.pos, s, "should be an array of strings")
	return nil
}

func (d *decoder) textOrTexts(n *node, s spot) []string {
	out, ok := stringsOf(n)
	if !ok {
		d.fail(n.pos, s, "should be an array of strings or a string")
	}
	return out
}

func (d *decoder) truth(n *node, s spot) *bool {
	if n == nil {
		return nil
	}
	if n.kind != boolean {
		d.fail(n.pos, s, "should be a boolean value")
		return nil
	}
	v := n.text == "true"
	return &v
}

func (d *decoder) isTrue(n *node, s spot) bool {
	v := d.truth(n, s)
	return v != nil && *v
}

// oneOf checks a text against the allowed values.
func (d *decoder) oneOf(n *node, s spot, values ...string) string {
	if n == nil {
		return ""
	}
	if n.kind != text || !slices.Contains(values, n.text) {
		d.fail(n.pos, s, "should be one of: %s", strings.Join(values, ", "))
		return ""
	}
	return n.text
}

// number checks a whole number.
func (d *decoder) number(n *node, s spot, from, to int64) int {
	if n == nil {
		return 0
	}
	v, ok := n.number()
	switch {
	case !ok:
		d.fail(n.pos, s, "is not a number")
	case v < from:
		d.fail(n.pos, s, "must be greater than or equal to %d", from)
	case v > to:
		d.fail(n.pos, s, "must be less than or equal to %d", to)
	default:
		return int(v)
	}
	return 0
}

// numbers reads a number or a list of them.
func (d *decoder) numbers(n *node, s spot) []int {
	if n == nil {
		return nil
	}
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	var out []int
	for _, item := range items {
		v, ok := item.number()
		if !ok {
			d.fail(n.pos, s, "should be an array of integers or an integer")
			return nil
		}
		out = append(out, int(v))
	}
	return out
}

// duration returns a duration in seconds.
func (d *decoder) duration(n *node, s spot, limit time.Duration) int64 {
	if n == nil {
		return 0
	}
	v, err := ParseDuration(n.text)
	switch {
	case err != nil || n.kind != text && n.kind != integer && n.kind != float:
		d.fail(n.pos, s, "should be a duration")
	case limit > 0 && v > limit:
		d.fail(n.pos, s, "should not exceed the limit")
	default:
		return int64(v / time.Second)
	}
	return 0
}

// durationText checks a duration that is kept as written. If the caller allows it, it may
// contain variables or be "never".
func (d *decoder) durationText(n *node, s spot, variables, never bool) string {
	switch {
	case n == nil:
		return ""
	case never && n.kind == text && n.text == "never":
		return n.text
	case variables && n.kind == text && strings.ContainsAny(n.text, "$%"):
		return n.text
	}
	d.duration(n, s, 0)
	return n.text
}

// raw keeps a section as JSON. The tree is small, because the limits were checked before.
func raw(n *node) json.RawMessage {
	if n == nil {
		return nil
	}
	return appendJSON(nil, n)
}

func appendJSON(out []byte, n *node) []byte {
	switch n.kind {
	case list, reference:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, item)
		}
		return append(out, ']')
	case table:
		out = append(out, '{')
		for i, f := range n.fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, f.key), ':')
			out = appendJSON(out, f.value)
		}
		return append(out, '}')
	case null:
		return append(out, "null"...)
	case boolean, integer:
		return append(out, n.text...)
	case float:
		if _, err := strconv.ParseFloat(n.text, 64); err == nil && !strings.ContainsAny(n.text, "NI") {
			return append(out, n.text...)
		}
	}
	return appendText(out, n.text)
}

func appendText(out []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(out, `""`...)
	}
	return append(out, quoted...)
}
