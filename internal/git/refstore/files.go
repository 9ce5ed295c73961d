package refstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Refs are read from the files of the repository each time, neither through a process nor
// through a cache that would have to be invalidated: a ref that was just pushed is visible to
// the next reader, on every node that shares the storage, and also if an operator moved it
// manually.
//
// Refs are read like in git: first the loose file, which is replaced by renaming, and
// otherwise the line in packed-refs. The order matters, because refs are packed by writing
// the new packed-refs first. The parsed packed-refs is cached as long as the inode, size and
// time of the file are unchanged, as git processes do; it is replaced by renaming too.

// Files is the refs of a bare repository in the files of its directory.
type Files struct {
	host *Host
	dir  string
}

// Host is the state that the repositories of a process share.
type Host struct {
	// Cache caches what was read from a directory.
	Cache Cache
	// Write is the time limit of a git process that writes.
	Write time.Duration
	// Git runs a git process that locks refs in a directory. It returns a *RefConflict for
	// a ref that it cannot lock.
	Git func(ctx context.Context, dir, input string, args ...string) error
}

// Cache stores a value of about size bytes for each directory, and may evict it.
type Cache interface {
	Get(dir string) any
	Put(dir string, value any, size int)
}

// NewFiles returns the refs in a directory, which need not exist.
func NewFiles(h *Host, dir string) *Files { return &Files{h, dir} }

// packedRef is a line of packed-refs.
type packedRef struct {
	name   string
	id     OID
	peeled OID // target of a tag; empty if it is not a tag
}

type packedRefs struct {
	file fs.FileInfo
	refs []packedRef // by name
	// names are the names of the refs.
	names []string
	// peeled reports that a ref without a peeled value is known not to be a tag.
	peeled bool
}

// sameFile reports whether the file is still the one that was read.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// First implements Store. All loose files are tried before packed-refs is read
// once for all names.
func (r *Files) First(_ context.Context, names []string) (OID, error) {
	if len(names) == 0 {
		return "", errNoRef
	}
	var loose OID
	for i, name := range names {
		id, err := r.followLoose(name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if loose, names = id, names[:i]; i == 0 {
			return loose, nil
		}
		break
	}
	packed, err := r.packed()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if i, ok := packed.find(name); ok {
			return packed.refs[i].id, nil
		}
	}
	if loose == "" {
		return "", errNoRef
	}
	return loose, nil
}

// followLoose reads a loose ref and follows symbolic refs. A symbolic ref is
// always loose; its target may be packed.
func (r *Files) followLoose(name string) (OID, error) {
	id, target, err := r.readLoose(name)
	if err != nil || target == "" {
		return id, err
	}
	return r.follow(target)
}

// follow reads a ref by its full name, through symbolic refs.
func (r *Files) follow(name string) (OID, error) {
	at := name
	for range 5 {
		id, target, err := r.readRef(at)
		if err != nil || target == "" {
			return id, err
		}
		at = target
	}
	return "", fmt.Errorf("ref %.100q leads in a circle: %w", name, ErrCorrupt)
}

// readRef reads one ref: its ID, or the target of a symbolic ref.
func (r *Files) readRef(name string) (id OID, target string, err error) {
	id, target, err = r.readLoose(name)
	if !errors.Is(err, ErrNotFound) {
		return id, target, err
	}
	packed, err := r.packed()
	if err != nil {
		return "", "", err
	}
	if i, ok := packed.find(name); ok {
		return packed.refs[i].id, "", nil
	}
	return "", "", fmt.Errorf("ref %.100q: %w", name, ErrNotFound)
}

// readLoose is readRef for a loose ref.
func (r *Files) readLoose(name string) (id OID, target string, err error) {
	if len(name) > MaxName {
		return "", "", errNoRef
	}
	var room [128]byte
	text, err := readSmall(r.dir+"/"+name, room[:])
	switch {
	case err == nil:
		return parseRef(name, text)
	case notAFile(err):
		return "", "", errNoRef
	}
	return "", "", fmt.Errorf("read ref %.100q: %w", name, err)
}

// readSmall reads a file that usually fits into the buffer with plain system
// calls. Refs are read in every request, usually at several paths, most of which
// do not exist.
func readSmall(path string, room []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	text := room[:0]
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := syscall.Read(fd, text[len(text):cap(text)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return text, err
		}
		text = text[:len(text)+n]
	}
}

// errNoRef does not contain the name, which the caller knows, because it is returned often
// and shown rarely.
var errNoRef = fmt.Errorf("loose ref: %w", ErrNotFound)

// Exists implements Store.
func (r *Files) Exists(context.Context) error {
	if _, err := os.Stat(filepath.Join(r.dir, "HEAD")); err != nil {
		return fmt.Errorf("%w: %s", ErrNoRepository, r.dir)
	}
	return nil
}

// notAFile reports whether an error means that the loose ref does not exist.
func notAFile(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG)
}

func parseRef(name string, text []byte) (id OID, target string, err error) {
	s := strings.TrimSpace(string(text))
	if rest, ok := strings.CutPrefix(s, "ref:"); ok {
		target = strings.TrimSpace(rest)
		if !strings.HasPrefix(target, "refs/") || !WellFormed(target) {
			return "", "", fmt.Errorf("ref %.100q points to %.100q: %w", name, target, ErrCorrupt)
		}
		return "", target, nil
	}
	id, ok := ParseOID(s)
	if !ok {
		return "", "", fmt.Errorf("ref %.100q: %w", name, ErrCorrupt)
	}
	return id, "", nil
}

