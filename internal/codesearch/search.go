package codesearch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/zoekt"
	"github.com/sourcegraph/zoekt/query"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

const (
	// maxProjects is how many projects a search looks at.
	maxProjects = 50_000
	// maxHits is the maximum number of hits of a search, and maxProjectHits that of each
	// project in a search of several projects.
	maxHits        = 1000
	maxProjectHits = 100
	// searchTime is how long a search may take, and visitorTime for callers who have
	// not signed in.
	searchTime  = 10 * time.Second
	visitorTime = 2 * time.Second
	// Bounds of what is kept of a hit.
	maxLine     = 1000     // bytes
	maxLines    = 100      // lines
	maxHitBytes = 16 << 10 // bytes
	// firstLines is how many lines are shown of a file that is found by its path.
	firstLines = 5
)

// Hit is some lines of a file that follow each other, with at least one match.
type Hit struct {
	ProjectID int64
	Branch    string
	Path      string
	Start     int // the number of the first line
	Lines     []string
}

// Result is what a search found.
type Result struct {
	db.Page[Hit]
	Pending int // projects that are not indexed yet
}

// Search searches the indexed projects whose code the actor may read and returns at most
// maxHits hits. Everyone may call it. Invalid for a bad query; Unavailable if the search
// takes too long or the caller runs too many.
func (s *Service) Search(ctx context.Context, by actor.Actor, q Query, pg db.Paging) (Result, error) {
	res := Result{Page: db.Page[Hit]{Items: []Hit{}}}
	parsed, err := q.parse()
	if err != nil {
		return res, err
	}
	release, err := s.searches.Acquire(ctx)
	if err != nil {
		return res, err
	}
	defer release()
	limit := searchTime
	if by.Anonymous() {
		limit = visitorTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	indexes, err := s.listIndexes(ctx, by, q)
	if err == nil {
		res.Pending, err = s.countPending(ctx, by, q)
	}
	if err != nil {
		return res, late(ctx, fmt.Errorf("search code: %w", err))
	}
	want := maxHits + 1
	if !pg.Totals {
		want = min(want, max(0, pg.Offset)+pg.Limit+1)
	}
	found := s.searchAll(ctx, indexes, parsed, q, want)
	if err := ctx.Err(); err != nil {
		return res, late(ctx, err)
	}
	var broken []int64
	var hits []Hit
	for i, f := range found {
		if errs.Is(f.err, errs.KindUnavailable) { // from the object store, which may have the files
			return res, f.err
		}
		if f.err != nil {
			s.Log.WarnContext(ctx, "a code index cannot be read and is built again", "project_id", indexes[i].ProjectID, "error", f.err)
			broken = append(broken, indexes[i].ProjectID)
		}
		hits = append(hits, f.hits...)
		if len(hits) > maxHits {
			break
		}
	}
	if len(broken) > 0 {
		res.Pending += len(broken)
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range broken {
				if err := s.add(ctx, tx, buildWork{id, true}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return res, fmt.Errorf("search code: %w", err)
		}
	}
	res.Over = len(hits) > maxHits
	hits = hits[:min(len(hits), maxHits)]
	last := len(hits)
	if pg.Offset >= 0 && pg.Offset+pg.Limit >= 0 {
		last = min(last, pg.Offset+pg.Limit)
	}
	res.Total, res.More = len(hits), last < len(hits)
	if first := max(0, pg.Offset); first < last {
		res.Items = hits[first:last]
	}
	return res, nil
}

func late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errs.Unavailable("The search took too long. Narrow it with more filters or a smaller scope.").Because(err)
	}
	return err
}

// found is what a search found in a project.
type found struct {
	hits []Hit
	err  error
	done bool
}

