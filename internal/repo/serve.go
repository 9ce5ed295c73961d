package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Fetching is a repository that an actor may fetch from.
type Fetching struct {
	Project *project.Project // nil for an auxiliary repository
	repo    git.Repo
	hide    []string
	again   func(ctx context.Context) (*Fetching, error)
}

// Fetch opens a repository for the git protocol, for actors who may read it and
// whose credential has a scope for repositories. NotFound, Forbidden or
// Unauthorized otherwise, Moved for an old path, Unavailable while it is being
// copied.
func (s *Service) Fetch(ctx context.Context, by actor.Actor, ref project.Ref) (*Fetching, error) {
	if err := scoped(by, "read_repository", "write_repository", "api", "read_api"); err != nil {
		return nil, err
	}
	again := func(ref project.Ref) func(context.Context) (*Fetching, error) {
		return func(ctx context.Context) (*Fetching, error) {
			now, err := s.still(ctx, by)
			if err != nil {
				return nil, err
			}
			return s.Fetch(ctx, now, ref)
		}
	}
	if _, r, ok, err := s.openAuxRepo(ctx, by, string(ref), false); ok {
		return &Fetching{repo: r, again: again(ref)}, err
	}
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if p.Import.Pending() { // creating it now would make the copy fail
		return nil, errs.Unavailable("The repository is being copied. Please try again when that is done.")
	}
	// The repository must exist: git accepts an empty repository but reports a
	// missing one as an error.
	r, err := s.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	v := viewOf(by, p)
	return &Fetching{Project: p, repo: r, hide: append(v.Hide, v.Internal...), again: again(project.RefTo(p.ID))}, nil
}

// FetchAccess returns a project to an actor who may fetch from its repository. The
// errors are those of Fetch.
func (s *Service) FetchAccess(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	if err := scoped(by, "read_repository", "write_repository", "api", "read_api"); err != nil {
		return nil, err
	}
	return s.Projects.ReadCode(ctx, by, ref)
}

// PushAccess returns a project to an actor who may push to its repository, or to some
// of its branches. The errors are those of Push.
func (s *Service) PushAccess(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	if err := scoped(by, "write_repository", "api"); err != nil {
		return nil, err
	}
	p, _, err := s.writeSome(ctx, by, ref)
	return p, err
}

// scoped checks that the credential has one of the scopes.
func scoped(by actor.Actor, scopes ...string) error {
	for _, scope := range scopes {
		if by.Has(scope) {
			return nil
		}
	}
	return errs.Forbidden("The credential has none of the scopes that git needs: %s.", scopes[0])
}

// Advertise sends the refs for a fetch to a client over HTTP.
func (f *Fetching) Advertise(ctx context.Context, out io.Writer, o git.ServeOptions) error {
	o.Hide = f.hide
	return f.repo.AdvertiseUpload(ctx, out, o)
}

// UploadPack serves a fetch or clone. A client that stays connected is asked for its rights
// at each request.
func (f *Fetching) UploadPack(ctx context.Context, in io.Reader, out io.Writer, o git.ServeOptions) error {
	o.Hide = f.hide
	o.Still = func(ctx context.Context) ([]string, error) {
		now, err := f.again(ctx)
		if err != nil {
			return nil, err
		}
		return now.hide, nil
	}
	return f.repo.UploadPack(ctx, in, out, o)
}

// UploadArchive serves git archive --remote.
func (f *Fetching) UploadArchive(ctx context.Context, in io.Reader, out io.Writer) error {
	return f.repo.UploadArchive(ctx, in, out)
}

// Pushing is a repository that an actor may push to.
type Pushing struct {
	repo    git.Repo
	to      target
	unseen  []string // prefixes of refs that are hidden from the actor
	name    string   // for the log
	service *Service
}

