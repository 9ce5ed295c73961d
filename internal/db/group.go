package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// group batches concurrent SQLite write transactions into one commit (group commit). A
// commit is slow because it waits for the disk, and one wait can serve all writers. A
// part that has finished gives its turn to the writers that were already waiting; the first
// part that gets the turn again commits for all. A single writer gets the turn again
// immediately.
//
// Only the owner of the turn may use a group, except for done and err.
type group struct {
	tx         *sql.Tx
	cancel     context.CancelFunc
	parts      int // finished parts that wait for the commit
	unprepared []string

	done chan struct{} // closed after the commit or rollback
	err  error         // of the commit, once done is closed
}

// errLost is the error of the parts of a group that was rolled back because of
// another part. They are retried.
var errLost = fmt.Errorf("the transaction was rolled back together with another one: %w", errBusy)

// points are the savepoint statements of a part. They are prepared in advance,
// because a group uses the only connection.
type points struct{ set, back, release *sql.Stmt }

func preparePoints(ctx context.Context, d *sql.DB) (p points, err error) {
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{{&p.set, "SAVEPOINT part"}, {&p.back, "ROLLBACK TO part"}, {&p.release, "RELEASE part"}} {
		if *s.to, err = d.PrepareContext(ctx, s.text); err != nil {
			return points{}, err
		}
	}
	return p, nil
}

func (g *group) run(s *sql.Stmt) error {
	_, err := g.tx.Stmt(s).Exec()
	return err
}

// joinGroup runs f inside the open group transaction and waits for its commit.
func (d *DB) joinGroup(ctx context.Context, f func(tx *Tx) error) (*Tx, error) {
	g, tx, err := d.part(ctx, f)
	if err != nil {
		return nil, err
	}
	select {
	case <-g.done:
	case <-d.turn.free:
		if d.group == g {
			d.settle(ctx)
		}
		d.turn.give()
		<-g.done
	}
	if g.err != nil {
		return nil, g.err
	}
	return tx, nil
}

// part waits for its turn and runs f in the open group, or in a new one. A
// failure does not affect the other parts.
func (d *DB) part(ctx context.Context, f func(tx *Tx) error) (*group, *Tx, error) {
	if err := d.turn.take(ctx); err != nil {
		return nil, nil, err
	}
	defer d.turn.give()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	g, err := d.openGroup(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("begin: %w", because(ctx, err))
	}
	whole := false
	defer func() { // also when f panics
		if !whole {
			d.undoPart(g)
		}
	}()
	tx := &Tx{db: d, tx: g.tx, ctx: ctx}
	if err = tx.run(f); err == nil && tx.failed == nil {
		err = tx.callWatches(ctx)
	}
	if tx.open != nil { // rows cannot be read after the end
		err = errors.Join(err, tx.open.Close())
	}
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return nil, nil, because(ctx, err)
	case err != nil:
		return nil, nil, err
	case tx.failed != nil:
		return nil, nil, fmt.Errorf("commit: a statement has failed: %w", tx.failed)
	case ctx.Err() != nil: // checked for the last time
		return nil, nil, fmt.Errorf("commit: %w", ctx.Err())
	}
	if g.parts > 0 {
		if err := g.run(d.points.release); err != nil {
			return nil, nil, fmt.Errorf("commit: %w", mapError(err))
		}
	}
	whole = true
	g.parts++
	g.unprepared = append(g.unprepared, tx.unprepared...)
	return g, tx, nil
}

// openGroup returns the open group, with a savepoint to which the part can be
// rolled back. The first part needs none: it is rolled back with the group.
func (d *DB) openGroup(ctx context.Context) (*group, error) {
	if g := d.group; g != nil {
		if err := g.run(d.points.set); err != nil {
			d.end(g, errLost)
			return nil, errors.Join(errLost, err)
		}
		return g, nil
	}
	// The group keeps the values of the context, but not its cancellation.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	tx, err := d.writer.db.BeginTx(inner, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	d.group = &group{tx: tx, cancel: cancel, done: make(chan struct{})}
	return d.group, nil
}

// undoPart rolls back the part that has the turn. On some errors SQLite rolls
// back the whole transaction, and then all its parts are lost.
func (d *DB) undoPart(g *group) {
	if d.group != g {
		return
	}
	if g.parts == 0 {
		d.end(g, errLost)
		return
	}
	if g.run(d.points.back) != nil || g.run(d.points.release) != nil {
		d.end(g, errLost)
	}
}

// settle commits the open group, if there is one. The caller has the turn.
func (d *DB) settle(ctx context.Context) {
	g := d.group
	if g == nil {
		return
	}
	defer time.AfterFunc(patience, g.cancel).Stop()
	if err := g.tx.Commit(); err != nil {
		d.end(g, fmt.Errorf("commit: %w", mapError(err)))
		return
	}
	d.end(g, nil)
	d.writer.learn(context.WithoutCancel(ctx), g.unprepared)
}

// end closes a group and rolls back uncommitted changes.
func (d *DB) end(g *group, err error) {
	d.group = nil
	_ = g.tx.Rollback() // a no-op after the commit
	g.cancel()
	g.err = err
	close(g.done)
}
