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
	// beatTime is the interval of heartbeats, well below trustTime.
	beatTime = 500 * time.Millisecond
	// answerTime is the time limit of a heartbeat and of a connection attempt. A
	// connection that takes longer is replaced.
	answerTime = 5 * time.Second
	// startTries is how often Start tries to connect: for a minute.
	startTries = 12
	// lookTime is how often the SQLite file is checked for writes of other
	// processes.
	lookTime = time.Second
)

// Start starts receiving the notices of others. On PostgreSQL these are the notices
// that other nodes send after Start has returned. On SQLite, other processes that
// use the file cannot send notices, so each of their writes counts as a missed
// notice. ctx limits the start only.
func (b *Bus) Start(ctx context.Context) error {
	b.life.Lock()
	defer b.life.Unlock()
	if b.stop != nil {
		return errors.New("start notices: already started")
	}
	began := b.read()
	work, err := b.begin(ctx)
	if err != nil {
		return fmt.Errorf("start notices: %w", err)
	}
	b.reset() // notices about values that were cached before were not received
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

// begin returns the function that receives changes of others. No notice is lost
// after begin has returned.
func (b *Bus) begin(ctx context.Context) (work func(context.Context), err error) {
	if b.DB.Postgres() {
		conn, err := b.listen(ctx)
		// On a busy machine, starting a process for a connection may take longer.
		for try := 1; try < startTries && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; try++ {
			conn, err = b.listen(ctx)
		}
		return func(ctx context.Context) { b.keepListening(ctx, conn) }, err
	}
	version, err := b.DB.OutsideChanges(ctx)
	return func(ctx context.Context) { b.look(ctx, version) }, err
}

// Stop stops receiving notices.
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

// keepListening receives notices from the connection, and from a new one whenever it
// fails.
func (b *Bus) keepListening(ctx context.Context, conn *pgx.Conn) {
	defer b.confirmed.Store(nil)
	for {
		err := b.take(ctx, conn)
		b.confirmed.Store(nil)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = conn.Close(end) // the connection has failed
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
		// The new connection already receives notices, so none is missed after the
		// reset.
		b.reset()
		b.confirmed.Store(&began)
		b.Log.Info("connection for notices restored")
	}
}

// heartbeat is a notice of a node to itself. PostgreSQL delivers notices in the
// order of their commits, so when it arrives, all notices that were committed before
// it was sent have arrived.
type heartbeat struct {
	number uint64
	sent   reading
	at     time.Time
	back   bool
}

// take receives notices, and confirms with heartbeats that they arrive, until the
// connection fails or ctx ends.
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
			sent := beat.sent // a copy, because beat changes before the next heartbeat arrives
			b.confirmed.Store(&sent)
			beat.back = true
		}
	}
}

// reconnect retries until it succeeds. It returns the connection and the time before
// the successful attempt; the connection is nil if ctx has ended.
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

// listen opens a connection that receives all notices from now on. It is not from
// the pool, because it is used permanently.
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

// look watches for commits of other processes to the SQLite file.
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