// All implements Store. It tries all files before it reads packed-refs once, so
// that a ref that is packed concurrently is found there.
func (r *Files) All(_ context.Context, names []string) ([]OID, error) {
	ids := make([]OID, len(names))
	all := true
	for i, name := range names {
		id, err := r.followLoose(name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		ids[i] = id
		all = all && id != ""
	}
	if all {
		return ids, nil
	}
	packed, err := r.packed()
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if at, ok := packed.find(name); ok && ids[i] == "" {
			ids[i] = packed.refs[at].id
		}
	}
	return ids, nil
}

// List implements Store. Loose refs are read first, so that a ref that is packed
// concurrently is found in packed-refs.
func (r *Files) List(ctx context.Context, place string, wanted func(string) bool) (Listing, error) {
	var loose []string
	err := r.looseNames(ctx, strings.TrimSuffix(place, "/"), func(name string) {
		if wanted == nil || wanted(name) {
			loose = append(loose, name)
		}
	})
	if err != nil {
		return Listing{}, fmt.Errorf("list refs: %w", err)
	}
	packed, err := r.packed()
	if err != nil {
		return Listing{}, err
	}
	names := packed.below(place)
	if wanted != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !wanted(name) })
	}
	slices.Sort(loose)
	names = mergeNames(names, loose)
	if len(names) == 0 {
		if err := r.Exists(ctx); err != nil {
			return Listing{}, err
		}
	}
	return Listing{Names: names, read: func(name string) (Entry, error) { return r.listed(name, packed) }}, nil
}

// listed reads a ref that was listed together with packed.
func (r *Files) listed(name string, packed *packedRefs) (Entry, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if i, ok := packed.find(name); ok && notAFile(err) && (packed.peeled || packed.refs[i].peeled != "") {
		p := packed.refs[i]
		return Entry{ID: p.id, Peeled: p.peeled, Known: true}, nil
	}
	var id OID
	if err == nil {
		target := ""
		if id, target, err = parseRef(name, text); target != "" {
			id, err = r.follow(target)
		}
	} else {
		id, err = r.follow(name)
	}
	if errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return Entry{ID: id}, err
}

// mergeNames merges two sorted lists, of which the first is usually the longer one. It
// changes neither.
func mergeNames(packed, loose []string) []string {
	if len(loose) == 0 {
		return packed
	}
	names := make([]string, 0, len(packed)+len(loose))
	for _, name := range loose {
		at, found := slices.BinarySearch(packed, name)
		names = append(append(names, packed[:at]...), name)
		if found {
			at++
		}
		packed = packed[at:]
	}
	return append(names, packed...)
}

func (r *Files) looseNames(ctx context.Context, dir string, add func(string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(r.dir, filepath.FromSlash(dir)))
	if err != nil {
		if notAFile(err) {
			return nil // deleted concurrently, or never existed
		}
		return err
	}
	for _, f := range files {
		name := dir + "/" + f.Name()
		switch {
		case !WellFormed(name): // a lock or a foreign file
		case f.IsDir():
			if err := r.looseNames(ctx, name, add); err != nil {
				return err
			}
		case f.Type() == 0:
			add(name)
		}
	}
	return nil
}

// Head implements Store.
func (r *Files) Head(context.Context) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNoRepository, r.dir)
	}
	if err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	_, target, err := parseRef("HEAD", text)
	branch, ok := strings.CutPrefix(target, Heads)
	if err != nil || !ok {
		return "", fmt.Errorf("HEAD is %.100q: %w", text, ErrCorrupt)
	}
	return branch, nil
}

// packed returns the current packed refs.
func (r *Files) packed() (*packedRefs, error) {
	path := filepath.Join(r.dir, "packed-refs")
	if p, ok := r.host.Cache.Get(r.dir).(*packedRefs); ok {
		if info, err := os.Stat(path); err == nil && sameFile(p.file, info) {
			return p, nil
		}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &packedRefs{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	p, err := parsePacked(text)
	if err != nil {
		return nil, err
	}
	p.file = info
	r.host.Cache.Put(r.dir, p, 3*len(text))
	return p, nil
}

// parsePacked parses the content of packed-refs.
func parsePacked(text []byte) (*packedRefs, error) {
	p := &packedRefs{}
	sorted := false
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		s := string(line)
		switch {
		case s == "":
		case strings.HasPrefix(s, "#"):
			sorted = strings.Contains(s, " sorted")
			p.peeled = strings.Contains(s, " fully-peeled")
		case s[0] == '^':
			id, ok := ParseOID(s[1:])
			if !ok || len(p.refs) == 0 {
				return nil, fmt.Errorf("packed refs: line %.100q: %w", s, ErrCorrupt)
			}
			p.refs[len(p.refs)-1].peeled = id
		default:
			hex, name, _ := strings.Cut(s, " ")
			id, ok := ParseOID(hex)
			if !ok || name == "" {
				return nil, fmt.Errorf("packed refs: line %.100q: %w", s, ErrCorrupt)
			}
			p.refs = append(p.refs, packedRef{name: name, id: id})
		}
	}
	if !sorted {
		slices.SortStableFunc(p.refs, func(a, b packedRef) int { return strings.Compare(a.name, b.name) })
	}
	p.names = make([]string, len(p.refs))
	for i := range p.refs {
		p.names[i] = p.refs[i].name
	}
	return p, nil
}

func (p *packedRefs) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.refs, name, func(r packedRef, n string) int { return strings.Compare(r.name, n) })
}

// below returns the names below a prefix that ends with a slash. They must not be
// changed.
func (p *packedRefs) below(place string) []string {
	from, _ := p.find(place)
	to, _ := p.find(place[:len(place)-1] + "0") // the character that follows the slash
	return p.names[from:to:to]
}
