package merge

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// Limits of conflicts that can be resolved: number of files, bytes of a file with
// conflict markers, bytes of all files, and number of sections.
const (
	maxConflictFiles    = 50
	maxConflictFile     = 200 << 10
	maxConflictBytes    = 1 << 20
	maxConflictSections = 1000
)

// ConflictSet has the conflicts of a merge request.
type ConflictSet struct {
	Request *MergeRequest
	Head    git.OID // of the source branch
	Target  git.OID // of the target branch
	Files   []ConflictFile
	Message string // default message of the merge commit
	Reason  string // why the conflicts cannot be resolved here; empty if they can
}

// ConflictFile is a file with conflicts.
type ConflictFile struct {
	Path     string
	Reason   string // why it cannot be resolved; empty if it can
	Content  string // with conflict markers
	Sections []ConflictSection
}

// ConflictSection is a part of a file: lines without a conflict, or the lines of the
// source branch (ours) and of the target branch (theirs).
type ConflictSection struct {
	Conflict     bool
	Lines        []string
	Ours, Theirs []string
}

// Conflicts returns the conflicts of an open merge request, for users who may push
// to its source branch. NotFound; Forbidden; NotAllowed if there are none.
func (s *Service) Conflicts(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*ConflictSet, error) {
	in, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := changeable(by, in); err != nil {
		return nil, err
	}
	if m.State != Opened {
		return nil, notReady()
	}
	if _, err := s.requirePush(ctx, by, m); err != nil {
		return nil, err
	}
	target, err := s.tip(ctx, in, m.TargetBranch)
	if err != nil {
		return nil, err
	}
	if target == "" {
		return nil, notReady()
	}
	list, err := s.Repos.Conflicts(ctx, in, git.OID(m.Head), target, maxConflictFile)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, notReady()
	}
	c := &ConflictSet{Request: m, Head: git.OID(m.Head), Target: target}
	c.read(list)
	return c, nil
}

// read parses the conflicts into files and sections.
func (c *ConflictSet) read(list []git.Conflict) {
	if len(list) > maxConflictFiles {
		c.Reason = fmt.Sprintf("There are conflicts in %d files. At most %d can be resolved here.", len(list), maxConflictFiles)
		list = list[:maxConflictFiles]
	}
	size, sections := 0, 0
	var paths []string
	for _, one := range list {
		f := ConflictFile{Path: one.Path, Reason: unresolvable(one)}
		if f.Reason == "" {
			f.Content = string(one.Content)
			var ok bool
			if f.Sections, ok = parseConflict(f.Content, string(c.Head), string(c.Target)); !ok {
				f.Reason, f.Content, f.Sections = "The sections of the conflict are ambiguous.", "", nil
			}
			size, sections = size+len(f.Content), sections+len(f.Sections)
		}
		if f.Reason != "" && c.Reason == "" {
			c.Reason = "A file cannot be resolved here."
		}
		c.Files, paths = append(c.Files, f), append(paths, one.Path)
	}
	if size > maxConflictBytes || sections > maxConflictSections {
		c.Reason = "The conflicts are too large to be resolved here."
		for i := range c.Files {
			c.Files[i].Content, c.Files[i].Sections = "", nil
		}
	}
	c.Message = fmt.Sprintf("Merge branch '%s' into '%s'\n\nConflicts:\n- %s\n", c.Request.TargetBranch, c.Request.SourceBranch, strings.Join(paths, "\n- "))
}

// unresolvable returns why a conflict cannot be resolved by choosing lines.
func unresolvable(c git.Conflict) string {
	switch {
	case c.Ours.OID == "" && c.Theirs.OID == "":
		return "The file was renamed or deleted on both branches."
	case c.Ours.OID == "":
		return "The file was deleted on the source branch and changed on the target branch."
	case c.Theirs.OID == "":
		return "The file was changed on the source branch and deleted on the target branch."
	case !regular(c.Ours.Mode) || !regular(c.Theirs.Mode):
		return "The file is a symbolic link or a submodule."
	case c.Merged == "":
		return "The conflict is about the name of the file."
	case c.Size > maxConflictFile:
		return fmt.Sprintf("The file is larger than %d KiB.", maxConflictFile>>10)
	case bytes.IndexByte(c.Content, 0) >= 0 || !utf8.Valid(c.Content):
		return "The file is not UTF-8 text."
	}
	return ""
}

