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

// GrepOptions are the options of a search in the files of a revision.
type GrepOptions struct {
	Rev  string
	Text string // literal text, ignoring case
	// Paths are case-insensitive patterns, one of which must match; * matches any text
	// including slashes. Empty matches all paths.
	Paths   []string
	Keep    func(path string) bool // filter on paths; nil keeps all
	Context int                    // number of lines before and after a match
	Limit   int                    // maximum number of hunks
}

// Hunk is a range of lines with at least one match.
type Hunk struct {
	Path  string
	Start int // number of the first line
	Lines []string
}

const (
	// grepTime is the time limit of a search.
	grepTime = 10 * time.Second
	// maxGrepLine and maxGrepLines limit the line length and the number of lines of a
	// hunk.
	maxGrepLine  = 1000
	maxGrepLines = 100
	// maxGrepText is the maximum length of the text and of each pattern in bytes.
	maxGrepText = 4096
)

// Grep returns the hunks of text files that contain a text, by path, up to Limit,
// and whether there are more. Files whose paths are not UTF-8 are skipped. It
// returns ErrBadRevision, ErrNotFound, and ErrTooLarge if the text is too long.
func (r Repo) Grep(ctx context.Context, o GrepOptions) (hunks []Hunk, more bool, err error) {
	tree, err := r.ResolveTree(ctx, o.Rev)
	if err != nil || tree == EmptyTree || o.Text == "" {
		return nil, false, err
	}
	if len(o.Text) > maxGrepText || strings.ContainsAny(o.Text, "\x00") {
		return nil, false, fmt.Errorf("git grep: %w", ErrTooLarge)
	}
	if strings.Contains(o.Text, "\n") {
		return nil, false, nil // git would search for each line separately
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

// pathspec escapes all special characters of a pattern except *.
func pathspec(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`).Replace(pattern)
}

// hunkParser parses the output of git grep: tree:path NUL number NUL text. Matches
// with adjacent context form one hunk.
type hunkParser struct {
	in     *bufio.Reader
	prefix string
	ahead  *Hunk // the first line of the next hunk
}

// next returns the next hunk, or io.EOF.
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

// line parses one line and skips hunk separators. A path may contain any byte but
// NUL.
func (p *hunkParser) line() (*Hunk, error) {
	const separator = "--\n"
	for {
		head, err := p.in.Peek(len(separator))
		if len(head) == 0 {
			return nil, err
		}
		if string(head) != separator {
			break
		}
		if _, err := p.in.Discard(len(separator)); err != nil {
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

// maxGrepRead is the maximum length of a path.
const maxGrepRead = 8 << 10

// until reads up to a delimiter, which it drops, and keeps at most limit bytes.
// The end of the output also ends a non-empty field.
func (p *hunkParser) until(end byte, limit int) ([]byte, error) {
	var field []byte
	read := 0
	for {
		part, err := p.in.ReadSlice(end)
		read += len(part)
		if err == nil {
			part = part[:len(part)-1]
		}
		field = append(field, part[:min(len(part), limit-len(field))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && read > 0:
			return field, nil
		default:
			return nil, err
		}
	}
}
