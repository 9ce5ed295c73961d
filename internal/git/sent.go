package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"svc/internal/git/pack"
)

// The history of a push may contain objects that the client did not send because
// the repository has them. Git only requires that they exist. The receiver also
// requires that the client can read them: otherwise anyone who knows an ID could
// create a branch of objects that are reachable only from hidden refs.

const (
	// maxSent is the maximum number of objects in a push if refs are hidden from the
	// client. Their IDs are held in memory.
	maxSent = 2_000_000
	// maxUnsent is the maximum number of objects in the history of such a push that
	// are neither sent nor part of a visible branch tip.
	maxUnsent = 20_000
)

// unseen is the state of the check for a client that cannot see all refs. It is
// set up before the pack is received, because the pack must be kept as a whole.
type unseen struct {
	visible *tips
	end     int64 // length of the received pack without its checksum
}

// findUnseen checks whether refs are hidden from the client.
func (p *receiver) findUnseen(ctx context.Context) error {
	if len(p.o.Unseen) == 0 {
		return nil
	}
	anyHidden := false
	visible, err := p.repo.tips(ctx, func(ref string) bool {
		hidden := below(ref, p.o.Unseen)
		anyHidden = anyHidden || hidden
		return hidden
	})
	if err != nil {
		return err
	}
	if anyHidden {
		p.unseen = &unseen{visible: visible}
	}
	return nil
}

// checkSeen refuses a push with objects that the client neither sent nor can read.
func (p *receiver) checkSeen(ctx context.Context, q *quarantine) error {
	if p.unseen == nil {
		return nil
	}
	// Unreadable objects are refused like missing ones, so that a push does not reveal
	// whether they exist.
	if slices.ContainsFunc(p.push.Changes, func(c *RefChange) bool { return c.Refused == missingObjects }) {
		p.refuseAll(missingObjects)
		return nil
	}
	unsent, err := p.unsent(ctx, q, p.accepted())
	if errors.Is(err, ErrTooLarge) {
		p.refuseAll("too many objects to check; push fewer commits at a time")
		return nil
	}
	if err != nil || len(unsent) == 0 {
		return err
	}
	objects := make([]Info, len(unsent))
	for i, id := range unsent {
		if objects[i], err = p.repo.Info(ctx, id); err != nil {
			return fmt.Errorf("check the objects of a push: %w", err)
		}
	}
	lost, err := p.repo.unreachable(ctx, objects, p.unseen.visible)
	if err == nil && len(lost) > 0 {
		p.refuseAll(missingObjects)
	}
	return err
}

// unsent returns the objects in the history of a push, and the delta bases of its
// pack, that were not sent.
func (p *receiver) unsent(ctx context.Context, q *quarantine, changes []*RefChange) ([]OID, error) {
	sent := map[OID]struct{}{}
	var list []OID
	add := func(id OID) error {
		if len(list) == maxUnsent {
			return fmt.Errorf("a push leads to more than %d objects that were not sent: %w", maxUnsent, ErrTooLarge)
		}
		list = append(list, id)
		return nil
	}
	err := q.index(ctx, func(id OID, offset int64) error {
		if offset >= p.unseen.end { // a delta base that git appended
			return add(id)
		}
		if len(sent) == maxSent {
			return fmt.Errorf("a push has more than %d objects: %w", maxSent, ErrTooLarge)
		}
		sent[id] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var in strings.Builder
	for _, c := range changes {
		if c.New != ZeroOID {
			in.WriteString(string(c.New) + "\n")
		}
	}
	if in.Len() == 0 {
		return list, nil
	}
	for _, id := range p.unseen.visible.sorted() {
		in.WriteString("^" + string(id) + "\n")
	}
	c := command{work: writing, env: q.env(), in: strings.NewReader(in.String()), args: []string{"rev-list", "--objects", "--no-object-names", "--stdin"}}
	err = p.repo.run(ctx, c, func(out io.Reader) error {
		return eachID(out, func(id OID) error {
			if _, ok := sent[id]; ok {
				return nil
			}
			return add(id)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("check the objects of a push: %w", err)
	}
	return list, nil
}

// copyPack copies the pack to git and records its length.
func (p *receiver) copyPack(out io.Writer, in *bufio.Reader, large func() error) error {
	maxObject := p.o.MaxObject
	if maxObject <= 0 {
		maxObject = math.MaxInt64 >> 2
	}
	f := &pack.Filter{In: in, Out: out, MaxObject: maxObject, Large: large, Progress: p.o.Progress}
	err := f.Run()
	p.push.Pointers = f.Pointers
	if p.unseen != nil {
		p.unseen.end = f.Received - 20
	}
	return err
}

// index calls do for each object in the packs of the quarantine.
func (q *quarantine) index(ctx context.Context, do func(id OID, offset int64) error) error {
	names, err := filepath.Glob(filepath.Join(q.dir, "pack", "*.idx"))
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = q.repo.run(ctx, command{work: writing, args: []string{"show-index"}, in: f}, func(out io.Reader) error {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				offset, rest, _ := strings.Cut(lines.Text(), " ")
				hex, _, _ := strings.Cut(rest, " ")
				id, ok := ParseOID(hex)
				at, err := strconv.ParseInt(offset, 10, 64)
				if !ok || err != nil {
					return fmt.Errorf("git gave %.100q for an entry of an index", lines.Text())
				}
				if err := do(id, at); err != nil {
					return err
				}
			}
			return lines.Err()
		})
		_ = f.Close() // opened for reading only
		if err != nil {
			return fmt.Errorf("read index of pack: %w", err)
		}
	}
	return nil
}
