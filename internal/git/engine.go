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

// Limits bounds what an Engine uses. A field that is zero takes the value
// that is named beside it.
type Limits struct {
	// How many processes of each kind run at once. A quarter of each is kept
	// for users who have signed in; one user can hold half, and one address
	// that has not signed in a quarter.
	Commands  int // git processes that answer a request: 4 for each core, at least 8
	Transfers int // git processes that move a pack or an archive: 64
	// Pushes whose objects have more than 64 MiB together: 4 for each core, at
	// least 8. One user can hold a quarter, at least 2. They wait four times as
	// long as others.
	LargePushes int
	Readers     int // long-lived processes that read objects, over all repositories: 32

	Wait     time.Duration // how long a call waits for a process to be allowed: 30 s
	Read     time.Duration // the time of a process that reads: 60 s
	Write    time.Duration // the time of a process that writes: 2 min
	Transfer time.Duration // the time of a process that moves a pack or an archive: 2 h
	Lines    time.Duration // the time of a count of changed lines, in the background: 5 min
	Idle     time.Duration // how long a reader is kept that no one uses: 1 min

	// Memory is the most bytes that one process may allocate. Files that it maps
	// to read do not count. Half of the machine's memory, at least 1 GiB.
	Memory int64

	Cache     int64 // bytes of the caches: 64 MiB
	CacheBlob int64 // the largest blob that is cached, in bytes: 256 KiB

	Spool    int64         // bytes on disk of packs and archives that are shared: 4 GiB
	SpoolAge time.Duration // how long one is kept after it was made: 10 min
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

// Deps is what an Engine needs.
type Deps struct {
	Limits Limits
	// Spool is a directory for packs and archives that many clients share; it
	// is made if need be. It belongs to this Engine alone. Without it, each
	// client gets its own.
	Spool string
}

// Engine runs git for all repositories of a node. It is safe for use by many
// goroutines.
type Engine struct {
	limits    Limits
	program   string
	env       []string
	commands  *limit.Share
	transfers *limit.Share
	large     *limit.Share  // pushes with a large pack; taken after a slot of the transfers
	upkeep    chan struct{} // holds the one who does housekeeping
	readers   *readerPool
	cache     *cache
	spool     *spool.Spool
	uses      *uses
	refs      *refstore.Host
	languages func() *language.Index

	countsMu sync.Mutex
	counts   map[cacheKey]*counting // of authors, that are under way
	lining   sync.Mutex             // held by the count of lines that runs: one at a time
}

// New finds the git program; it is an error if there is none. Close ends what
// the Engine started.
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

// newShare makes the slots of one kind of process. Many calls of one caller may
// wait: a pipeline with hundreds of jobs clones as one user.
func newShare(name string, total int, wait time.Duration) *limit.Share {
	return limit.NewShare(name, limit.ShareLimits{
		Total: total, Reserve: total / 4, PerUser: max(1, total/2), PerAddress: max(1, total/4), Queue: 1024, Wait: wait,
	})
}

// newLargeShare makes the slots of pushes with a large pack, of which each can
// take as much memory as the limit of an object allows.
func newLargeShare(total int, wait time.Duration) *limit.Share {
	one := min(total, max(2, total/4))
	return limit.NewShare("large pushes", limit.ShareLimits{
		Total: total, Reserve: total / 4, PerUser: one, PerAddress: one, Queue: 1024, Wait: wait,
	})
}

// LargePushes returns the slots of pushes with a large pack, for tests.
func (e *Engine) LargePushes() *limit.Share { return e.large }

// Close ends the processes that wait for work. Calls that are under way end
// as their contexts do.
func (e *Engine) Close() {
	e.spool.Close()
	e.readers.close()
}

// Repo is a handle on a bare repository. It holds nothing open and may be
// copied; it says nothing about whether the directory exists.
type Repo struct {
	engine *Engine
	path   string
	refs   refstore.Store
	files  *refstore.Files // of the directory, with its locks and logs
	// borrowed are object directories of other repositories whose objects
	// are seen beside those of this one.
	borrowed []string
	// view is what the reader sees; nil for everything.
	view *view
}

// Repo returns a handle on the bare repository in the directory path.
func (e *Engine) Repo(path string) Repo {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	files := refstore.NewFiles(e.refs, path)
	return Repo{engine: e, path: path, refs: files, files: files}
}

// Path is the directory of the repository.
func (r Repo) Path() string { return r.path }

// With returns a view of r that sees the objects of another repository too, as
// a comparison between forks needs. Refs are those of r alone. Nothing may be
// written through it: new objects could lean on ones that r does not have.
func (r Repo) With(other Repo) Repo {
	if other.path == r.path {
		return r
	}
	view := r
	view.borrowed = append(append([]string(nil), r.borrowed...), filepath.Join(other.path, "objects"))
	return view
}

// Forget drops what is cached of the repository and ends the idle processes
// that read it. It is for a directory that is being removed or replaced;
// changes of refs and new objects need no call.
func (r Repo) Forget() {
	r.engine.readers.forget(r.scope())
	r.engine.cache.forget(r.scope())
	r.engine.spool.Forget(r.scope())
}

// scope names the set of objects that r sees; caches are kept apart by it.
func (r Repo) scope() string {
	s := r.path
	for _, dir := range r.borrowed {
		s += "\x00" + dir
	}
	return s
}

// Spool writes to w what produce writes, through the spool: produce does not wait
// for w as long as the spool has room.
func (e *Engine) Spool(ctx context.Context, w io.Writer, produce func(context.Context, io.Writer) error) error {
	return e.spool.Serve(ctx, "", "", w, produce)
}
