package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/user"
)

// maxPushedBranches is the maximum number of branches of one push for which push
// options create or update merge requests.
const maxPushedBranches = 10

// optionPrefix is the prefix of the push options for merge requests.
const optionPrefix = "merge_request."

// requestOptions are the push options for merge requests:
// https://docs.gitlab.com/topics/git/commit/#push-options-for-merge-requests
type requestOptions struct {
	create        bool
	target        string
	targetProject string
	title         *string
	description   *string
	milestone     *string
	draft         bool
	labels        []string
	unlabels      []string
	assign        []string
	unassign      []string
	removeSource  *bool
	squash        *bool
	auto          bool
}

// readOptions parses the push options for merge requests. some is false if there are
// none; unknown has the names of unsupported options.
func readOptions(list []string) (o requestOptions, some bool, unknown []string) {
	yes := true
	for _, option := range list {
		text, ok := strings.CutPrefix(option, optionPrefix)
		if !ok {
			continue
		}
		some = true
		key, value, _ := strings.Cut(text, "=")
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		switch key {
		case "create":
			o.create = true
		case "target":
			o.target = value
		case "target_project":
			o.targetProject = value
		case "title":
			o.title = &value
		case "description":
			value = strings.ReplaceAll(value, `\n`, "\n") // push options cannot contain newlines
			o.description = &value
		case "milestone":
			o.milestone = &value
		case "draft":
			o.draft = true
		case "label":
			o.labels = append(o.labels, value)
		case "unlabel":
			o.unlabels = append(o.unlabels, value)
		case "assign":
			o.assign = append(o.assign, value)
		case "unassign":
			o.unassign = append(o.unassign, value)
		case "remove_source_branch":
			o.removeSource = &yes
		case "squash":
			o.squash = &yes
		case "auto_merge", "merge_when_pipeline_succeeds":
			o.auto = true
		default:
			unknown = append(unknown, key)
		}
	}
	return o, some, unknown
}

