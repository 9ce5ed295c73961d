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

// Kinds of problems.
const (
	ProblemMissing = "missing"     // a referenced object does not exist
	ProblemLink    = "broken link" // an object references a missing one
	ProblemCorrupt = "corrupt"     // an object or pack cannot be read
	ProblemBad     = "bad object"  // an object violates the rules of git fsck
	ProblemRef     = "bad ref"
	ProblemOther   = "other"
)

// Problem is an error in a repository.
type Problem struct {
	Kind   string
	Object OID    // may be empty
	Text   string // message of git
}

// maxProblems is the maximum number of reported problems.
const maxProblems = 1000

// Fsck checks all objects and refs and returns the problems. Unreachable objects
// are not checked, and faults that pushes may have are ignored. It returns
// ErrNoRepository; problems are not an error.
func (r Repo) Fsck(ctx context.Context) ([]Problem, error) {
	if err := r.refs.Exists(ctx); err != nil {
		return nil, err
	}
	var args []string
	for rule := range strings.SplitSeq(leniency, ",") {
		args = append(args, "-c", "fsck."+rule)
	}
	args = append(args, "fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress")
	said := &boundedBuffer{max: 1 << 20}
	// The exit status is a bit mask.
	c := command{work: transfer, args: args, says: said, ok: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	var found bytes.Buffer
	err := r.run(ctx, c, func(out io.Reader) error {
		_, err := found.ReadFrom(io.LimitReader(out, int64(said.max)))
		return err
	})
	var failure *Error
	if errors.As(err, &failure) && failure.Exit > 0 && failure.Kind != ErrNoRepository {
		err = nil // the cause is in its stderr
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

// Patterns of git's messages about corruption.
var (
	damage = regexp.MustCompile(`corrupt|mismatch|cannot unpack|unable to (unpack|parse|read)|garbage`)
	fullID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
)

// parseFsck parses the output of git fsck.
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
		fields := append(strings.Fields(line), "", "", "", "")
		rest, isError := strings.CutPrefix(line, "error: ")
		switch {
		case fields[0] == "missing":
			add(ProblemMissing, fields[2], line)
		case strings.HasPrefix(line, "broken link from"):
			add(ProblemLink, fields[4], line)
		case fields[0] == "to" && len(list) > 0 && list[len(list)-1].Kind == ProblemLink:
			list[len(list)-1].Text = strings.Join(strings.Fields(list[len(list)-1].Text+" "+line), " ")
		case strings.HasPrefix(line, "error in "):
			add(ProblemBad, strings.TrimSuffix(fields[3], ":"), line)
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

// boundedBuffer keeps the start of what is written to it, up to max bytes.
type boundedBuffer struct {
	bytes.Buffer
	max int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:max(0, min(len(p), b.max-b.Len()))])
	return len(p), nil
}
