package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"svc/internal/git/object"
)

// BlameRange is a range of consecutive lines that were last changed by the same
// commit.
type BlameRange struct {
	Commit *Commit
	Path   string // path of the file in that commit
	First  int    // number of the first line, from 1
	Lines  []string

	// Previous is the parent commit in which the file has PreviousPath. It is empty if
	// the commit added the file.
	Previous     OID
	PreviousPath string
}

// BlameOptions selects the file and the lines. From and To are the first and last
// line, from 1; both 0 mean the whole file.
type BlameOptions struct {
	Rev, Path string
	From, To  int
}

// maxBlame is the maximum size of a file in bytes.
const maxBlame = 4 << 20

// Blame returns the commit that last changed each line. Lines are converted to
// valid UTF-8. It returns ErrBadRevision, ErrBadPath, ErrNotFound if the file or
// the lines do not exist, and ErrTooLarge.
func (r Repo) Blame(ctx context.Context, o BlameOptions) ([]BlameRange, error) {
	id, err := r.ResolveCommit(ctx, o.Rev)
	if err != nil {
		return nil, err
	}
	file, err := r.Entry(ctx, string(id), o.Path)
	if err != nil {
		return nil, err
	}
	if file.Type != TypeBlob {
		return nil, fmt.Errorf("blame %.200q: no file: %w", o.Path, ErrNotFound)
	}
	info, err := r.Info(ctx, file.OID)
	if err != nil {
		return nil, err
	}
	if info.Size > maxBlame {
		return nil, fmt.Errorf("blame %.200q of %d bytes: %w", o.Path, info.Size, ErrTooLarge)
	}
	args := []string{"blame", "--porcelain"}
	if o.From != 0 || o.To != 0 {
		if o.From < 1 || o.To < o.From {
			return nil, fmt.Errorf("blame lines %d to %d: %w", o.From, o.To, ErrNotFound)
		}
		args = append(args, fmt.Sprintf("-L%d,%d", o.From, o.To))
	}
	args = append(args, string(id), "--", o.Path)
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok {
		return v.([]BlameRange), nil
	}
	var b blameParser
	err = r.run(ctx, command{args: args}, b.read)
	if err != nil {
		var failure *Error
		if errors.As(err, &failure) && strings.Contains(failure.Stderr, " lines") {
			failure.Kind = ErrNotFound // "file x has only 3 lines"
		}
		return nil, err
	}
	commits, err := r.commits(ctx, b.ids)
	if err != nil {
		return nil, err
	}
	for i := range b.ranges {
		b.ranges[i].Commit = commits[i]
	}
	r.engine.cache.put(key, b.ranges, b.size+200*len(b.ranges))
	return b.ranges, nil
}

// blameParser parses the output of git blame --porcelain: for each line, a header
// with the commit, details of the commit on its first occurrence, and the content
// after a tab.
type blameParser struct {
	ranges []BlameRange
	ids    []OID // commit of each range
	paths  map[OID]string
	before map[OID]previous
	size   int
}

// previous is the version of the file before a commit.
type previous struct {
	commit OID
	path   string
}

func (b *blameParser) read(out io.Reader) error {
	b.paths, b.before = map[OID]string{}, map[OID]previous{}
	in := bufio.NewReaderSize(out, 64<<10)
	var id OID
	line := 0
	inHeader := false // a header was read, but not its content yet
	for {
		text, err := in.ReadString('\n') // bounded by the size of the file
		if errors.Is(err, io.EOF) && text == "" {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		text = strings.TrimSuffix(text, "\n")
		switch {
		case strings.HasPrefix(text, "\t"):
			b.add(id, line, object.Decode([]byte(text[1:]), ""))
			inHeader = false
		case !inHeader:
			hex, rest, _ := strings.Cut(text, " ")
			var ok bool
			if id, ok = ParseOID(hex); !ok {
				return fmt.Errorf("git blame: line %.100q", text)
			}
			if _, err := fmt.Sscan(rest, new(int), &line); err != nil {
				return fmt.Errorf("git blame: line %.100q: %w", text, err)
			}
			inHeader = true
		case strings.HasPrefix(text, "filename "):
			b.paths[id] = unquotePath(text[len("filename "):])
		case strings.HasPrefix(text, "previous "):
			hex, path, _ := strings.Cut(text[len("previous "):], " ")
			if commit, ok := ParseOID(hex); ok {
				b.before[id] = previous{commit, unquotePath(path)}
			}
		}
	}
}

// unquotePath returns a path that git may have quoted.
func unquotePath(path string) string {
	if plain, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		return plain
	}
	return path
}

func (b *blameParser) add(id OID, line int, text string) {
	b.size += len(text) + 16
	n := len(b.ranges)
	path := b.paths[id]
	if n > 0 && b.ids[n-1] == id && b.ranges[n-1].Path == path {
		b.ranges[n-1].Lines = append(b.ranges[n-1].Lines, text)
		return
	}
	b.ids = append(b.ids, id)
	b.ranges = append(b.ranges, BlameRange{
		Path: path, First: line, Lines: []string{text}, Previous: b.before[id].commit, PreviousPath: b.before[id].path,
	})
}
