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
	"svc/internal/project"
	"svc/internal/user"
)

// Outcome is what the quick actions of a text change.
type Outcome struct {
	IssueFields
	Reviewers    *[]int64 // of merge requests, as Draft and TargetBranch
	Draft        *bool
	TargetBranch *string

	Messages []string       // what was done, in sentences
	Refused  []string       // what was not done
	Changes  map[string]any // by the names of the API

	inTx  []func(ctx context.Context, tx *db.Tx, i *Issuable) error
	after []func(ctx context.Context, i *Issuable) (string, error)
}

// commandRun interprets the quick actions of a text.
type commandRun struct {
	ctx context.Context
	s   *Service
	by  actor.Actor
	in  *project.Project
	on  *CommandTarget
	out *Outcome
}

// refusal is the reason why a quick action was not applied, for its user.
type refusal string

func (r refusal) Error() string { return string(r) }

// RunCommands interprets quick actions: what they change is collected, and applied
// by the owner of the object. Commands that the actor may not use are refused.
func (s *Service) RunCommands(ctx context.Context, by actor.Actor, in *project.Project, on *CommandTarget, list []Invocation) (*Outcome, error) {
	r := &commandRun{ctx: ctx, s: s, by: by, in: in, on: on, out: &Outcome{Changes: map[string]any{}}}
	for _, one := range list {
		if !on.allows(one.Command) {
			r.out.Refused = append(r.out.Refused, "Could not apply "+one.Command.Name+" command.")
			continue
		}
		message, err := one.Command.do(r, one.Args)
		if reason := refusal(""); errors.As(err, &reason) {
			r.out.Refused = append(r.out.Refused, string(reason))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("quick action %s: %w", one.Command.Name, err)
		}
		if message != "" {
			r.out.Messages = append(r.out.Messages, message)
		}
	}
	return r.out, nil
}

// Summary is what was done and what was not, in sentences.
func (o *Outcome) Summary() []string {
	if o == nil {
		return nil
	}
	return slices.Concat(o.Messages, o.Refused)
}

// merge adds the changes to those of a form or an API request.
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

// MergeInto adds the changes of shared fields to those of a form or an API
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

// InTx runs what belongs to the transaction of the change, besides the fields.
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

// After runs what cannot be in a transaction: quick actions that change
// repositories, or objects of other features. The change has been committed, so
// that an expected error is noted as a refusal.
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

// users returns the users that arguments name: @user, or "me".
func (r *commandRun) users(args string) ([]*user.User, error) {
	var list []*user.User
	for _, name := range names(args, '@') {
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
	at := make([]string, len(list))
	for i, u := range list {
		at[i] = "@" + u.Username
	}
	return strings.Join(at, " ")
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

// people returns the current users of a relation, with the changes so far.
func (r *commandRun) people(as Relation) []int64 {
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

func (r *commandRun) setPeople(as Relation, want []int64) {
	if as == Reviewers {
		r.out.Reviewers, r.out.Changes["reviewer_ids"] = &want, want
		return
	}
	r.out.Assignees, r.out.Changes["assignee_ids"] = &want, want
}

func (r *commandRun) addPeople(as Relation, args string) ([]*user.User, error) {
	list, err := r.users(args)
	if err == nil && len(list) == 0 {
		err = refusal("Failed to assign a user because no user was specified.")
	}
	if err != nil {
		return nil, err
	}
	want := slices.Clone(r.people(as))
	for _, u := range list {
		if !slices.Contains(want, u.ID) {
			want = append(want, u.ID)
		}
	}
	r.setPeople(as, want)
	return list, nil
}

func (r *commandRun) removePeople(as Relation, args string) ([]*user.User, error) {
	list, err := r.users(args)
	if err != nil {
		return nil, err
	}
	gone := ids(list)
	want := slices.DeleteFunc(slices.Clone(r.people(as)), func(id int64) bool { return len(gone) == 0 || slices.Contains(gone, id) })
	r.setPeople(as, want)
	return list, nil
}

// labels returns the labels of the project that arguments name.
func (r *commandRun) labels(command, args string) ([]*Label, error) {
	var list []*Label
	for _, name := range names(args, '~') {
		l, err := findLabelNamed(r.ctx, r.s.DB, place{project: r.in}, name)
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

// issueRef is a reference to an issue in the arguments of a quick action: #1,
// group/project#1 or the address of an issue.
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
	ref := project.RefTo(r.in.ID)
	if path != "" {
		ref = project.Ref(path)
	}
	in, i, err := r.s.issue(r.ctx, r.by, ref, iid)
	if hiddenError(err) {
		return nil, nil, refusal("Could not find the issue " + text + ".")
	}
	return in, i, err
}
