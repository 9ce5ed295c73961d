package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/quickaction"
	"svc/internal/project"
	"svc/internal/user"
)

// Outcome collects the changes of the quick actions in a text.
type Outcome struct {
	IssueFields
	Reviewers    *[]int64 // merge requests only, as are Draft and TargetBranch
	Draft        *bool
	TargetBranch *string

	Messages []string       // descriptions of the applied commands
	Refused  []string       // reasons why commands were not applied
	Changes  map[string]any // by API field name

	inTx  []func(ctx context.Context, tx *db.Tx, i *Issuable) error
	after []func(ctx context.Context, i *Issuable) (string, error)
}

// commandRun executes the quick actions of a text.
type commandRun struct {
	ctx  context.Context
	s    *Service
	by   actor.Actor
	proj *project.Project
	on   *CommandTarget
	out  *Outcome
}

// refusal is the reason why a quick action was not applied. It is shown to the
// user.
type refusal string

func (r refusal) Error() string { return string(r) }

// RunCommands executes quick actions. It only collects their changes; the owner of
// the object saves them. Commands that the actor may not use are refused.
func (s *Service) RunCommands(ctx context.Context, by actor.Actor, proj *project.Project, on *CommandTarget, list []Invocation) (*Outcome, error) {
	r := &commandRun{ctx: ctx, s: s, by: by, proj: proj, on: on, out: &Outcome{Changes: map[string]any{}}}
	for _, inv := range list {
		message, refused, err := r.run(inv)
		if err != nil {
			return nil, err
		}
		if refused != "" {
			r.out.Refused = append(r.out.Refused, refused)
		}
		if message != "" {
			r.out.Messages = append(r.out.Messages, message)
		}
	}
	return r.out, nil
}

// run executes a quick action. It returns a description of what was done, which is
// empty for a command that runs later, or the reason why it was not applied.
func (r *commandRun) run(inv Invocation) (message, refused string, err error) {
	if !r.on.allows(inv.Command) {
		return "", "Could not apply " + inv.Command.Name + " command.", nil
	}
	message, err = inv.Command.do(r, inv.Args)
	if reason := refusal(""); errors.As(err, &reason) {
		return "", string(reason), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("quick action %s: %w", inv.Command.Name, err)
	}
	return message, "", nil
}

// Summary returns the messages and refusals.
func (o *Outcome) Summary() []string {
	if o == nil {
		return nil
	}
	return slices.Concat(o.Messages, o.Refused)
}

// merge adds the changes to the fields of a form or an API request.
func (o *Outcome) merge(f *Fields) {
	set(&f.Title, o.Title)
	set(&f.Assignees, o.Assignees)
	set(&f.Milestone, o.Milestone)
	set(&f.Locked, o.Locked)
	set(&f.Labels.Names, o.Labels.Names)
	f.Labels.Add, f.Labels.Remove = append(f.Labels.Add, o.Labels.Add...), append(f.Labels.Remove, o.Labels.Remove...)
	if o.Event != "" {
		f.Event = o.Event
	}
	if o.Time.Set() {
		f.Time = o.Time
	}
}

// MergeInto adds the changes of shared fields to the fields of a form or an API
// request.
func (o *Outcome) MergeInto(f *Fields) { o.merge(f) }

func (o *Outcome) mergeIssue(f *IssueFields) {
	o.merge(&f.Fields)
	set(&f.Confidential, o.Confidential)
	set(&f.Type, o.Type)
	set(&f.DueDate, o.DueDate)
	if o.SetWeight {
		f.SetWeight, f.Weight = true, o.Weight
	}
}

func set[T any](to **T, value *T) {
	if value != nil {
		*to = value
	}
}

// InTx runs the parts of quick actions that belong to the transaction, apart from
// changed fields.
func (o *Outcome) InTx(ctx context.Context, tx *db.Tx, i *Issuable) error {
	if o == nil {
		return nil
	}
	for _, do := range o.inTx {
		if err := do(ctx, tx, i); err != nil {
			return err
		}
	}
	return nil
}

// After runs the quick actions that cannot be part of a transaction, because they
// change repositories or objects of other features. The change has been committed
// already, so expected errors are recorded as refusals.
func (o *Outcome) After(ctx context.Context, i *Issuable) error {
	if o == nil {
		return nil
	}
	for _, do := range o.after {
		message, err := do(ctx, i)
		if reason := refusal(""); errors.As(err, &reason) {
			o.Refused = append(o.Refused, string(reason))
			continue
		}
		if e, ok := errs.As(err); ok {
			o.Refused = append(o.Refused, sentenceOf(e))
			continue
		}
		if err != nil {
			return err
		}
		if message != "" {
			o.Messages = append(o.Messages, message)
		}
	}
	return nil
}

