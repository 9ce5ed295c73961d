package git

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"svc/internal/git/language"
	"svc/internal/git/refstore"
	"svc/internal/git/spool"
	"svc/internal/limit"
)

// Limits are the resource limits of an Engine. The default of each is given in its
// comment.
type Limits struct {
	// Maximum number of concurrent processes of each kind. A quarter of each is
	// reserved for signed-in users. One user can use half, and one address that is not
	// signed in a quarter.
	Commands  int // git processes that answer a request: 4 per core, at least 8
	Transfers int // git processes that transfer a pack or an archive: 64
	// Pushes with more than 64 MiB of objects: 4 per core, at least 8. One user can
	// use a quarter, at least 2. They wait four times as long as others.
	LargePushes int
	Readers     int // long-running processes that read objects, for all repositories: 32

	Wait     time.Duration // how long a call waits for a slot: 30 s
	Read     time.Duration // time limit of a process that reads: 60 s
	Write    time.Duration // time limit of a process that writes: 2 min
	Transfer time.Duration // time limit of a process that transfers a pack or an archive: 2 h
	Lines    time.Duration // time limit of a background count of changed lines: 5 min
	Idle     time.Duration // how long an idle reader is kept: 1 min

	// Memory is the maximum number of bytes that one process may allocate, not
	// counting mapped files: half of the memory of the machine, at least 1 GiB.
	Memory int64

	Cache     int64 // size of the caches in bytes: 64 MiB
	CacheBlob int64 // size of the largest cached blob in bytes: 256 KiB

	Spool    int64         // disk space for shared packs and archives in bytes: 4 GiB
	SpoolAge time.Duration // how long they are kept after creation: 10 min
}

func (l Limits) filled() Limits {
	return Limits{
		Commands:    cmp.Or(l.Commands, max(8, 4*runtime.NumCPU())),
		Transfers:   cmp.Or(l.Transfers, 64),
		LargePushes: cmp.Or(l.LargePushes, max(8, 4*runtime.NumCPU())),
		Readers:     cmp.Or(l.Readers, 32),
		Wait:        cmp.Or(l.Wait, 30*time.Second),
		Read:        cmp.Or(l.Read, time.Minute),
		Lines:       cmp.Or(l.Lines, 5*time.Minute),
		Write:       cmp.Or(l.Write, 2*time.Minute),
		Transfer:    cmp.Or(l.Transfer, 2*time.Hour),
		Idle:        cmp.Or(l.Idle, time.Minute),
		Memory:      cmp.Or(l.Memory, max(1<<30, machineMemory()/2)),
		Cache:       cmp.Or(l.Cache, 64<<20),
		CacheBlob:   cmp.Or(l.CacheBlob, 256<<10),
		Spool:       cmp.Or(l.Spool, 4<<30),
		SpoolAge:    cmp.Or(l.SpoolAge, 10*time.Minute),
	}
}

// Deps are the dependencies of an Engine.
type Deps struct {
	Limits Limits
	// Spool is a directory for packs and archives that several clients share. It is
	// created if needed and must not be used by another Engine. If it is empty,
	// nothing is shared.
	Spool string
}

// Engine runs git for all repositories of a node. It is safe for concurrent use.
type Engine struct {
	limits    Limits
	program   string
	env       []string
	commands  *limit.Share
	transfers *limit.Share
	large     *limit.Share  // pushes with a large pack; acquired after a transfer slot
	upkeep    chan struct{} // a semaphore for housekeeping
	readers   *readerPool
	cache     *cache
	spool     *spool.Spool
	uses      *uses
	refs      *refstore.Host
	languages func() *language.Index
	mounts    []mount

	countsMu sync.Mutex
	counts   map[cacheKey]*counting // counts of authors in progress
	linesMu  sync.Mutex             // held by the running count of changed lines
}

// New returns an Engine. It returns an error if git is not installed. Close stops
// the processes that the Engine started.
func New(d Deps) (*Engine, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("cannot run git: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	limits := d.Limits.filled()
	shared, err := spool.New(d.Spool, limits.Spool, limits.SpoolAge)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		limits:    limits,
		program:   program,
		env:       environment(),
		commands:  newShare("git commands", limits.Commands, limits.Wait),
		transfers: newShare("git transfers", limits.Transfers, limits.Wait),
		large:     newLargeShare(limits.LargePushes, 4*limits.Wait),
		upkeep:    make(chan struct{}, 1),
		cache:     newCache(limits.Cache),
		spool:     shared,
		uses:      newUses(),
		languages: sync.OnceValue(language.NewIndex),
	}
	e.refs = &refstore.Host{Cache: refsCache{e.cache}, Write: limits.Write, Git: e.lockRefs}
	e.readers = newReaderPool(newShare("reads of repositories", limits.Readers, limits.Wait), limits.Readers, limits.Idle, e.startReader)
	return e, nil
}