// PushOptions creates and updates merge requests of pushed branches according to the
// push options, and returns messages for the user. The permissions are those of
// Create, Update and Merge.
func (s *Service) PushOptions(ctx context.Context, by actor.Actor, in *project.Project, branches, options []string) []string {
	o, some, unknown := readOptions(options)
	if !some {
		return nil
	}
	var lines []string
	warn := func(format string, args ...any) {
		if lines == nil {
			lines = []string{"", "WARNINGS:"}
		}
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	for _, key := range unknown {
		warn("Unknown push option 'merge_request.%.64s'", key)
	}
	switch {
	case by.Anonymous() || by.Deploy != nil:
		warn("Error encountered with push options 'merge_request': a user is required")
		return lines
	case len(branches) > maxPushedBranches:
		warn("Error encountered with push options 'merge_request': too many branches pushed (%d were pushed, limit is %d)", len(branches), maxPushedBranches)
		return lines
	}
	for _, branch := range branches {
		if err := s.pushOptions(ctx, by, in, branch, o); err != nil {
			warn("Error encountered with push options 'merge_request' for %s: %s", branch, optionError(err))
		}
	}
	return lines
}

// optionError returns the text of an error for the user who pushed.
func optionError(err error) string {
	e, ok := errs.As(err)
	if !ok {
		return "an internal error occurred"
	}
	if len(e.Fields) > 0 || e.Text == "" || e.Kind == errs.KindNotFound {
		return e.Because(nil).Error()
	}
	return e.Text
}

// pushOptions applies push options to one branch: to its open merge requests into
// the target branch, or to a new one.
func (s *Service) pushOptions(ctx context.Context, by actor.Actor, source *project.Project, branch string, o requestOptions) error {
	target := source
	if o.targetProject != "" {
		var err error
		if target, err = s.Projects.RequireView(ctx, by, project.Ref(o.targetProject), project.MergePart); err != nil {
			return err
		}
	}
	open, err := findFromBranch(ctx, s.DB, source.ID, branch)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(m *MergeRequest) bool { return m.ProjectID != target.ID })
	if o.create && o.target != "" && !slices.ContainsFunc(open, func(m *MergeRequest) bool { return m.TargetBranch == o.target }) {
		open = nil // merge requests into other targets are left unchanged
	}
	f, err := s.optionFields(ctx, by, target, o)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		if !o.create {
			return errs.Refused("a merge_request.create push option is required to create a merge request for branch %s", branch)
		}
		return s.createFromPush(ctx, by, source, target, branch, o, f)
	}
	for _, m := range open {
		if o.create && o.target != "" && m.TargetBranch != o.target {
			continue
		}
		if err := s.updateFromPush(ctx, by, target, m, o, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) createFromPush(ctx context.Context, by actor.Actor, source, target *project.Project, branch string, o requestOptions, f Fields) error {
	n := NewRequest{Fields: f, SourceBranch: branch}
	if target.ID != source.ID {
		n.TargetProject = &target.ID
	}
	if o.target == "" {
		o.target = target.DefaultBranch
	}
	n.TargetBranch = &o.target
	if f.Title == nil || f.Description == nil {
		title, text, err := s.describeBranch(ctx, by, source, target, branch, o.target)
		if err != nil {
			return err
		}
		if f.Title == nil {
			n.Title = &title
		}
		if f.Description == nil {
			n.Description = &text
		}
	}
	if o.draft {
		title := (&MergeRequest{Issuable: plan.Issuable{Title: *n.Title}}).Titled(true)
		n.Title = &title
	}
	if len(o.assign) > 0 {
		ids, err := s.optionUsers(ctx, by, o.assign)
		if err != nil {
			return err
		}
		n.Assignees = &ids
	}
	m, err := s.Create(ctx, by, project.RefTo(source.ID), n)
	if err != nil || !o.auto {
		return err
	}
	return s.autoMergePushed(ctx, by, target, m)
}

func (s *Service) updateFromPush(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, o requestOptions, f Fields) error {
	if o.target != "" && o.target != m.TargetBranch {
		f.TargetBranch = &o.target
	}
	if o.draft {
		next := *m
		if f.Title != nil {
			next.Title = *f.Title
		}
		title := next.Titled(true)
		f.Title = &title
	}
	if len(o.assign)+len(o.unassign) > 0 {
		found, err := s.Get(ctx, by, project.RefTo(in.ID), m.IID)
		if err != nil {
			return err
		}
		more, err := s.optionUsers(ctx, by, o.assign)
		if err != nil {
			return err
		}
		less, err := s.optionUsers(ctx, by, o.unassign)
		if err != nil {
			return err
		}
		ids := []int64{}
		for _, u := range found.Assignees {
			ids = append(ids, u.ID)
		}
		ids = slices.DeleteFunc(append(ids, more...), func(id int64) bool { return slices.Contains(less, id) })
		slices.Sort(ids)
		ids = slices.Compact(ids)
		f.Assignees = &ids
	}
	if !f.empty() {
		if _, err := s.Update(ctx, by, project.RefTo(in.ID), m.IID, f); err != nil {
			return err
		}
	}
	if !o.auto {
		return nil
	}
	return s.autoMergePushed(ctx, by, in, m)
}

// empty reports whether the push options change no field.
func (f *Fields) empty() bool {
	return f.Title == nil && f.Description == nil && f.Assignees == nil && f.Milestone == nil && f.TargetBranch == nil && f.Squash == nil &&
		f.RemoveSource == nil && len(f.Labels.Add)+len(f.Labels.Remove) == 0
}

// optionFields returns the fields that do not depend on the merge request.
func (s *Service) optionFields(ctx context.Context, by actor.Actor, in *project.Project, o requestOptions) (Fields, error) {
	var f Fields
	f.Title, f.Description, f.Squash, f.RemoveSource = o.title, o.description, o.squash, o.removeSource
	f.Labels = plan.Labelling{Add: o.labels, Remove: o.unlabels}
	if o.milestone != nil {
		id, err := s.Plan.MilestoneTitled(ctx, in, *o.milestone)
		if err != nil {
			return f, err
		}
		if id == nil {
			return f, errs.Refused("milestone %s not found", *o.milestone)
		}
		f.Milestone = id
	}
	return f, nil
}

// optionUsers returns the IDs of users given by ID or username. Users who do not
// exist are left out.
func (s *Service) optionUsers(ctx context.Context, by actor.Actor, names []string) ([]int64, error) {
	ids := []int64{}
	for _, name := range names {
		u, err := s.Users.Find(ctx, by, user.Ref(strings.TrimPrefix(name, "@")))
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}

// describeBranch returns the title and description of a new merge request. If the
// branch has only one commit, they are taken from its message.
func (s *Service) describeBranch(ctx context.Context, by actor.Actor, source, target *project.Project, branch, into string) (title, text string, err error) {
	text, err = s.Plan.DefaultDescription(ctx, by, target, plan.MergeKind)
	if err != nil {
		return "", "", err
	}
	name := strings.NewReplacer("-", " ", "_", " ").Replace(branch)
	first, n := utf8.DecodeRuneInString(name)
	title = string(unicode.ToUpper(first)) + name[n:]
	o := repo.CompareOptions{From: into, To: branch}
	if target.ID != source.ID {
		o.FromProject = &target.ID
	}
	found, err := s.Repos.Compare(ctx, by, project.RefTo(source.ID), o)
	if errs.IsRefusal(err) {
		return title, text, nil // Create reports the error of the branches
	}
	if err != nil {
		return "", "", err
	}
	if len(found.Commits) != 1 {
		return title, text, nil
	}
	list, err := found.Read(ctx, found.Commits)
	if err != nil || len(list) == 0 {
		return title, text, err
	}
	if text == "" {
		text = commitBody(list[0].Message)
	}
	return cmpTitle(list[0], title), text, nil
}

func cmpTitle(c *git.Commit, otherwise string) string {
	if strings.TrimSpace(c.Title) == "" {
		return otherwise
	}
	return c.Title
}

// autoMergeDelay is how long auto-merge of a pushed branch waits for its pipeline to
// be created.
const autoMergeDelay = time.Minute

// autoMergePushed sets a merge request to be merged when its pipeline succeeds. The
// pipeline of the push may not exist yet.
func (s *Service) autoMergePushed(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest) error {
	m, err := s.Get(ctx, by, project.RefTo(in.ID), m.IID)
	if err != nil {
		return err
	}
	if !m.CanMerge {
		return errs.Forbidden("you are not allowed to merge this merge request")
	}
	return s.enableAuto(ctx, by, m, Acceptance{}, queue.Delay(autoMergeDelay))
}

// commitBody returns a commit message without its first line.
func commitBody(message string) string {
	_, body, _ := strings.Cut(message, "\n")
	return strings.TrimSpace(body)
}