// searchAll searches projects in their order until the first of them have enough
// hits, several at a time.
func (s *Service) searchAll(ctx context.Context, indexes []index, parsed query.Q, q Query, want int) []found {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	most := maxProjectHits
	if q.ProjectID != 0 {
		most = maxHits + 1
	}
	list := make([]found, len(indexes))
	var mu sync.Mutex
	next, finished, sum := 0, 0, 0 // finished: the number of projects from the first on that are done, with sum hits
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(list) || sum >= want || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	put := func(i int, f found) {
		mu.Lock()
		defer mu.Unlock()
		f.done = true
		list[i] = f
		for finished < len(list) && list[finished].done {
			sum += len(list[finished].hits)
			finished++
		}
		if sum >= want {
			cancel() // running searches are no longer needed
		}
	}
	var wg sync.WaitGroup
	for range min(len(indexes), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				i, ok := take()
				if !ok {
					return
				}
				hits, err := s.searchProject(ctx, indexes[i], parsed, q.Context, most)
				if ctx.Err() != nil {
					return
				}
				put(i, found{hits: hits, err: err})
			}
		})
	}
	wg.Wait()
	return list[:finished]
}

// searchProject searches the shards of a project. Hits in the content come first, then
// hits in paths.
func (s *Service) searchProject(ctx context.Context, x index, parsed query.Q, lines, most int) ([]Hit, error) {
	var hits []rankedHit
	for _, name := range x.Shards {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found, err := s.searchShard(ctx, x, name, parsed, lines, most)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(a, b rankedHit) int {
		if a.rank == b.rank && len(x.Shards) > 1 { // else they are in order
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Start, b.Start))
		}
		return cmp.Compare(a.rank, b.rank)
	})
	list := make([]Hit, min(len(hits), most))
	for i := range list {
		list[i] = hits[i].Hit
	}
	return list, nil
}

type rankedHit struct {
	Hit
	rank int // 0 for content, 1 for a path
}

// searchShard searches a shard. A shard that is missing or damaged on this node is
// fetched again.
func (s *Service) searchShard(ctx context.Context, x index, name string, parsed query.Q, lines, most int) ([]rankedHit, error) {
	hits, err := s.readShard(ctx, x, name, parsed, lines, most)
	if err == nil || s.Store == nil || ctx.Err() != nil {
		return hits, err
	}
	if err := s.fetch(ctx, x.ProjectID, name); err != nil {
		return nil, err
	}
	return s.readShard(ctx, x, name, parsed, lines, most)
}

func (s *Service) readShard(ctx context.Context, x index, name string, parsed query.Q, lines, most int) (hits []rankedHit, err error) {
	path := s.pathOf(x.ProjectID, name)
	sh, err := s.shards.acquire(path)
	if err != nil {
		return nil, err
	}
	defer sh.release()
	// A truncated file or a failing disk raises a memory fault in the mapping, which would
	// end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			s.shards.forget(path, sh)
			hits, err = nil, fmt.Errorf("search shard %s: %v", name, p)
		}
	}()
	res, err := sh.Search(ctx, parsed, &zoekt.SearchOptions{ChunkMatches: true, NumContextLines: lines, ShardMaxMatchCount: 10 * most, Whole: true})
	if err != nil {
		return nil, fmt.Errorf("search shard %s: %w", name, err)
	}
	for i := range res.Files {
		f := &res.Files[i]
		one := Hit{ProjectID: x.ProjectID, Branch: x.Branch, Path: f.FileName}
		content := false
		for _, c := range f.ChunkMatches {
			if c.FileName {
				continue
			}
			content = true
			h := one
			h.Start, h.Lines = int(c.ContentStart.LineNumber), splitLines(c.Content, maxLines)
			hits = append(hits, rankedHit{h, 0})
		}
		if !content {
			one.Start, one.Lines = 1, splitLines(head(f.Content), firstLines)
			hits = append(hits, rankedHit{one, 1})
		}
		if len(hits) > 4*most {
			break
		}
	}
	return hits, nil
}

func head(content []byte) []byte { return content[:min(len(content), firstLines*maxLine)] }

// splitLines copies lines without their ends.
func splitLines(content []byte, most int) []string {
	var lines []string
	size := 0
	for len(content) > 0 && len(lines) < most && size < maxHitBytes {
		line, rest, _ := bytes.Cut(content, []byte("\n"))
		content = rest
		line = line[:min(len(line), maxLine)]
		size += len(line)
		lines = append(lines, string(bytes.TrimSuffix(line, []byte("\r"))))
	}
	return lines
}
