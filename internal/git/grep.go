package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// GrepOptions says what is searched for in the files of a revision.
type GrepOptions struct {
	Rev  string
	Text string // is found in a line, in any case; it is no pattern
	// Paths are patterns of paths, one of which a file must match: * is any
	// text, also with slashes, and letters match in any case. Empty is all.
	Paths   []string
	Keep    func(path string) bool // nil keeps all paths
	Context int                    // lines before and after a match
	Limit   int                    // of hunks
}

// Hunk is some lines of a file that follow each other, with at least one match.
type Hunk struct {
	Path  string
	Start int // the number of the first line
	Lines []string
}

const (
	// grepTime is how long one search may take.
	grepTime = 10 * time.Second
	// maxGrepLine and maxGrepLines bound what is kept of a hunk.
	maxGrepLine  = 1000
	maxGrepLines = 100
	// maxGrepText bounds the text and each pattern in bytes.
	maxGrepText = 4096
)

// Grep returns the places in text files that contain a text, in the order of
// the paths, at most Limit, and whether there are more. Files whose paths are
// not UTF-8 are left out. It returns ErrBadRevision, ErrNotFound, and
// ErrTooLarge for a text that is too long.
func (r Repo) Grep(ctx context.Context, o GrepOptions) (hunks []Hunk, more bool, err error) {
	tree, err := r.ResolveTree(ctx, o.Rev)
	if err != nil || tree == EmptyTree || o.Text == "" {
		return nil, false, err
	}
	if len(o.Text) > maxGrepText || strings.ContainsAny(o.Text, "\x00") {
		return nil, false, fmt.Errorf("git grep: %w", ErrTooLarge)
	}
	if strings.Contains(o.Text, "\n") {
		return nil, false, nil // git would look for each line alone
	}
	args := []string{
		"grep", "--threads=1", "-z", "-n", "-I", "-i", "-F", "--full-name", "--no-color", "--no-textconv", "--no-recurse-submodules",
		"-C", strconv.Itoa(o.Context), "-e", o.Text, string(tree), "--",
	}
	for _, path := range o.Paths {
		if len(path) > maxGrepText || strings.Contains(path, "\x00") {
			return nil, false, fmt.Errorf("git grep: %w", ErrTooLarge)
		}
		args = append(args, ":(icase)"+pathspec(path))
	}
	c := command{args: args, env: []string{"GIT_LITERAL_PATHSPECS=0"}, limit: min(grepTime, r.engine.limits.Read), ok: []int{1}}
	err = r.run(ctx, c, func(out io.Reader) error {
		p := hunkParser{in: bufio.NewReaderSize(out, 64<<10), prefix: string(tree) + ":"}
		for {
			h, err := p.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if strings.ToValidUTF8(h.Path, "") != h.Path || o.Keep != nil && !o.Keep(h.Path) {
				continue
			}
			if len(hunks) == o.Limit {
				more = true
				return errEnough
			}
			hunks = append(hunks, *h)
		}
	})
	return hunks, more, err
}

// pathspec takes the meaning of all signs but * from a pattern.
func pathspec(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`).Replace(pattern)
}

// hunkParser reads the output of git grep: tree:path NUL number NUL text.
// Matches whose context touches are one hunk.
type hunkParser struct {
	in     *bufio.Reader
	prefix string
	ahead  *Hunk // the first line of the next hunk
}

// next returns a hunk, io.EOF after the last.
func (p *hunkParser) next() (*Hunk, error) {
	h := p.ahead
	p.ahead = nil
	count := 0
	if h != nil {
		count = 1
	}
	for {
		line, err := p.line()
		if errors.Is(err, io.EOF) && h != nil {
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case h == nil:
			h, count = line, 1
		case line.Path != h.Path || line.Start != h.Start+count:
			p.ahead = line
			return h, nil
		default:
			if count++; len(h.Lines) < maxGrepLines {
				h.Lines = append(h.Lines, line.Lines[0])
			}
		}
	}
}

// line reads one line of a file; what stands between hunks is passed over. A
// path may have any byte but NUL.
func (p *hunkParser) line() (*Hunk, error) {
	const between = "--\n"
	for {
		head, err := p.in.Peek(len(between))
		if len(head) == 0 {
			return nil, err
		}
		if string(head) != between {
			break
		}
		if _, err := p.in.Discard(len(between)); err != nil {
			return nil, err
		}
	}
	path, err := p.until(0, maxGrepRead)
	if err != nil {
		return nil, err
	}
	number, err := p.until(0, maxGrepRead)
	if err != nil {
		return nil, err
	}
	text, err := p.until('\n', maxGrepLine)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(string(number))
	if err != nil || !bytes.HasPrefix(path, []byte(p.prefix)) {
		return nil, fmt.Errorf("git grep gave %.200q for a line", path)
	}
	clean := strings.ToValidUTF8(string(bytes.TrimSuffix(text, []byte("\r"))), "\uFFFD")
	return &Hunk{Path: string(path[len(p.prefix):]), Start: n, Lines: []string{strings.ReplaceAll(clean, "\x00", "\uFFFD")}}, nil
}

// maxGrepRead is the longest path that is kept whole.
const maxGrepRead = 8 << 10

// until reads up to a byte, which it drops, and keeps at most so many bytes. It
// also ends at the end of the output, if something was read.
func (p *hunkParser) until(end byte, most int) ([]byte, error) {
	var kept []byte
	read := 0
	for {
		part, err := p.in.ReadSlice(end)
		read += len(part)
		if err == nil {
			part = part[:len(part)-1]
		}
		kept = append(kept, part[:min(len(part), most-len(kept))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && read > 0:
			return kept, nil
		default:
			return nil, err
		}
	}
}