func regular(mode string) bool { return mode == "100644" || mode == "100755" }

// parseConflict splits a file at its conflict markers, whose labels are the commits.
// It returns false if there is no conflict, or if it is ambiguous where ours ends.
func parseConflict(content, ours, theirs string) ([]ConflictSection, bool) {
	const start, middle, end = "<<<<<<< ", "=======", ">>>>>>> "
	var list []ConflictSection
	var now *ConflictSection
	side, found := 0, false // 0 outside, 1 ours, 2 theirs
	next := func(conflict bool) {
		list = append(list, ConflictSection{Conflict: conflict})
		now = &list[len(list)-1]
	}
	for _, line := range diffnote.SplitLines([]byte(content)) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case side == 0 && strings.HasPrefix(bare, start+ours):
			next(true)
			side, found = 1, true
		case side == 1 && bare == middle:
			side = 2
		case side == 2 && strings.HasPrefix(bare, end+theirs):
			side, now = 0, nil
		case side == 2 && bare == middle:
			return nil, false
		case side == 1:
			now.Ours = append(now.Ours, line)
		case side == 2:
			now.Theirs = append(now.Theirs, line)
		default:
			if now == nil {
				next(false)
			}
			now.Lines = append(now.Lines, line)
		}
	}
	return list, found && side == 0
}

// Resolution has the data of the merge commit that resolves conflicts.
type Resolution struct {
	Head, Target string // expected commits of the branches
	Message      string // empty for the default
	Files        map[string]FileResolution
}

// FileResolution resolves the conflicts of a file: with its whole content, or with a
// choice for each section with a conflict.
type FileResolution struct {
	Content *string
	Choices []string // ours or theirs
}

// ResolveConflicts merges the target branch into the source branch of a merge
// request, for users who may push to the source branch. NotFound; Forbidden;
// NotAllowed if there are no conflicts; Invalid if a conflict is not resolved;
// Conflict if a branch has moved.
func (s *Service) ResolveConflicts(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, r Resolution) error {
	c, err := s.Conflicts(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if string(c.Head) != r.Head || string(c.Target) != r.Target {
		return errs.Conflict("One of the branches has new commits. Review the conflicts again.")
	}
	if c.Reason != "" {
		return errs.Unprocessable("%s", c.Reason)
	}
	files := map[string][]byte{}
	for _, f := range c.Files {
		content, err := f.resolve(r.Files[f.Path])
		if err != nil {
			return err
		}
		files[f.Path] = []byte(content)
	}
	message := r.Message
	if strings.TrimSpace(message) == "" {
		message = c.Message
	}
	in, err := s.system(ctx, &c.Request.ProjectID)
	if err != nil {
		return err
	}
	if in == nil || c.Request.SourceProjectID == nil {
		return errs.NotFound("Merge Request")
	}
	err = s.Repos.Resolve(ctx, by, in, c.Target, project.RefTo(*c.Request.SourceProjectID), c.Request.SourceBranch, c.Head, message, files)
	if err != nil {
		return fmt.Errorf("resolve conflicts of merge request %d: %w", c.Request.ID, err)
	}
	return nil
}

// resolve returns the content of a resolved file. Invalid.
func (f ConflictFile) resolve(r FileResolution) (string, error) {
	if r.Content != nil {
		if len(*r.Content) > 2*maxConflictFile {
			return "", errs.Invalid("The content of %s is too large.", f.Path)
		}
		for line := range strings.Lines(*r.Content) {
			if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
				return "", errs.Invalid("The content of %s still has conflict markers.", f.Path)
			}
		}
		return *r.Content, nil
	}
	var b strings.Builder
	n := 0
	for _, part := range f.Sections {
		lines := part.Lines
		if part.Conflict {
			switch {
			case n < len(r.Choices) && r.Choices[n] == "ours":
				lines = part.Ours
			case n < len(r.Choices) && r.Choices[n] == "theirs":
				lines = part.Theirs
			default:
				return "", errs.Invalid("Choose a side for each conflict in %s.", f.Path)
			}
			n++
		}
		for _, line := range lines {
			b.WriteString(line)
		}
	}
	return b.String(), nil
}
