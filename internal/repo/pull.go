package repo

import (
	"context"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// PullOptions are the options of Pull.
type PullOptions struct {
	Overwrite bool // overwrite refs that have diverged
	Pipelines bool // create pipelines for the new commits
}

// divergedRef is the reason for refusing a change that is not a fast-forward.
const divergedRef = "diverged"

// Pull updates the branches and tags of a project to those of another repository, and
// records that as a push of the actor. Refs that have diverged are skipped and returned,
// unless they are overwritten; refs that the other repository does not have are kept. Push
// rules are not applied. Conflict while the project is imported; Invalid, with a message for
// the user, if the content is refused.
func (s *Service) Pull(ctx context.Context, by actor.Actor, p *project.Project, in Incoming, o PullOptions) (skipped []string, err error) {
	if p.Import.Pending() {
		return nil, errs.Conflict("An import of the project is in progress.")
	}
	if err := p.Writable(); err != nil {
		return nil, err
	}
	r, err := s.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	changes, err := importChanges(ctx, r, in.Refs)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	have, err := s.pullHave(ctx, r, changes)
	if err != nil {
		return nil, err
	}
	options := []string{noPipeline}
	if o.Pipelines {
		options = nil
	}
	err = s.take(ctx, by, p, r, changes, have, in, git.PushOptions{
		Options: options, Separate: true,
		Check: func(ctx context.Context, push *git.Push) error {
			if !o.Overwrite {
				if err := refuseDiverged(ctx, push); err != nil {
					return err
				}
			}
			var accepted []*git.RefChange
			for _, c := range push.Changes {
				if c.Refused == "" {
					accepted = append(accepted, c)
				} else if c.Refused == divergedRef {
					skipped = append(skipped, c.Ref)
				}
			}
			if len(accepted) == 0 {
				return nil
			}
			if err := in.Check(ctx, push.Repo, accepted); err != nil {
				return err
			}
			if p.DefaultBranch != "" {
				return nil
			}
			return s.importHead(ctx, r, in.Head, accepted)
		},
	})
	return skipped, err
}

// pullHave returns the commits that the other repository need not send, starting with those
// of the refs that change.
func (s *Service) pullHave(ctx context.Context, r git.Repo, changes []*git.RefChange) ([]git.OID, error) {
	var have []git.OID
	for _, c := range changes {
		if c.Old != git.ZeroOID {
			have = append(have, c.Old)
		}
	}
	refs, err := r.Refs(ctx, git.RefOptions{Place: git.Heads})
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		have = append(have, ref.ID)
	}
	return have, nil
}

// refuseDiverged refuses the changes that are not fast-forwards.
func refuseDiverged(ctx context.Context, push *git.Push) error {
	for _, c := range push.Changes {
		if c.Refused != "" || c.Old == git.ZeroOID {
			continue
		}
		if !strings.HasPrefix(c.Ref, git.Heads) { // tags do not move
			c.Refused = divergedRef
			continue
		}
		forward, err := push.Repo.IsAncestor(ctx, string(c.Old), string(c.New))
		if err != nil {
			return err
		}
		if !forward {
			c.Refused = divergedRef
		}
	}
	return nil
}
