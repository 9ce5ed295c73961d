package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"svc/internal/git/language"
	"svc/internal/git/object"
)

// Language is a programming language used in a revision.
type Language struct {
	Name  string
	Color string // "#00add8"; empty if unknown
	Bytes int64
	Share float64 // percent of the total size, with two decimals
}

// Languages returns the languages of a revision by size, largest first. They are
// detected by file name, or by the shebang line of executables without an
// extension. Only programming and markup languages count; vendored, generated and
// documentation files are ignored. The attributes linguist-* in the tree override
// this. It returns ErrBadRevision and ErrNotFound.
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

type sizedFile struct {
	path       string
	id         OID
	size       int64
	executable bool
}

// sizedFiles lists the regular files of a tree.
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
			head, name, _ := strings.Cut(line[:len(line)-1], "\t")
			field := strings.Fields(head)
			if len(field) != 4 {
				return fmt.Errorf("git ls-tree: output %.100q: %w", line, object.ErrMalformed)
			}
			if !strings.HasPrefix(field[0], "100") {
				continue
			}
			size, err := strconv.ParseInt(field[3], 10, 64)
			id, ok := ParseOID(field[2])
			if err != nil || !ok {
				return fmt.Errorf("git ls-tree: output %.100q: %w", line, object.ErrMalformed)
			}
			list = append(list, sizedFile{path: name, id: id, size: size, executable: field[0] == "100755"})
		}
	})
	return list, err
}

const (
	maxAttributeFiles = 200
	maxAttributeFile  = 256 << 10
	// maxPeeked is the maximum number of files whose shebang line is read.
	maxPeeked = 300
)

func (r Repo) countLanguages(ctx context.Context, files []sizedFile) ([]Language, error) {
	rules, err := r.attributeRules(ctx, files)
	if err != nil {
		return nil, err
	}
	table := r.engine.languages()
	bytes := map[*language.Language]int64{}
	var peek []sizedFile
	for _, f := range files {
		a := rules.Of(f.path)
		name := path.Base(f.path)
		l := table.Named(a.Language)
		if l == nil {
			l = table.OfName(name)
		}
		program := l == nil && f.executable && !strings.Contains(name, ".")
		if f.size == 0 || l == nil && !program || l != nil && !a.Counts(table.Counts(l)) || a.Excluded(f.path) {
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
	table.Settle(bytes)
	return shares(bytes), nil
}

// attributeRules reads the .gitattributes files of a tree.
func (r Repo) attributeRules(ctx context.Context, files []sizedFile) (language.Rules, error) {
	var found []sizedFile
	for _, f := range files {
		if path.Base(f.path) == ".gitattributes" && f.size <= maxAttributeFile && len(found) < maxAttributeFiles {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b sizedFile) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	var rules language.Rules
	for _, f := range found {
		o, err := r.Object(ctx, f.id)
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rules.Add(strings.TrimSuffix(f.path, ".gitattributes"), string(o.Content))
	}
	return rules, nil
}

// addPrograms adds the sizes of files with a shebang line.
func (r Repo) addPrograms(ctx context.Context, files []sizedFile, bytes map[*language.Language]int64) error {
	for _, f := range files {
		o, err := r.Object(ctx, f.id)
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if err != nil {
			return err
		}
		if l := r.engine.languages().OfProgram(o.Content); l != nil {
			bytes[l] += f.size
		}
	}
	return nil
}

func shares(bytes map[*language.Language]int64) []Language {
	var total int64
	for _, n := range bytes {
		total += n
	}
	list := make([]Language, 0, len(bytes))
	for l, n := range bytes {
		share := math.Round(float64(n)/float64(total)*10_000) / 100
		list = append(list, Language{Name: l.Name, Color: l.Color, Bytes: n, Share: share})
	}
	slices.SortFunc(list, func(a, b Language) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return list
}