func sentenceOf(e *errs.Error) string {
	if e.Text != "" {
		return strings.TrimSuffix(e.Text, ".") + "."
	}
	return "You don't have permission to do this."
}

// users returns the users that the arguments name: @user or "me".
func (r *commandRun) users(args string) ([]*user.User, error) {
	var list []*user.User
	for _, name := range quickaction.Names(args, '@') {
		ref := user.Ref(name)
		if name == "me" || name == "self" {
			ref = user.Ref(strconv.FormatInt(r.by.ID, 10))
		} else if strings.Trim(name, "0123456789") == "" {
			return nil, refusal("Failed to find users for @" + name + ".")
		}
		u, err := r.s.Users.Find(r.ctx, r.by, ref)
		if hiddenError(err) {
			return nil, refusal("Failed to find users for @" + name + ".")
		}
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

func hiddenError(err error) bool { return err != nil && hidden(err) }

func mentions(list []*user.User) string {
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = "@" + u.Username
	}
	return strings.Join(names, " ")
}

func ids(list []*user.User) []int64 {
	found := []int64{}
	for _, u := range list {
		if !slices.Contains(found, u.ID) {
			found = append(found, u.ID)
		}
	}
	return found
}

// related returns the current assignees or reviewers, including the changes so
// far.
func (r *commandRun) related(as Relation) []int64 {
	if as == Reviewers {
		if r.out.Reviewers != nil {
			return *r.out.Reviewers
		}
		return ids(r.on.Reviewers)
	}
	if r.out.Assignees != nil {
		return *r.out.Assignees
	}
	return ids(r.on.Assignees)
}

func (r *commandRun) setRelated(as Relation, ids []int64) {
	if as == Reviewers {
		r.out.Reviewers, r.out.Changes["reviewer_ids"] = &ids, ids
		return
	}
	r.out.Assignees, r.out.Changes["assignee_ids"] = &ids, ids
}

func (r *commandRun) addRelated(as Relation, args string) ([]*user.User, error) {
	list, err := r.users(args)
	if err == nil && len(list) == 0 {
		err = refusal("Failed to assign a user because no user was specified.")
	}
	if err != nil {
		return nil, err
	}
	want := slices.Clone(r.related(as))
	for _, u := range list {
		if !slices.Contains(want, u.ID) {
			want = append(want, u.ID)
		}
	}
	r.setRelated(as, want)
	return list, nil
}

func (r *commandRun) removeRelated(as Relation, args string) ([]*user.User, error) {
	list, err := r.users(args)
	if err != nil {
		return nil, err
	}
	gone := ids(list)
	want := slices.DeleteFunc(slices.Clone(r.related(as)), func(id int64) bool { return len(gone) == 0 || slices.Contains(gone, id) })
	r.setRelated(as, want)
	return list, nil
}

// labels returns the labels of the project that the arguments name.
func (r *commandRun) labels(command, args string) ([]*Label, error) {
	var list []*Label
	for _, name := range quickaction.Names(args, '~') {
		l, err := findLabelNamed(r.ctx, r.s.DB, place{project: r.proj}, name)
		if hiddenError(db.NotFound(err, "Label")) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		return nil, refusal("Could not apply " + command + " command. Labels were not found.")
	}
	return list, nil
}

func labelRefs(list []*Label) string {
	refs := make([]string, len(list))
	for i, l := range list {
		refs[i] = "~" + quoted(l.Name)
	}
	return strings.Join(refs, " ") + choose(len(list) == 1, " label", " labels")
}

func labelNames(list []*Label) []string {
	found := make([]string, len(list))
	for i, l := range list {
		found[i] = l.Name
	}
	return found
}

// issueAt returns the issue that an argument refers to: #1, group/project#1 or a
// URL.
func (r *commandRun) issueAt(text string) (*project.Project, *Issue, error) {
	path, number, ok := strings.Cut(text, "#")
	if at := strings.Index(text, "/-/issues/"); at >= 0 {
		path, number, ok = text[:at], text[at+len("/-/issues/"):], true
		if _, rest, found := strings.Cut(path, "://"); found {
			_, path, _ = strings.Cut(rest, "/")
		}
	}
	iid, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return nil, nil, refusal("Could not find the issue " + text + ".")
	}
	ref := project.RefTo(r.proj.ID)
	if path != "" {
		ref = project.Ref(path)
	}
	proj, i, err := r.s.issue(r.ctx, r.by, ref, iid)
	if hiddenError(err) {
		return nil, nil, refusal("Could not find the issue " + text + ".")
	}
	return proj, i, err
}
