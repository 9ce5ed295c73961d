package merge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
	"svc/internal/repo"
)

// Limits of suggestions: the size of a file with suggestions in bytes, the number of
// suggestions applied by one commit, and the number of commits that the head is
// compared with to detect outdated suggestions.
const (
	maxSuggestionFile = 1 << 20
	maxBatch          = 100
	maxCompared       = 20
)

const suggestionTemplate = "Apply %{suggestions_count} suggestion(s) to %{files_count} file(s)\n\n%{co_authored_by}"

// outdated is the reason for a suggestion whose lines have changed.
const outdated = "The lines were changed after this suggestion was made."

// checkSuggestions sets whether the suggestions of notes can be applied to the
// head of a merge request.
func (s *Service) checkSuggestions(ctx context.Context, in *project.Project, m *MergeRequest, notes []*plan.Note) error {
	refuse := func(n *plan.Note, why string) {
		for _, one := range n.Suggestions {
			if one.Appliable = false; !one.Applied() {
				one.Reason = why
			}
		}
	}
	byHead, late := map[string][]*plan.Note{}, map[string][]lateSuggestion{}
	for _, n := range notes {
		switch {
		case m.State != Opened:
			refuse(n, "The merge request is not open.")
		case m.SourceProjectID == nil:
			refuse(n, "The source project was deleted.")
		case n.Position == nil:
			refuse(n, outdated)
		default:
			byHead[n.Position.HeadSHA] = append(byHead[n.Position.HeadSHA], n)
		}
	}
	for head, list := range byHead {
		files := map[string]*git.FileDiff{}
		if head != m.Head {
			if len(byHead) > maxCompared {
				for _, n := range list {
					refuse(n, outdated)
				}
				continue
			}
			var err error
			if files, err = s.changedSince(ctx, in, m, head, list); err != nil {
				return err
			}
		}
		for _, n := range list {
			f, changed := files[n.Position.NewPath]
			for _, one := range n.Suggestions {
				checkSuggestion(one, f, changed)
				if !one.Applied() && changed && f != nil && one.MayBeApplied(f) {
					late[n.Position.NewPath] = append(late[n.Position.NewPath], lateSuggestion{one, f})
				}
			}
		}
	}
	return s.settleSuggestions(ctx, in, m, late)
}

// lateSuggestion is a suggestion that is not marked as applied, although its lines
// in the file were changed.
type lateSuggestion struct {
	*diffnote.Suggestion
	diff *git.FileDiff
}

// maxSettled is the maximum number of files that are read to settle suggestions.
const maxSettled = 10

