package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// group is a transaction of SQLite that several of ours are parts of. What
// makes a commit slow is the wait for the disk, and one wait can serve all who
// write at the same time: a part that is done lets those go first who waited
// for their turn before it, and whoever has the turn again first commits for
// all. One that writes alone has the turn again at once.
//
// Only who has the turn touches a group, but for its end.
type group struct {
	tx         *sql.Tx
	cancel     context.CancelFunc
	parts      int // that are done and wait for the commit
	unprepared []string

	done chan struct{} // closed at the end
	err  error         // of the commit, once done is closed
}

// errLost is what parts are told whose group was undone for another's sake.
// They run again.
var errLost = fmt.Errorf("the transaction was undone with that of another: %w", errBusy)

// points are the statements for the point from which a part can be undone.
// The group holds the only connection, so they are prepared before.
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

// joinGroup runs the transaction once, as a part of a group.
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

// part waits for its turn and runs f in the open group, or in a new one. When
// it fails the others of the group do not notice.
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
	if tx.open != nil { // nobody reads on after the end
		err = errors.Join(err, tx.open.Close())
	}
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return nil, nil, because(ctx, err)
	case err != nil:
		return nil, nil, err
	case tx.failed != nil:
		return nil, nil, fmt.Errorf("commit: a statement has failed: %w", tx.failed)
	case ctx.Err() != nil: // from here on it no longer counts
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

// openGroup gives the group that is open, at a point to which it can be undone.
// The first part needs none: it is undone with the group.
func (d *DB) openGroup(ctx context.Context) (*group, error) {
	if g := d.group; g != nil {
		if err := g.run(d.points.set); err != nil {
			d.end(g, errLost)
			return nil, errors.Join(errLost, err)
		}
		return g, nil
	}
	// Of the context of one part the group takes only what it tells.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	tx, err := d.writer.db.BeginTx(inner, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	d.group = &group{tx: tx, cancel: cancel, done: make(chan struct{})}
	return d.group, nil
}

// undoPart undoes what the part that has the turn has done. Some faults make
// SQLite undo the whole transaction, and then all parts of it are lost.
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

// end closes a group: what was not committed is undone.
func (d *DB) end(g *group, err error) {
	d.group = nil
	_ = g.tx.Rollback() // a no-op after the commit
	g.cancel()
	g.err = err
	close(g.done)
}