// newShare returns the slots for one kind of process. The queue is long, because a
// pipeline with hundreds of jobs clones as one user.
func newShare(name string, total int, wait time.Duration) *limit.Share {
	return limit.NewShare(name, limit.ShareLimits{
		Total: total, Reserve: total / 4, PerUser: max(1, total/2), PerAddress: max(1, total/4), Queue: 1024, Wait: wait,
	})
}

// newLargeShare returns the slots for pushes with a large pack. Each may use as
// much memory as the object size limit allows.
func newLargeShare(total int, wait time.Duration) *limit.Share {
	perUser := min(total, max(2, total/4))
	return limit.NewShare("large pushes", limit.ShareLimits{
		Total: total, Reserve: total / 4, PerUser: perUser, PerAddress: perUser, Queue: 1024, Wait: wait,
	})
}

// LargePushes returns the slots for pushes with a large pack, for tests.
func (e *Engine) LargePushes() *limit.Share { return e.large }

// Transfers returns the slots for transfers, for tests.
func (e *Engine) Transfers() *limit.Share { return e.transfers }

// Close stops idle processes. Calls in progress end with their contexts.
func (e *Engine) Close() {
	e.spool.Close()
	e.readers.close()
}

// Repo is a handle on a bare repository. It holds no resources and may be copied.
// The directory need not exist.
type Repo struct {
	engine *Engine
	path   string
	refs   refstore.Store
	files  *refstore.Files // refs in files of the directory, with locks and reflogs
	// backend is where the repository is stored if the directory is a cache; nil
	// otherwise.
	backend Backend
	// borrowed are object directories of other repositories whose objects are visible
	// too.
	borrowed []string
	// sources are those of them whose directories are caches.
	sources []Repo
	// view restricts the visible refs; nil for all.
	view *view
}

// Repo returns a handle on the bare repository at path.
func (e *Engine) Repo(path string) Repo {
	r := e.Local(path)
	if b := e.backendOf(r.path); b != nil {
		r.backend, r.refs = b, b.Refs(r.path)
	}
	return r
}

// Local returns a handle on the directory at path, whether it is a cache or not.
// Its refs are those in files of the directory.
func (e *Engine) Local(path string) Repo {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	files := refstore.NewFiles(e.refs, path)
	return Repo{engine: e, path: path, refs: files, files: files}
}

// Path returns the directory of the repository.
func (r Repo) Path() string { return r.path }

// RefStore returns the refs of the repository.
func (r Repo) RefStore() refstore.Store { return r.refs }

// With returns a handle that also sees the objects of another repository, to
// compare forks. Its refs are those of r. It must not be used for writing: new
// objects could depend on objects that r does not have.
func (r Repo) With(other Repo) Repo {
	if other.path == r.path {
		return r
	}
	view := r
	view.borrowed = append(append([]string(nil), r.borrowed...), filepath.Join(other.path, "objects"))
	if other.backend != nil {
		view.sources = append(append([]Repo(nil), r.sources...), other)
	}
	return view
}

// Forget drops the cached data of the repository and stops its idle processes. It
// must be called before a directory is removed or replaced. Changed refs and new
// objects do not require it.
func (r Repo) Forget() {
	r.engine.readers.forget(r.scope())
	r.engine.cache.forget(r.scope())
	r.engine.spool.Forget(r.scope())
}

// scope identifies the set of objects that r sees, for caches.
func (r Repo) scope() string {
	s := r.path
	for _, dir := range r.borrowed {
		s += "\x00" + dir
	}
	return s
}

// Spool copies the output of produce to w through the spool, so that produce does
// not wait for w as long as the spool has space.
func (e *Engine) Spool(ctx context.Context, w io.Writer, produce func(context.Context, io.Writer) error) error {
	return e.spool.Serve(ctx, "", "", w, produce)
}
