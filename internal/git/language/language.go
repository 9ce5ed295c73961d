// Package language detects the programming language of files by their names, and reads the
// git attributes that override it.
package language

import "strings"

// Index finds languages by file names and by shebang lines.
type Index struct {
	names      map[string]*Language // in lower case
	extensions map[string]*Language
	files      map[string]*Language
	programs   map[string]*Language
	others     map[*Language]bool // those that are not counted by default
	headers    *Language          // stands for .h files until Settle decides their language
}

// NewIndex returns the index of all languages.
func NewIndex() *Index {
	x := &Index{map[string]*Language{}, map[string]*Language{}, map[string]*Language{}, map[string]*Language{}, map[*Language]bool{}, &Language{Name: "headers"}}
	for _, rows := range [][]Language{programming, otherLanguages} {
		for i := range rows {
			l := &rows[i]
			x.names[strings.ToLower(l.Name)] = l
			for e := range strings.FieldsSeq(l.extensions) {
				x.extensions[e] = l
			}
			for f := range strings.FieldsSeq(l.files) {
				x.files[f] = l
			}
			for p := range strings.FieldsSeq(l.programs) {
				x.programs[p] = l
			}
		}
	}
	for i := range otherLanguages {
		x.others[&otherLanguages[i]] = true
	}
	x.extensions[".h"] = x.headers
	return x
}

// Counts reports whether a language is counted by default: data and prose are not.
func (x *Index) Counts(l *Language) bool { return !x.others[l] }

// Named returns a language by its name. In attributes, spaces are written as dashes.
func (x *Index) Named(name string) *Language {
	name = strings.ToLower(name)
	if l, ok := x.names[name]; ok {
		return l
	}
	return x.names[strings.ReplaceAll(name, "-", " ")]
}

// OfName returns the language of a file name: by the whole name, or by its longest extension.
func (x *Index) OfName(name string) *Language {
	if l, ok := x.files[name]; ok {
		return l
	}
	name = strings.ToLower(name)
	for {
		_, rest, found := strings.Cut(name, ".")
		if !found {
			return nil
		}
		if l, ok := x.extensions["."+rest]; ok {
			return l
		}
		name = rest
	}
}

// OfProgram returns the language of a shebang line such as "#!/usr/bin/env -S python3 -u".
func (x *Index) OfProgram(content []byte) *Language {
	line, _, _ := strings.Cut(string(content[:min(len(content), 200)]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	words := strings.Fields(rest)
	for len(words) > 0 && (baseName(words[0]) == "env" || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	name := baseName(words[0])
	if l, ok := x.programs[name]; ok {
		return l
	}
	return x.programs[strings.TrimRight(name, "0123456789.-")]
}

// Settle resolves extensions of several languages by the other files: headers belong to the
// C-like language with the most code, and .m files are MATLAB unless there is other code in
// languages of Apple platforms.
func (x *Index) Settle(bytes map[*Language]int64) {
	c, cpp := x.names["c"], x.names["c++"]
	objc, objcpp, swift := x.names["objective-c"], x.names["objective-c++"], x.names["swift"]
	move := func(from, to *Language) {
		if bytes[from] > 0 {
			bytes[to] += bytes[from]
			delete(bytes, from)
		}
	}
	if bytes[c]+bytes[x.headers]+bytes[objcpp]+bytes[swift] == 0 {
		move(objc, x.names["matlab"])
	}
	switch most := max(bytes[c], bytes[cpp], bytes[objc]+bytes[objcpp]); {
	case bytes[x.headers] == 0:
	case most > 0 && bytes[cpp] == most:
		move(x.headers, cpp)
	case most > 0 && bytes[objc]+bytes[objcpp] == most:
		move(x.headers, objc)
	default:
		move(x.headers, c)
	}
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
