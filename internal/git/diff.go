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
	"unicode/utf8"
)

// DiffOptions says what is compared and how much of it is wanted. A limit that
// is zero takes the value beside it.
type DiffOptions struct {
	From string // a revision; empty is the empty tree
	To   string
	// Straight compares the two as they are. Otherwise To is compared with
	// the merge base of both.
	Straight bool
	// Base finds the merge base, if the caller has a better way than to ask
	// for it in another process.
	Base func(context.Context) (OID, error)
	// Unidiff leaves the lines with the names of both files in the texts.
	Unidiff          bool
	Paths            []string
	IgnoreWhitespace bool
	Context          int // lines around a change; 3

	MaxFiles    int           // files with a text: 1,000
	MaxLines    int           // lines of all texts: 50,000
	MaxFileSize int           // bytes of one text: 1 MiB
	MaxSize     int           // bytes of all texts, after which no further one is read: 16 MiB
	Time        time.Duration // the time of reading
}

// FileDiff is what became of one file.
type FileDiff struct {
	OldPath, NewPath string // the same unless it was renamed
	AMode, BMode     string // 0 before it was made and after it was deleted
	OldID, NewID     OID
	New              bool
	Renamed          bool
	Deleted          bool
	Binary           bool
	// Diff is valid UTF-8, whatever the file is. It is empty when the file
	// is binary, was only renamed, or TooLarge.
	Diff     string
	TooLarge bool // a limit was over
	Added    int  // lines in Diff
	Removed  int
}

// Diff is a comparison. It must not be changed.
type Diff struct {
	Base  OID // what To was compared with
	Files []FileDiff
	// Overflow says that a limit was over and texts are missing.
	Overflow bool
	// TimedOut says that git had not finished; the files may be missing, or
	// only their texts.
	TimedOut bool
}

// maxDiffFiles is the most files that a comparison lists. With more of them
// there are no texts.
const maxDiffFiles = 100_000

func (o DiffOptions) filled(e *Engine) DiffOptions {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.Context, 3)
	set(&o.MaxFiles, 1000)
	set(&o.MaxLines, 50_000)
	set(&o.MaxFileSize, 1<<20)
	set(&o.MaxSize, 16<<20)
	if o.Time == 0 {
		o.Time = e.limits.Read
	}
	return o
}

// Diff compares two revisions. When the time is over it gives what there is,
// marked as such. It returns ErrBadRevision, ErrBadPath, and ErrNotFound for a
// revision that is not there or two that have no merge base.
func (r Repo) Diff(ctx context.Context, o DiffOptions) (*Diff, error) {
	o = o.filled(r.engine)
	to, err := r.ResolveTree(ctx, o.To)
	if err != nil {
		return nil, err
	}
	switch {
	case o.From == "":
		return r.diffTrees(ctx, o, EmptyTree, to)
	case o.Straight:
		base, err := r.ResolveCommit(ctx, o.From)
		if errors.Is(err, ErrNotFound) {
			base, err = r.ResolveTree(ctx, o.From)
		}
		if err != nil {
			return nil, err
		}
		return r.diffTrees(ctx, o, base, to)
	}
	ids, err := r.resolveAll(ctx, []string{o.From, o.To})
	if err != nil {
		return nil, err
	}
	if base, ok := r.knownMergeBase(ids); ok {
		return r.diffTrees(ctx, o, base, to)
	}
	return r.diffFromBase(ctx, o, ids, to)
}

// diffFromBase compares with a merge base that is not known yet. Git can look
// for it in the process that compares, but does not tell what it found; Base or
// another process does, at the same time.
func (r Repo) diffFromBase(ctx context.Context, o DiffOptions, ids []string, to OID) (*Diff, error) {
	args, err := o.args(append([]string{"--merge-base", "--end-of-options"}, ids...))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type found struct {
		base OID
		err  error
	}
	answer := make(chan found, 1)
	find := o.Base
	if find == nil {
		find = func(ctx context.Context) (OID, error) { return r.MergeBase(ctx, ids...) }
	}
	go func() {
		base, err := find(ctx)
		if err != nil {
			cancel() // there is nothing to compare
		}
		answer <- found{base, err}
	}()
	d, size, diffErr := r.runDiff(ctx, o, args)
	f := <-answer
	if f.err != nil {
		return nil, f.err
	}
	var failure *Error
	if errors.As(diffErr, &failure) && failure.Exit > 0 {
		return r.diffTrees(ctx, o, f.base, to) // there are several bases, and MergeBase chose
	}
	if diffErr != nil {
		return nil, diffErr
	}
	d.Base = f.base
	return d, r.keepDiff(o, d, size, f.base, to)
}