// settleSuggestions marks suggestions as applied whose lines match the suggestion. A
// crash after the commit that applies them can leave them unmarked.
func (s *Service) settleSuggestions(ctx context.Context, in *project.Project, m *MergeRequest, late map[string][]lateSuggestion) error {
	var done []*diffnote.Suggestion
	var ids []int64
	for i, path := range slices.Sorted(maps.Keys(late)) {
		if i == maxSettled {
			break
		}
		content, err := s.Repos.TextAt(ctx, in, git.OID(m.Head), path, maxSuggestionFile)
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return err
		}
		lines := diffnote.SplitLines(content)
		for _, one := range late[path] {
			if one.IsApplied(one.diff, lines) {
				done, ids = append(done, one.Suggestion), append(ids, one.ID)
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.Plan.SettleApplied(ctx, ids, m.Head); err != nil {
		return err
	}
	now := s.Now()
	for _, one := range done {
		one.AppliedAt, one.CommitSHA, one.Appliable, one.Reason = &now, m.Head, false, ""
	}
	return nil
}

// changedSince returns the diffs of the files of notes since a commit, by old path.
// Unchanged files are left out; a nil diff means unknown.
func (s *Service) changedSince(ctx context.Context, in *project.Project, m *MergeRequest, since string, notes []*plan.Note) (map[string]*git.FileDiff, error) {
	var paths []string
	for _, n := range notes {
		if !slices.Contains(paths, n.Position.NewPath) {
			paths = append(paths, n.Position.NewPath)
		}
	}
	files := map[string]*git.FileDiff{}
	d, err := s.Repos.DiffOf(ctx, in, git.OID(since), git.OID(m.Head), git.DiffOptions{Paths: paths, Context: 1, MaxFiles: len(paths) + 1, MaxLines: 1 << 18})
	if errs.Is(err, errs.KindNotFound) { // a commit no longer exists
		for _, path := range paths {
			files[path] = nil
		}
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for i, f := range d.Files {
		files[f.OldPath] = &d.Files[i]
	}
	return files, nil
}

// checkSuggestion sets whether a suggestion can be applied, given the diff of its
// file if it changed since.
func checkSuggestion(one *diffnote.Suggestion, f *git.FileDiff, changed bool) {
	one.Appliable, one.Reason, one.Offset = false, "", 0
	switch {
	case one.Applied():
		return
	case one.Same():
		one.Reason = "The suggestion changes nothing."
		return
	case changed && (f == nil || f.Deleted || f.Binary || f.TooLarge):
		one.Reason = outdated
		return
	}
	if changed {
		for l := range f.Lines() {
			switch {
			case l.Kind == '-' && l.Old < one.FromLine:
				one.Offset--
			case l.Kind == '+' && l.Old <= one.FromLine:
				one.Offset++
			case (l.Kind == '-' || l.Kind == '+') && l.Old <= one.ToLine:
				one.Reason = outdated
				return
			}
		}
	}
	one.Appliable = true
}

// ApplySuggestions applies suggestions of one merge request in a commit on its
// source branch and resolves their threads, for users who may push to the branch.
// message replaces the template of the project. NotFound; Forbidden; Invalid for
// suggestions that cannot be applied; Conflict if the branch has moved.
func (s *Service) ApplySuggestions(ctx context.Context, by actor.Actor, ids []int64, message string) ([]*diffnote.Suggestion, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 || len(ids) > maxBatch {
		return nil, errs.InvalidField("ids", "must have 1 to %d suggestions", maxBatch)
	}
	target, projectID, iid, err := s.Plan.SuggestionTarget(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	if target.Kind != plan.MergeKind {
		return nil, errs.NotFound("Suggestion")
	}
	in, m, err := s.opened(ctx, by, project.RefTo(projectID), iid)
	if err != nil {
		return nil, hideAs(err, "Suggestion")
	}
	on := s.noteable(by, in, m)
	notes, err := s.Plan.SuggestedNotes(ctx, on, ids)
	if err != nil {
		return nil, err
	}
	if err := changeable(by, in); err != nil {
		return nil, err
	}
	source, err := s.requirePush(ctx, by, m)
	if err != nil {
		return nil, err
	}
	chosen, files, err := s.applied(ctx, in, m, notes, ids)
	if err != nil {
		return nil, err
	}
	commit := repo.NewCommit{Branch: m.SourceBranch, Expect: git.OID(m.Head)}
	if commit.Message, err = s.suggestionMessage(ctx, by, in, m, notes, chosen, files, message); err != nil {
		return nil, err
	}
	for _, f := range files {
		commit.Actions = append(commit.Actions, repo.FileAction{Kind: git.Modify, Path: f.path, Content: []byte(strings.Join(f.lines, "")), HasContent: true})
	}
	_, made, err := s.Repos.CreateCommit(ctx, by, project.RefTo(source.ID), commit, false)
	if err != nil {
		return nil, err
	}
	// The commit exists: record it even if the client disconnects.
	ctx = context.WithoutCancel(ctx)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		_, err := s.Plan.MarkApplied(ctx, tx, by.ID, m.Target(), ids, string(made.ID))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("apply suggestions to merge request %d: %w", m.ID, err)
	}
	now := s.Now()
	for _, one := range chosen {
		one.AppliedAt, one.CommitSHA, one.Appliable = &now, string(made.ID), false
	}
	return chosen, nil
}

// hideAs replaces a NotFound error with NotFound for another object.
func hideAs(err error, what string) error {
	if errs.Is(err, errs.KindNotFound) {
		return errs.NotFound(what).Because(err)
	}
	return err
}

// suggestedFile is a file with suggestions applied.
type suggestedFile struct {
	path  string
	lines []string
}

// applied returns the suggestions with the given IDs, and the files with these
// suggestions applied. Invalid.
func (s *Service) applied(ctx context.Context, in *project.Project, m *MergeRequest, notes []*plan.Note, ids []int64) ([]*diffnote.Suggestion, []*suggestedFile, error) {
	var chosen []*diffnote.Suggestion
	byPath := map[string][]*diffnote.Suggestion{}
	for _, n := range notes {
		for _, one := range n.Suggestions {
			if !slices.Contains(ids, one.ID) {
				continue
			}
			switch {
			case one.Applied():
				return nil, nil, errs.Refused("A suggestion has already been applied.")
			case !one.Appliable:
				return nil, nil, errs.Refused("A suggestion is not applicable. %s", one.Reason)
			}
			chosen = append(chosen, one)
			byPath[n.Position.NewPath] = append(byPath[n.Position.NewPath], one)
		}
	}
	var files []*suggestedFile
	for path, list := range byPath {
		content, err := s.Repos.TextAt(ctx, in, git.OID(m.Head), path, maxSuggestionFile)
		if errs.IsRefusal(err) {
			return nil, nil, errs.Refused("A suggestion is not applicable. %s", outdated).Because(err)
		}
		if err != nil {
			return nil, nil, err
		}
		// Start at the end, so that the numbers of the preceding lines stay the same.
		slices.SortFunc(list, func(a, b *diffnote.Suggestion) int { return int(b.FromLine + b.Offset - a.FromLine - a.Offset) })
		f := &suggestedFile{path, diffnote.SplitLines(content)}
		for i, one := range list {
			if i > 0 && one.ToLine+one.Offset >= list[i-1].FromLine+list[i-1].Offset {
				return nil, nil, errs.Refused("Suggestions are not applicable as their lines cannot overlap.")
			}
			next, ok := one.Apply(f.lines)
			if !ok {
				return nil, nil, errs.Refused("A suggestion is not applicable. %s", outdated)
			}
			f.lines = next
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *suggestedFile) int { return strings.Compare(a.path, b.path) })
	return chosen, files, nil
}

// suggestionMessage returns the message of the commit that applies suggestions.
func (s *Service) suggestionMessage(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, notes []*plan.Note, chosen []*diffnote.Suggestion, files []*suggestedFile, given string) (string, error) {
	var paths, authors []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	for _, n := range notes {
		if n.Author == nil || by.Is(n.Author.ID) {
			continue
		}
		address, err := s.Users.CommitAddress(ctx, n.Author.ID)
		if err != nil {
			return "", err
		}
		who := "Co-authored-by: " + signed(n.Author.Name, address)
		if !slices.Contains(authors, who) {
			authors = append(authors, who)
		}
	}
	w := words{
		"branch_name": m.SourceBranch, "files_count": strconv.Itoa(len(files)), "file_paths": strings.Join(paths, ", "), "project_path": in.FullPath, "project_name": in.Name,
		"suggestions_count": strconv.Itoa(len(chosen)), "username": by.Username, "user_full_name": by.Name, "co_authored_by": strings.Join(authors, "\n"),
	}
	if strings.TrimSpace(given) != "" {
		return w.expand(given), nil
	}
	return w.message("", in.Settings.SuggestionCommitMessage, suggestionTemplate), nil
}
