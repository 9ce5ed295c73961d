// Package language finds the programming language of files by their names, and
// reads the attributes of Git that override it.
package language

import "strings"

// Index finds languages by names of files and by first lines.
type Index struct {
	names      map[string]*Language // in lower case
	extensions map[string]*Language
	files      map[string]*Language
	programs   map[string]*Language
	others     map[*Language]bool // those that do not count by themselves
	headers    *Language          // of C or one of its kin, until it is settled
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

// Counts reports whether a language counts by itself: languages of data and prose
// do not.
func (x *Index) Counts(l *Language) bool { return !x.others[l] }

// Named finds a language by its name, in which attributes have a dash for a
// space.
func (x *Index) Named(name string) *Language {
	name = strings.ToLower(name)
	if l, ok := x.names[name]; ok {
		return l
	}
	return x.names[strings.ReplaceAll(name, "-", " ")]
}

// OfName goes by the name of a file: the whole, or else its longest extension.
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

// OfProgram goes by "#!/usr/bin/env -S python3 -u".
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

// Settle decides what an extension of several languages means, by what else
// there is: headers are of the language that has the most code, and .m is
// MATLAB where nothing else is of Apple's making.
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