// diffTrees compares a commit or tree with a tree.
func (r Repo) diffTrees(ctx context.Context, o DiffOptions, base, to OID) (*Diff, error) {
	args, err := o.args([]string{"--end-of-options", string(base), string(to)})
	if err != nil {
		return nil, err
	}
	if v, ok := r.engine.cache.get(r.diffKey(o, args)); ok {
		return v.(*Diff), nil
	}
	d, size, err := r.runDiff(ctx, o, args)
	if err != nil {
		return nil, err
	}
	d.Base = base
	return d, r.keepDiff(o, d, size, base, to)
}

// keepDiff caches a comparison that is complete, under what it compares.
func (r Repo) keepDiff(o DiffOptions, d *Diff, size int, base, to OID) error {
	args, err := o.args([]string{"--end-of-options", string(base), string(to)})
	if err == nil && !d.TimedOut {
		r.engine.cache.put(r.diffKey(o, args), d, size)
	}
	return err
}

func (r Repo) diffKey(o DiffOptions, args []string) cacheKey {
	limits := fmt.Sprint(o.Unidiff, o.MaxFiles, o.MaxLines, o.MaxFileSize, o.MaxSize)
	return cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00") + "\x00" + limits}
}

// args are those of the command that compares what is named.
func (o DiffOptions) args(what []string) ([]string, error) {
	args := []string{"diff-tree", "-r", "--raw", "-p", "-z", "--find-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "--unified=" + strconv.Itoa(o.Context)}
	if o.IgnoreWhitespace {
		args = append(args, "--ignore-all-space")
	}
	args = append(append(args, what...), "--")
	for _, path := range o.Paths {
		path = strings.Trim(path, "/")
		if err := checkPath(path); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	return args, nil
}

// runDiff gives a comparison and about the bytes that it takes.
func (r Repo) runDiff(ctx context.Context, o DiffOptions, args []string) (*Diff, int, error) {
	p := diffParser{o: o, diff: &Diff{}}
	err := r.run(ctx, command{args: args, limit: o.Time}, p.read)
	if errors.Is(err, ErrTimeout) {
		p.diff.TimedOut, err = true, nil
	}
	if err != nil {
		return nil, 0, err
	}
	p.finish()
	return p.diff, p.size + 400*len(p.diff.Files), nil
}

// diffParser reads the output of diff-tree --raw -p -z: first a list of all
// files, then their texts in the same order.
type diffParser struct {
	o     DiffOptions
	diff  *Diff
	size  int // bytes of all texts
	lines int
	texts int   // files with a text so far
	order []int // the file of each text that follows

	text []byte // of the file that is being read; the room is used again
	at   int    // which file that is; -1 before the first
	big  bool   // its text is not wanted any more
	body bool   // the head of its text is over
}

func (p *diffParser) read(out io.Reader) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c == 0 {
			return p.readTexts(in)
		}
		if err := p.readFile(in); err != nil {
			return err
		}
	}
}

// readFile reads "<mode> <mode> <id> <id> <status>\0<path>\0[<path>\0]".
func (p *diffParser) readFile(in *bufio.Reader) error {
	next := func() string {
		s, err := in.ReadString(0)
		if err != nil {
			return ""
		}
		return s[:len(s)-1]
	}
	field := strings.Fields(next())
	if len(field) != 5 {
		return fmt.Errorf("git diff-tree: entry %.200q", field)
	}
	f := FileDiff{AMode: mode(field[0]), BMode: mode(field[1]), OldID: OID(field[2]), NewID: OID(field[3]), OldPath: next()}
	f.NewPath = f.OldPath
	switch field[4][0] {
	case 'A':
		f.New = true
	case 'D':
		f.Deleted = true
	case 'R':
		f.Renamed, f.NewPath = true, next()
	}
	if len(p.diff.Files) == maxDiffFiles {
		p.diff.Overflow = true
		return errEnough
	}
	p.order = append(p.order, len(p.diff.Files))
	if field[4][0] == 'T' { // it is deleted in one text and made in another
		p.order = append(p.order, len(p.diff.Files))
	}
	p.diff.Files = append(p.diff.Files, f)
	return nil
}

