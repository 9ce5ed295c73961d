package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/gitremote"
	"svc/internal/project"
)

// push copies the branches and tags of a project to a remote. Internal refs, such as
// those of merge requests, are not pushed.
func (s *Service) push(ctx context.Context, m *Mirror, p *project.Project, remote *gitremote.Remote, c secrets) error {
	theirs, err := remote.PushRefs(ctx)
	if err != nil {
		return err
	}
	empty, err := s.Repos.Empty(ctx, p)
	if err != nil || empty {
		return err // an empty project deletes no refs of the remote
	}
	r, err := s.Repos.Of(p)
	if err != nil {
		return err
	}
	branch, err := s.branchFilter(ctx, m)
	if err != nil {
		return err
	}
	plan, err := planPush(ctx, r, m, p, theirs.List, branch)
	if err != nil {
		return err
	}
	if len(plan.commands) > 0 {
		err := remote.Push(ctx, theirs, plan.commands, func(ctx context.Context, w io.Writer) error {
			return r.PackFor(ctx, w, plan.want, plan.have)
		})
		if err != nil {
			return err
		}
	}
	if err := refusedRefs(plan.commands, c); err != nil {
		return err
	}
	if len(plan.diverged) > 0 {
		return diverged(plan.diverged)
	}
	return nil
}

// pushPlan lists the changes of a push.
type pushPlan struct {
	commands   []*gitremote.Command
	want, have []git.OID
	diverged   []string
}

// planPush compares the refs of a project with those of a remote. Refs that only the
// remote has are deleted if they were merged into the default branch, like a branch
// that was merged and deleted in the project; all others are kept.
func planPush(ctx context.Context, r git.Repo, m *Mirror, p *project.Project, theirs []git.Ref, branch func(string) bool) (*pushPlan, error) {
	plan := &pushPlan{}
	there := map[string]git.OID{}
	var ids []git.OID
	for _, ref := range theirs {
		there[ref.Name] = ref.ID
		ids = append(ids, ref.ID)
	}
	known, err := r.Known(ctx, ids)
	if err != nil {
		return nil, err
	}
	for id := range known {
		plan.have = append(plan.have, id)
	}
	here := map[string]bool{}
	for _, place := range []string{git.Heads, git.Tags} {
		refs, err := r.Refs(ctx, git.RefOptions{Place: place})
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			here[ref.Name] = true
			old, exists := there[ref.Name]
			if old == ref.ID || !wanted(ref.Name, branch) {
				continue
			}
			c := &gitremote.Command{Ref: ref.Name, Old: git.ZeroOID, New: ref.ID}
			if exists {
				c.Old = old
				forward, err := follows(ctx, r, place, known[old], old, ref.ID)
				if err != nil {
					return nil, err
				}
				if !forward && m.KeepDiverged {
					plan.diverged = append(plan.diverged, ref.Name)
					continue
				}
			}
			plan.commands, plan.want = append(plan.commands, c), append(plan.want, ref.ID)
		}
	}
	if m.KeepDiverged || p.DefaultBranch == "" {
		return plan, nil
	}
	for _, ref := range theirs {
		if here[ref.Name] || !known[ref.ID] || !wanted(ref.Name, branch) {
			continue
		}
		merged, err := r.IsAncestor(ctx, string(ref.ID), git.Heads+p.DefaultBranch)
		if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrBadRevision) {
			continue // a tag of something other than a commit
		}
		if err != nil {
			return nil, fmt.Errorf("is %s merged: %w", ref.Name, err)
		}
		if merged {
			plan.commands = append(plan.commands, &gitremote.Command{Ref: ref.Name, Old: ref.ID, New: git.ZeroOID})
		}
	}
	return plan, nil
}

// follows reports whether a ref can move from one object to another as a
// fast-forward. Tags cannot.
func follows(ctx context.Context, r git.Repo, place string, known bool, from, to git.OID) (bool, error) {
	if place != git.Heads || !known {
		return false, nil
	}
	return r.IsAncestor(ctx, string(from), string(to))
}

// refusedRefs returns the error of a push of which the server rejected some refs.
// Secrets in the server's messages are masked.
func refusedRefs(commands []*gitremote.Command, c secrets) error {
	const most = 10
	var list []string
	for _, one := range commands {
		if one.Refused != "" {
			list = append(list, fmt.Sprintf("%s (%s)", one.Ref, c.mask(one.Refused)))
		}
	}
	if len(list) == 0 {
		return nil
	}
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return errs.Invalid("The server refused some refs: %s", text)
}

// mask makes a message of a server safe to show: short, on one line, and without the
// credentials.
func (c secrets) mask(text string) string {
	for _, secret := range []string{c.Password, c.User} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "*****")
		}
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200])
	}
	return text
}
