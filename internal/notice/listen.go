package notice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// quietTime is how long the connection may say nothing before it is asked
	// whether it is still there.
	quietTime = 15 * time.Second
	// answerTime bounds the answer, and a connection attempt.
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
	work, err := b.begin(ctx)
	if err != nil {
		return fmt.Errorf("start notices: %w", err)
	}
	b.reset() // what was cached before, nobody kept up to date
	b.healthy.Store(true)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	b.stop, b.done = stop, done
	go func() {
		defer close(done)
		work(inner)
	}()
	return nil
}

// begin gives what hears of the changes of others; none from now on is lost.
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
	defer b.healthy.Store(false)
	for {
		err := b.take(ctx, conn)
		b.healthy.Store(false)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = conn.Close(end) // it is of no more use
		cancel()
		if ctx.Err() != nil {
			return
		}
		b.Log.Warn("the connection for notices is lost", "error", err)
		b.reset()
		conn = b.reconnect(ctx)
		if conn == nil {
			return
		}
		// What comes from now on is heard, so nothing falls in between.
		b.reset()
		b.healthy.Store(true)
		b.Log.Info("the connection for notices is back")
	}
}

// take receives notices until the connection fails or ctx ends.
func (b *Bus) take(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, quietTime)
		n, err := conn.WaitForNotification(wait)
		quiet := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			b.receive(n.Payload)
		case ctx.Err() != nil || !quiet || conn.IsClosed():
			return err
		default:
			answer, cancel := context.WithTimeout(ctx, answerTime)
			err := conn.Ping(answer)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// reconnect tries until it succeeds; nil says that ctx has ended.
func (b *Bus) reconnect(ctx context.Context) *pgx.Conn {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause/2 + rand.N(pause)):
		}
		conn, err := b.listen(ctx)
		if err == nil {
			return conn
		}
		b.Log.Debug("no connection for notices yet", "error", err)
	}
}

// listen opens a connection that hears all notices from now on. It is not of
// the pool, because it waits for ever.
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
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
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
			b.Log.Warn("SQLite does not tell whether others write", "error", err)
		}
		if err == nil && version != last {
			b.reset()
			last = version
		}
	}
}