// Push opens a repository for a push by the git protocol, for actors who may
// write to it and whose credential has the scope. The errors are those of
// Fetch; Forbidden also if the project is archived or read-only.
func (s *Service) Push(ctx context.Context, by actor.Actor, ref project.Ref) (*Pushing, error) {
	if err := scoped(by, "write_repository", "api"); err != nil {
		return nil, err
	}
	if a, r, ok, err := s.openAuxRepo(ctx, by, string(ref), true); ok {
		if err != nil {
			return nil, err
		}
		return &Pushing{repo: r, to: auxRepoTarget{s, a, r, by, string(ref)}, name: fmt.Sprintf("auxiliary repository %d", a.ID), service: s}, nil
	}
	p, r, err := s.writeSome(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return &Pushing{repo: r, to: projectTarget{s, p, r, by}, unseen: viewOf(by, p).Hide, name: fmt.Sprintf("project %d", p.ID), service: s}, nil
}

// unmovable returns the prefixes of refs that cannot be pushed to.
func unmovable() []string { return []string{internalRefs, MergeRefs} }

// Advertise sends the refs for a push to a client over HTTP.
func (p *Pushing) Advertise(ctx context.Context, out io.Writer, o git.ServeOptions) error {
	o.Hide = unmovable()
	return p.repo.AdvertiseReceive(ctx, out, git.PushOptions{ServeOptions: o})
}

// ReceivePack receives a push. It checks the rules before anything becomes
// visible, and records the changes before the client gets the result. The error
// is for the log; the client has got its own message.
func (p *Pushing) ReceivePack(ctx context.Context, in io.Reader, out io.Writer, o git.ServeOptions) error {
	o.Hide = unmovable()
	s := p.service
	most, object, err := s.pushLimits(ctx)
	if err != nil {
		return err
	}
	var id int64
	var begun journal
	var began time.Time
	stop := func() {}
	defer func() { stop() }()
	moved := false // refs have moved: the push was successful for the client
	options := git.PushOptions{
		ServeOptions: o,
		MaxSize:      most,
		MaxObject:    object,
		Unseen:       p.unseen,
		Check: func(ctx context.Context, push *git.Push) error {
			if err := p.to.check(ctx, push); err != nil || len(changesOf(push)) == 0 {
				return refuseNow(push, err)
			}
			push.Mark = newMark()
			begun = journal{Changes: changesOf(push), Options: push.Options, Mark: push.Mark}
			began = s.Now()
			var err error
			if id, err = p.to.begin(ctx, begun); err != nil {
				id = 0
				return refuseNow(push, err)
			}
			if id != 0 {
				stop = s.alive(context.WithoutCancel(ctx), p.to.table(), id)
			}
			return nil
		},
		Update: func(ctx context.Context, push *git.Push, updates []git.Update) error {
			if err := s.touch(ctx, p.to.table(), id, began); err != nil {
				return err
			}
			return p.repo.UpdateRefsAs(ctx, push.Mark, updates)
		},
		Done: func(ctx context.Context, push *git.Push) error {
			moved = true
			if id == 0 { // recorded with the update
				p.to.hint(ctx, push)
				return nil
			}
			err := p.to.finish(ctx, id, journal{Changes: changesOf(push), Options: push.Options})
			if err == nil {
				id = 0
				p.to.hint(ctx, push)
			}
			return nil // the row is settled below, or later
		},
	}
	if move := p.to.mover(); move != nil {
		options.Update = func(ctx context.Context, push *git.Push, updates []git.Update) error {
			j := journal{Options: push.Options, Mark: push.Mark}
			for _, u := range updates {
				j.Changes = append(j.Changes, Change{Ref: u.Ref, Old: u.Old, New: u.New})
			}
			return move(ctx, j)
		}
	}
	_, err = p.repo.ReceivePack(ctx, in, out, options)
	if id != 0 { // refused or failed: the refs show which changes were made
		late := p.to.land(context.WithoutCancel(ctx), id, begun)
		if late != nil && moved {
			s.Log.ErrorContext(ctx, "a push is not recorded yet", "to", p.name, "push", id, "error", late)
			s.landLater(ctx, func(ctx context.Context) error { return p.to.land(ctx, id, begun) })
			late = nil
		}
		err = errors.Join(err, late)
	}
	if err != nil {
		return fmt.Errorf("push to %s: %w", p.name, err)
	}
	return nil
}
