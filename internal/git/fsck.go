package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// The kinds of problems.
const (
	ProblemMissing = "missing"     // an object that others need
	ProblemLink    = "broken link" // an object that needs one that is missing
	ProblemCorrupt = "corrupt"     // an object or pack that cannot be read
	ProblemBad     = "bad object"  // an object that breaks the rules of git
	ProblemRef     = "bad ref"
	ProblemOther   = "other"
)

// Problem is something that is wrong with a repository.
type Problem struct {
	Kind   string
	Object OID    // empty when it is not about one object
	Text   string // in git's words
}

// maxProblems limits the reported problems; a repository with more is known to be
// broken.
const maxProblems = 1000

// Fsck reads all objects and follows all refs, and gives what is wrong. What
// nothing leads to is no problem, and neither are the faults that pushes may
// have. It returns ErrNoRepository; that a repository is broken is no error.
func (r Repo) Fsck(ctx context.Context) ([]Problem, error) {
	if err := r.refs.Exists(); err != nil {
		return nil, err
	}
	var args []string
	for rule := range strings.SplitSeq(leniency, ",") {
		args = append(args, "-c", "fsck."+rule)
	}
	args = append(args, "fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress")
	said := &boundedBuffer{most: 1 << 20}
	// Its status is made of bits for what it found.
	c := command{work: transfer, args: args, says: said, ok: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	var found bytes.Buffer
	err := r.run(ctx, c, func(out io.Reader) error {
		_, err := found.ReadFrom(io.LimitReader(out, int64(said.most)))
		return err
	})
	var failure *Error
	if errors.As(err, &failure) && failure.Exit > 0 && failure.Kind != ErrNoRepository {
		err = nil // what it died of is in what it said
	}
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", r.path, err)
	}
	problems := parseFsck(strings.ReplaceAll(found.String()+said.String(), r.path, "."))
	if len(problems) == 0 && failure != nil {
		problems = []Problem{{Kind: ProblemOther, Text: failure.Error()}}
	}
	return problems, nil
}

// Git has many words for damage.
var (
	damage = regexp.MustCompile(`corrupt|mismatch|cannot unpack|unable to (unpack|parse|read)|garbage`)
	fullID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
)

// parseFsck reads what git fsck says.
func parseFsck(text string) []Problem {
	var list []Problem
	add := func(kind, object, text string) {
		id, _ := ParseOID(object)
		p := Problem{kind, id, strings.ToValidUTF8(text, "\uFFFD")}
		if len(list) < maxProblems && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		word := append(strings.Fields(line), "", "", "", "")
		rest, isError := strings.CutPrefix(line, "error: ")
		switch {
		case word[0] == "missing":
			add(ProblemMissing, word[2], line)
		case strings.HasPrefix(line, "broken link from"):
			add(ProblemLink, word[4], line)
		case word[0] == "to" && len(list) > 0 && list[len(list)-1].Kind == ProblemLink:
			list[len(list)-1].Text = strings.Join(strings.Fields(list[len(list)-1].Text+" "+line), " ")
		case strings.HasPrefix(line, "error in "):
			add(ProblemBad, strings.TrimSuffix(word[3], ":"), line)
		case isError && (strings.HasPrefix(rest, "refs/") || strings.HasPrefix(rest, "HEAD")):
			add(ProblemRef, "", rest)
		case isError && (kindOf(rest) == ErrCorrupt || damage.MatchString(rest)):
			add(ProblemCorrupt, fullID.FindString(rest), rest)
		case isError, strings.HasPrefix(line, "fatal: "), strings.HasPrefix(line, "bad "):
			add(ProblemOther, "", strings.TrimPrefix(line, "error: "))
		}
	}
	return list
}

// boundedBuffer keeps the beginning of what is written to it.
type boundedBuffer struct {
	bytes.Buffer
	most int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:max(0, min(len(p), b.most-b.Len()))])
	return len(p), nil
}
