package repo

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Incoming is the content of a repository of another server.
type Incoming struct {
	Refs []git.Ref // branches and tags
	Head string    // full name of the default branch; empty if unknown
	// Pack opens a pack of the objects that are reachable from the wanted commits and not
	// from those that the repository has.
	Pack func(ctx context.Context, want, have []git.OID) (io.ReadCloser, error)
	// Progress is called while the pack is read. It may be nil.
	Progress func(done, total uint32)
	// Check is called before the refs become visible. r contains the new objects. An error
	// stops the import.
	Check func(ctx context.Context, r git.Repo, changes []*git.RefChange) error
	// MaxSize returns the limit of the pack in bytes; 0 means no limit. It is called if there
	// is something to receive.
	MaxSize func(ctx context.Context) (int64, error)
}

// noPipeline is the push option that skips pipelines.
const noPipeline = "ci.no_pipeline"

// Import fills the repository of a project that is being imported, and records it as a push
// of the actor without pipelines. All refs are created, or none. It may be called again after
// a crash. Push rules are not applied. Invalid, with a message for the user, if the content is
// refused.
func (s *Service) Import(ctx context.Context, by actor.Actor, p *project.Project, in Incoming) error {
	if !p.Import.Pending() {
		return errs.Conflict("No import of the project is in progress.")
	}
	r, err := s.ensure(ctx, p)
	if err != nil {
		return err
	}
	changes, err := importChanges(ctx, r, in.Refs)
	if err != nil || len(changes) == 0 {
		return err
	}
	return s.take(ctx, by, p, r, changes, nil, in, git.PushOptions{
		Options: []string{noPipeline},
		Check: func(ctx context.Context, push *git.Push) error {
			if err := in.Check(ctx, push.Repo, push.Changes); err != nil {
				return err
			}
			return s.importHead(ctx, r, in.Head, changes)
		},
	})
}

// take receives the pack of a source, makes the changes that Check of the options accepts, and
// records them as a push.
func (s *Service) take(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, changes []*git.RefChange, have []git.OID, in Incoming, o git.PushOptions) error {
	most, object, err := s.pushLimits(ctx)
	if err != nil {
		return err
	}
	room, err := in.MaxSize(ctx)
	if err != nil {
		return err
	}
	most = lower(most, room)
	var want []git.OID
	for _, c := range changes {
		want = append(want, c.New)
	}
	slices.Sort(want)
	pack, err := in.Pack(ctx, slices.Compact(want), have)
	if err != nil {
		return err
	}
	defer pack.Close()
	var id int64
	var begun journal
	var began time.Time
	stop := func() {}
	defer func() { stop() }()
	// An error of the source is not an error of git, which only sees the end of the pack.
	source := &sourceReader{from: pack}
	check := o.Check
	o.MaxSize, o.MaxObject, o.Progress = most, object, in.Progress
	o.Check = func(ctx context.Context, push *git.Push) error {
		if err := check(ctx, push); err != nil || len(changesOf(push)) == 0 {
			return err
		}
		push.Mark = newMark()
		begun = journal{Changes: changesOf(push), Options: push.Options, Mark: push.Mark}
		began = s.Now()
		var err error
		if id, err = s.begin(ctx, by, p, begun); err == nil {
			stop = s.alive(context.WithoutCancel(ctx), pushTable, id)
		}
		return err
	}
	o.Update = func(ctx context.Context, push *git.Push, updates []git.Update) error {
		if err := s.touch(ctx, pushTable, id, began); err != nil {
			return err
		}
		return r.UpdateRefsAs(ctx, push.Mark, updates)
	}
	o.Done = func(ctx context.Context, push *git.Push) error {
		err := s.finish(ctx, id, by, p, r, journal{Changes: changesOf(push), Options: push.Options})
		if err == nil {
			id = 0
		}
		return err
	}
	push, err := r.TakePack(ctx, source, changes, o)
	if id != 0 { // the refs show which changes were made
		err = errors.Join(err, s.land(context.WithoutCancel(ctx), id, by, p, r, begun))
	}
	return importFailure(err, source.failure(), push)
}

// Importable returns the refs without those that cannot be pushed because of their names, such
// as a branch whose name is a commit ID. A source may have them, and the others can be used
// without them.
func Importable(refs []git.Ref) []git.Ref {
	fresh := &project.Project{}
	return slices.DeleteFunc(slices.Clone(refs), func(ref git.Ref) bool {
		return refuseRef(fresh, &git.RefChange{Ref: ref.Name, Old: git.ZeroOID, New: ref.ID}) != ""
	})
}

// importChanges returns the changes that give a repository the refs.
func importChanges(ctx context.Context, r git.Repo, refs []git.Ref) ([]*git.RefChange, error) {
	have, err := r.Refs(ctx, git.RefOptions{})
	if err != nil {
		return nil, err
	}
	now := make(map[string]git.OID, len(have)) // not empty after a crash
	for _, ref := range have {
		now[ref.Name] = ref.ID
	}
	fresh := &project.Project{} // without a default branch yet
	var changes []*git.RefChange
	for _, ref := range refs {
		c := &git.RefChange{Ref: ref.Name, Old: git.ZeroOID, New: ref.ID}
		if err := git.CheckRef(ref.Name); err != nil {
			return nil, errs.Invalid("The name of the ref %.100q is not valid.", ref.Name)
		}
		if why := refuseRef(fresh, c); why != "" {
			return nil, errs.Invalid("The ref %.100q cannot be imported: %s", ref.Name, why)
		}
		if old, ok := now[ref.Name]; ok {
			c.Old = old
		}
		if c.Old != c.New {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// importHead sets the default branch of a new repository to that of its source, if it was
// imported.
func (s *Service) importHead(ctx context.Context, r git.Repo, head string, changes []*git.RefChange) error {
	branch, ok := strings.CutPrefix(head, git.Heads)
	if !ok || !slices.ContainsFunc(changes, func(c *git.RefChange) bool { return c.Ref == head }) {
		return nil
	}
	return r.SetDefaultBranch(ctx, branch)
}

// sourceReader records why its source could not be read.
type sourceReader struct {
	from io.Reader

	mu  sync.Mutex // it may be read while the import ends
	err error
}

func (r *sourceReader) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Read implements io.Reader.
func (r *sourceReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	return n, err
}

// importFailure returns the error of an import, with a message for the user.
func importFailure(err, source error, push *git.Push) error {
	switch {
	case err == nil:
	case source != nil:
		return source
	case errs.KindOf(err) != 0:
		return err
	case errors.Is(err, git.ErrMemory):
		return errs.Invalid("An object of the repository is too large.").Because(err)
	case errors.Is(err, git.ErrTooLarge):
		return errs.Invalid("The repository, or one of its objects, exceeds the maximum size.").Because(err)
	case errors.Is(err, git.ErrPack), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Invalid("The objects of the repository are damaged or not valid.").Because(err)
	default:
		return passing(err)
	}
	for _, c := range push.Changes {
		if c.Refused != "" && c.Refused != divergedRef {
			return errs.Invalid("The ref %.100q cannot be imported: %s", c.Ref, c.Refused)
		}
	}
	return nil
}

// Empty reports whether the repository of a project has no branches and no tags.
func (s *Service) Empty(ctx context.Context, p *project.Project) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return false, err
	}
	refs, err := r.Refs(ctx, git.RefOptions{})
	if errors.Is(err, git.ErrNoRepository) {
		return true, nil
	}
	return len(refs) == 0, err
}
