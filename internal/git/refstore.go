package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Refs are read from the files of the repository, not from a process and not
// from a cache that someone would have to drop: a ref that was just pushed is
// there for the next reader, on every node that shares the storage and also
// when an operator moved it by hand.
//
// This is as git reads them: the loose file, which is replaced by renaming,
// and when there is none the line in packed-refs. The order matters, since
// refs are packed by writing the new packed-refs first. The parsed packed-refs
// is kept as long as the file is the same by inode, size and time, which is
// what git's own processes go by; it is replaced by renaming too.

// packedRef is a line of packed-refs.
type packedRef struct {
	name   string
	id     OID
	peeled OID // what a tag leads to; empty when it is not a tag
}

type packedRefs struct {
	file fs.FileInfo
	refs []packedRef // by name
	// names are those of refs.
	names []string
	// peeled says that a ref without a peeled value is known to be no tag.
	peeled bool
}

// sameFile reports whether the file is still the one that was read.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// lookup finds the id of a ref by a name that passed wellFormedOneLevel: in
// full or in short, a branch before a tag and both before all else. Refs that
// the reader cannot name are not there. It returns ErrNotFound.
func (r Repo) lookup(name string) (OID, error) {
	places := []string{Heads, Tags, "refs/", "refs/remotes/"}
	switch {
	case name == "@" || name == "HEAD":
		name, places = "HEAD", []string{""}
	case strings.HasPrefix(name, "refs/"):
		places = []string{""}
	}
	for i := range places {
		places[i] += name
	}
	if r.view != nil {
		places = slices.DeleteFunc(places, func(full string) bool { return !r.view.names(full) })
	}
	// No one pushes to the last one, so it is not asked for until it must be.
	for _, some := range [][]string{places[:min(len(places), 3)], places[min(len(places), 3):]} {
		if id, err := r.firstOf(some); !errors.Is(err, ErrNotFound) {
			return id, err
		}
	}
	if err := r.exists(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("ref %.100q: %w", name, ErrNotFound)
}

// firstOf reads the first of the refs that is there. Each loose file is looked
// for before packed-refs is read, which is then asked for all of them at once.
func (r Repo) firstOf(names []string) (OID, error) {
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

// followLoose reads a ref that is its own file, through symbolic refs; a
// symbolic one is one, and what it leads to may be packed.
func (r Repo) followLoose(name string) (OID, error) {
	id, target, err := r.readLoose(name)
	if err != nil || target == "" {
		return id, err
	}
	return r.follow(target)
}

// follow reads a ref by its full name, through symbolic refs.
func (r Repo) follow(name string) (OID, error) {
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

// readRef reads one ref: its id, or the name that a symbolic one points to.
func (r Repo) readRef(name string) (id OID, target string, err error) {
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

// readLoose is readRef for a ref that has its own file.
func (r Repo) readLoose(name string) (id OID, target string, err error) {
	if len(name) > maxRef {
		return "", "", errNoRef
	}
	var room [128]byte
	text, err := readSmall(r.path+"/"+name, room[:])
	switch {
	case err == nil:
		return parseRef(name, text)
	case notAFile(err):
		return "", "", errNoRef
	}
	return "", "", fmt.Errorf("read ref %.100q: %w", name, err)
}

// readSmall reads a file that most likely fits into the room, by the calls of
// the system alone: a ref is read for each request, mostly in several places,
// and in most of them it is not.
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

// errNoRef has no name, which the caller knows: it is returned often and shown
// rarely.
var errNoRef = fmt.Errorf("loose ref: %w", ErrNotFound)

// exists returns ErrNoRepository when there is nothing to find refs in.
func (r Repo) exists() error {
	if _, err := os.Stat(filepath.Join(r.path, "HEAD")); err != nil {
		return fmt.Errorf("%w: %s", ErrNoRepository, r.path)
	}
	return nil
}

// notAFile is an error that says that there is no loose ref of the name.
func notAFile(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG)
}

func parseRef(name string, text []byte) (id OID, target string, err error) {
	s := strings.TrimSpace(string(text))
	if rest, ok := strings.CutPrefix(s, "ref:"); ok {
		target = strings.TrimSpace(rest)
		if !strings.HasPrefix(target, "refs/") || !wellFormed(target) {
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

// packed returns the packed refs as they are now.
func (r Repo) packed() (*packedRefs, error) {
	path := filepath.Join(r.path, "packed-refs")
	key := cacheKey{r.path, kindPacked, ""}
	if v, ok := r.engine.cache.get(key); ok {
		if info, err := os.Stat(path); err == nil && sameFile(v.(*packedRefs).file, info) {
			return v.(*packedRefs), nil
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
	r.engine.cache.put(key, p, 3*len(text))
	return p, nil
}

// parsePacked reads the content of packed-refs.
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

// below returns the names below a place, which ends with a slash. They must not be
// changed.
func (p *packedRefs) below(place string) []string {
	from, _ := p.find(place)
	to, _ := p.find(place[:len(place)-1] + "0") // the character that follows the slash
	return p.names[from:to:to]
}