func mode(text string) string {
	if text == "000000" {
		return "0"
	}
	return text
}

func (p *diffParser) readTexts(in *bufio.Reader) error {
	p.at = -1
	start := true // of a line
	for {
		if start && p.at >= 0 && p.body && !p.big {
			p.addLines(in)
		}
		part, err := in.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if len(part) > 0 {
			if stop := p.add(part, start); stop {
				return errEnough
			}
		}
		if errors.Is(err, io.EOF) {
			p.endText()
			p.order = nil
			return nil
		}
		start = whole
	}
}

// addLines takes the whole lines of a text that are there already, up to its
// end or to a limit: most of a text is taken in few steps. What add would do
// more than count and copy is left to it.
func (p *diffParser) addLines(in *bufio.Reader) {
	there, _ := in.Peek(in.Buffered()) // can not fail
	f, n := &p.diff.Files[p.at], 0
	for n < len(there) && there[n] != 'd' && p.lines < p.o.MaxLines {
		size := bytes.IndexByte(there[n:], '\n') + 1
		if size == 0 || len(p.text)+n+size > p.o.MaxFileSize {
			break
		}
		switch there[n] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
		p.lines++
		n += size
	}
	p.text = append(p.text, there[:n]...)
	_, _ = in.Discard(n) // as it was peeked
}

// add takes a part of a line. Lines of a file's content start with another
// letter than those of the head.
func (p *diffParser) add(part []byte, start bool) (stop bool) {
	if start && part[0] == 'd' && strings.HasPrefix(string(part), "diff --git ") {
		p.endText()
		if len(p.order) == 0 {
			return true
		}
		if p.at != p.order[0] {
			p.texts++
		}
		p.at, p.order = p.order[0], p.order[1:]
		p.big, p.body = false, false
		if p.texts > p.o.MaxFiles || p.lines > p.o.MaxLines || p.size > p.o.MaxSize {
			p.order = append([]int{p.at}, p.order...) // finish marks it
			p.at = -1
			return true
		}
		return false
	}
	if p.at < 0 || p.big {
		return false
	}
	f := &p.diff.Files[p.at]
	if !p.body {
		switch {
		case start && part[0] == '@':
			p.body = true
		case start && strings.HasPrefix(string(part), "Binary files "):
			f.Binary = true
			return false
		case start && p.o.Unidiff && (strings.HasPrefix(string(part), "--- ") || strings.HasPrefix(string(part), "+++ ")):
		default:
			return false
		}
	}
	if start && p.body {
		p.lines++
		switch part[0] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
	}
	if len(p.text)+len(part) > p.o.MaxFileSize || p.lines > p.o.MaxLines {
		p.big, f.TooLarge, p.diff.Overflow = true, true, true
		p.text = p.text[:0]
		f.Diff, f.Added, f.Removed = "", 0, 0
		return false
	}
	p.text = append(p.text, part...)
	return false
}

func (p *diffParser) endText() {
	if p.at < 0 || len(p.text) == 0 {
		return
	}
	text := string(p.text)
	if !utf8.Valid(p.text) { // which is asked much faster than it is mended
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	p.diff.Files[p.at].Diff += text
	p.size += len(p.text)
	p.text = p.text[:0]
}

// finish marks the files whose text was not read.
func (p *diffParser) finish() {
	if p.diff.TimedOut && p.at >= 0 && len(p.text) > 0 {
		p.order = append([]int{p.at}, p.order...) // half a text is none
		p.diff.Files[p.at].Added, p.diff.Files[p.at].Removed = 0, 0
	}
	for _, at := range p.order {
		p.diff.Files[at].TooLarge = true
		p.diff.Overflow = true
	}
}
