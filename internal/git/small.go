package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// SmallBlobs selects blobs.
type SmallBlobs struct {
	From []OID // commits; nil means all refs
	Not  []OID // excludes blobs reachable from these commits
	// NotRefs excludes blobs reachable from any ref.
	NotRefs  bool
	Min, Max int64 // minimum and exclusive maximum size in bytes
	// Upkeep runs the search of the whole history in the background.
	Upkeep bool
}

// EachSmallBlob calls do with the content of every selected blob. It takes two
// processes and holds one batch in memory. It stops at and returns an error of do.
// It returns ErrNotFound if a commit does not exist.
func (r Repo) EachSmallBlob(ctx context.Context, o SmallBlobs, do func(id OID, content []byte) error) error {
	in, err := revInput(o.From)
	if err != nil {
		return err
	}
	not, err := revInput(o.Not)
	if err != nil {
		return err
	}
	for line := range strings.Lines(not) {
		in += "^" + line
	}
	args := []string{"rev-list", "--objects", "--no-object-names", "--filter-provided-objects",
		fmt.Sprintf("--filter=combine:blob:limit=%d+object:type=blob", o.Max), "--stdin"}
	switch {
	case o.From == nil:
		args = append(args, "--all")
	case in == "":
		return nil
	case o.NotRefs:
		args = append(args, "--not", "--all")
	}
	c := command{args: args, in: strings.NewReader(in), limit: r.engine.timeLimit(writing)}
	if o.Upkeep {
		c.work, c.limit = upkeep, 0
	}
	batch := make([]OID, 0, newBatch)
	flush := func() error {
		if err := r.smallBlobs(ctx, batch, o.Min, do); err != nil {
			return stop{err}
		}
		batch = batch[:0]
		return nil
	}
	err = r.run(ctx, c, func(out io.Reader) error {
		err := eachID(out, func(id OID) error {
			if batch = append(batch, id); len(batch) < newBatch {
				return nil
			}
			return flush()
		})
		if err == nil && len(batch) > 0 {
			err = flush()
		}
		return err
	})
	if s, ok := errors.AsType[stop](err); ok {
		return s.error
	}
	return err
}

// smallBlobs reads blobs of at least minSize bytes.
func (r Repo) smallBlobs(ctx context.Context, ids []OID, minSize int64, do func(id OID, content []byte) error) error {
	found := make([]*Object, 0, len(ids))
	err := r.withReader(ctx, func(p *reader) error {
		found = found[:0]
		for _, id := range ids {
			info, err := p.info(string(id))
			if err != nil {
				return err
			}
			if info.Type != TypeBlob || info.Size < minSize {
				continue
			}
			o, err := p.contents(info)
			if err != nil {
				return err
			}
			found = append(found, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range found {
		if err := do(o.OID, o.Content); err != nil {
			return err
		}
	}
	return nil
}
