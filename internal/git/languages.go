package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Language is a language that a revision is written in.
type Language struct {
	Name  string
	Color string // "#00add8"; empty when none is known
	Bytes int64
	Share float64 // percent of all that counts, with two decimals
}

// Languages says what a revision is written in, the most first. Files are
// distinguished by their names, and programs without an extension by their
// first line. Only programs and markup count, and nothing that is someone
// else's, generated or documentation; attributes in the tree (linguist-language
// and its kin) can say otherwise. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Languages(ctx context.Context, rev string) ([]Language, error) {
	tree, err := r.ResolveTree(ctx, rev)
	if err != nil {
		return nil, err
	}
	key := cacheKey{r.scope(), kindAnswer, "languages " + string(tree)}
	if v, ok := r.engine.cache.get(key); ok {
		return slices.Clone(v.([]Language)), nil
	}
	files, err := r.sizedFiles(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("languages of %.100q: %w", rev, err)
	}
	list, err := r.countLanguages(ctx, files)
	if err != nil {
		return nil, fmt.Errorf("languages of %.100q: %w", rev, err)
	}
	r.engine.cache.put(key, list, 64*len(list))
	return slices.Clone(list), nil
}

// sizedFile is a file of a tree.
type sizedFile struct {
	path       string
	id         OID
	size       int64
	executable bool
}

// sizedFiles lists the files of a tree, without links and submodules.
func (r Repo) sizedFiles(ctx context.Context, tree OID) ([]sizedFile, error) {
	var list []sizedFile
	err := r.run(ctx, command{args: []string{"ls-tree", "-r", "-l", "-z", "--full-tree", string(tree)}}, func(out io.Reader) error {
		in := bufio.NewReaderSize(out, 64<<10)
		for {
			line, err := in.ReadString(0)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			// "<mode> <type> <id> <size>\t<path>\0"
			head, path, _ := strings.Cut(line[:len(line)-1], "\t")
			field := strings.Fields(head)
			if len(field) != 4 {
				return fmt.Errorf("git ls-tree: answer %.100q: %w", line, errMalformed)
			}
			if !strings.HasPrefix(field[0], "100") {
				continue
			}
			size, err := strconv.ParseInt(field[3], 10, 64)
			id, ok := ParseOID(field[2])
			if err != nil || !ok {
				return fmt.Errorf("git ls-tree: answer %.100q: %w", line, errMalformed)
			}
			list = append(list, sizedFile{path: path, id: id, size: size, executable: field[0] == "100755"})
		}
	})
	return list, err
}

const (
	maxAttributeFiles = 200
	maxAttributeFile  = 256 << 10
	// maxPeeked bounds the programs whose first line is read.
	maxPeeked = 300
)

func (r Repo) countLanguages(ctx context.Context, files []sizedFile) ([]Language, error) {
	rules, err := r.attributeRules(ctx, files)
	if err != nil {
		return nil, err
	}
	table := r.engine.languages()
	bytes := map[*language]int64{}
	var peek []sizedFile
	for _, f := range files {
		a := rules.of(f.path)
		name := baseName(f.path)
		l := table.named(a.language)
		if l == nil {
			l = table.ofName(name)
		}
		program := l == nil && f.executable && !strings.Contains(name, ".")
		if f.size == 0 || l == nil && !program || l != nil && !a.counts(table.counts(l)) || a.leftOut(f.path) {
			continue
		}
		switch {
		case l != nil:
			bytes[l] += f.size
		case len(peek) < maxPeeked:
			peek = append(peek, f)
		}
	}
	if err := r.addPrograms(ctx, peek, bytes); err != nil {
		return nil, err
	}
	table.settle(bytes)
	return shares(bytes), nil
}

// addPrograms looks at the first lines of files for a "#!".
func (r Repo) addPrograms(ctx context.Context, files []sizedFile, bytes map[*language]int64) error {
	for _, f := range files {
		o, err := r.Object(ctx, f.id)
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if err != nil {
			return err
		}
		if l := r.engine.languages().ofProgram(o.Content); l != nil {
			bytes[l] += f.size
		}
	}
	return nil
}

func shares(bytes map[*language]int64) []Language {
	var total int64
	for _, n := range bytes {
		total += n
	}
	list := make([]Language, 0, len(bytes))
	for l, n := range bytes {
		share := math.Round(float64(n)/float64(total)*10_000) / 100
		list = append(list, Language{Name: l.name, Color: l.color, Bytes: n, Share: share})
	}
	slices.SortFunc(list, func(a, b Language) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return list
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// languageIndex finds languages.
type languageIndex struct {
	names      map[string]*language // in lower case
	extensions map[string]*language
	files      map[string]*language
	programs   map[string]*language
	others     map[*language]bool // those that do not count by themselves
	headers    *language          // of C or one of its kin, until it is settled
}

func newLanguageIndex() *languageIndex {
	x := &languageIndex{map[string]*language{}, map[string]*language{}, map[string]*language{}, map[string]*language{}, map[*language]bool{}, &language{name: "headers"}}
	for _, rows := range [][]language{programming, otherLanguages} {
		for i := range rows {
			l := &rows[i]
			x.names[strings.ToLower(l.name)] = l
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

func (x *languageIndex) counts(l *language) bool { return !x.others[l] }

// named finds a language by its name, in which attributes have a dash for a
// space.
func (x *languageIndex) named(name string) *language {
	name = strings.ToLower(name)
	if l, ok := x.names[name]; ok {
		return l
	}
	return x.names[strings.ReplaceAll(name, "-", " ")]
}

// ofName goes by the name of a file: the whole, or else its longest extension.
func (x *languageIndex) ofName(name string) *language {
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

// ofProgram goes by "#!/usr/bin/env -S python3 -u".
func (x *languageIndex) ofProgram(content []byte) *language {
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

// settle decides what an extension of several languages means, by what else
// there is: headers are of the language that has the most code, and .m is
// MATLAB where nothing else is of Apple's making.
func (x *languageIndex) settle(bytes map[*language]int64) {
	c, cpp := x.names["c"], x.names["c++"]
	objc, objcpp, swift := x.names["objective-c"], x.names["objective-c++"], x.names["swift"]
	move := func(from, to *language) {
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
