package notice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// beatTime is how often a node confirms that notices arrive, well below
	// trustTime.
	beatTime = 500 * time.Millisecond
	// answerTime bounds a heartbeat and a connection attempt. A connection that
	// takes longer is replaced.
	answerTime = 5 * time.Second
	// lookTime is how often SQLite is asked for writes of other programs.
	lookTime = time.Second
)

// Start takes up the notices of others: on PostgreSQL those of other nodes,
// from the moment it returns; on SQLite, where another program on the same
// file can send none, each change that one makes counts as a notice that was
// missed. ctx bounds the start only.
func (b *Bus) Start(ctx context.Context) error {
	b.life.Lock()
	defer b.life.Unlock()
	if b.stop != nil {
		return errors.New("start notices: they are taken up already")
	}
	began := b.read()
	work, err := b.begin(ctx)
	if err != nil {
		return fmt.Errorf("start notices: %w", err)
	}
	b.reset() // what was cached before, no one kept up to date
	b.confirmed.Store(&began)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	b.stop, b.done = stop, done
	go func() {
		defer close(done)
		work(inner)
	}()
	return nil
}

// begin returns what hears of the changes of others; none from now on is lost.
func (b *Bus) begin(ctx context.Context) (work func(context.Context), err error) {
	if b.DB.Postgres() {
		conn, err := b.listen(ctx)
		return func(ctx context.Context) { b.keepListening(ctx, conn) }, err
	}
	version, err := b.DB.OutsideChanges(ctx)
	return func(ctx context.Context) { b.look(ctx, version) }, err
}

// Stop ends what Start began.
func (b *Bus) Stop() {
	b.life.Lock()
	defer b.life.Unlock()
	if b.stop == nil {
		return
	}
	b.stop()
	<-b.done
	b.stop = nil
}

// keepListening takes notices from the connection, and from others after it.
func (b *Bus) keepListening(ctx context.Context, conn *pgx.Conn) {
	defer b.confirmed.Store(nil)
	for {
		err := b.take(ctx, conn)
		b.confirmed.Store(nil)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = conn.Close(end) // it is of no more use
		cancel()
		if ctx.Err() != nil {
			return
		}
		b.Log.Warn("connection for notices lost", "error", err)
		b.reset()
		var began reading
		if conn, began = b.reconnect(ctx); conn == nil {
			return
		}
		// What comes from now on is heard, so nothing falls in between.
		b.reset()
		b.confirmed.Store(&began)
		b.Log.Info("connection for notices restored")
	}
}

// heartbeat is a notice of a node to itself. PostgreSQL delivers notices in the
// order of their commits, so when it comes back all that were committed before
// it was sent have come.
type heartbeat struct {
	number uint64
	sent   reading
	at     time.Time
	back   bool
}

// take receives notices, and confirms by heartbeats that they arrive, until
// the connection fails or ctx ends.
func (b *Bus) take(ctx context.Context, conn *pgx.Conn) error {
	beat := heartbeat{at: time.Now(), back: true}
	for {
		wait := time.Until(beat.at.Add(beatTime))
		if !beat.back {
			wait = time.Until(beat.at.Add(answerTime))
		}
		if wait <= 0 && !beat.back {
			return errors.New("a heartbeat did not come back")
		}
		if wait <= 0 {
			beat = heartbeat{number: beat.number + 1, sent: b.read(), at: time.Now()}
			if err := b.beat(ctx, conn, beat.number); err != nil {
				return err
			}
			continue
		}
		until, cancel := context.WithTimeout(ctx, wait)
		n, err := conn.WaitForNotification(until)
		over := until.Err() != nil
		cancel()
		switch {
		case err != nil && over && ctx.Err() == nil && !conn.IsClosed():
		case err != nil:
			return err
		case n.Channel == channel:
			b.receive(n.Payload)
		case n.Payload == strconv.FormatUint(beat.number, 10):
			sent := beat.sent // a copy: the next heartbeat confirms nothing until it is back
			b.confirmed.Store(&sent)
			beat.back = true
		}
	}
}

// reconnect tries until it succeeds, and gives the time before it did; a nil
// connection says that ctx has ended.
func (b *Bus) reconnect(ctx context.Context) (*pgx.Conn, reading) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		select {
		case <-ctx.Done():
			return nil, reading{}
		case <-time.After(pause/2 + rand.N(pause)):
		}
		began := b.read()
		conn, err := b.listen(ctx)
		if err == nil {
			return conn, began
		}
		b.Log.Debug("no connection for notices yet", "error", err)
	}
}

// listen opens a connection that hears all notices from now on. It is not of
// the pool, because it waits forever.
func (b *Bus) listen(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cfg, err := pgx.ParseConfig(b.DB.URL())
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["application_name"] = "svc notices"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+channel+"; LISTEN "+beatChannel+b.node); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// look watches for commits that other programs make to the SQLite file.
func (b *Bus) look(ctx context.Context, last int64) {
	ticker := time.NewTicker(lookTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		version, err := b.DB.OutsideChanges(ctx)
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("cannot check whether other processes write to SQLite", "error", err)
		}
		if err == nil && version != last {
			b.reset()
			last = version
		}
	}
}
