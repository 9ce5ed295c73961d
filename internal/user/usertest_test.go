package user

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/notice"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a service with real dependencies, for tests.
type bench struct {
	*Service
	t     *testing.T
	clock *clock
	audit *audit.Service
}

// password is the password of all users that bench creates.
const password = "correct horse"

// each runs f with a service on each supported database.
func each(t *testing.T, f func(b *bench)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f(newBench(t, d, secret.NewHasher(secret.Params{Memory: 64, Time: 1, Threads: 1}, 4)))
	})
}

func newBench(t *testing.T, d *db.DB, hasher *secret.Hasher) *bench {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	dir := t.TempDir()
	blobs, err := blob.Open(t.Context(), "", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	keys, err := secret.LoadKeyring(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	notices, work := notice.New(notice.Deps{DB: d, Log: log, Now: time.Now}), queue.New(queue.Deps{DB: d, Log: log})
	return &bench{t: t, clock: c, audit: audit.New(audit.Deps{DB: d}), Service: New(Deps{
		DB: d, Blobs: blobs, Queue: work, Notices: notices, Keys: keys, Hasher: hasher, Now: c.Now, ServiceName: "svc",
		Settings: setting.New(setting.Deps{DB: d, Notices: notices, Now: c.Now}),
	})}
}

// user creates an account with the confirmed address name@example.com.
func (b *bench) user(name string) (*User, actor.Actor) {
	b.t.Helper()
	u, err := b.Create(b.t.Context(), actor.System(), NewUser{
		Username: name, Name: name, Email: name + "@example.com", Password: password, SkipConfirmation: true,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return u, b.toActor(u, "192.0.2.1")
}

// admin creates an administrator.
func (b *bench) admin(name string) (*User, actor.Actor) {
	b.t.Helper()
	u, _ := b.user(name)
	yes := true
	u, err := b.Update(b.t.Context(), actor.System(), u.ID, Change{Fields: Fields{Admin: &yes}})
	if err != nil {
		b.t.Fatal(err)
	}
	return u, b.toActor(u, "192.0.2.1")
}

// again reads an account from the database.
func (b *bench) again(u *User) *User {
	b.t.Helper()
	u, err := findUser(b.t.Context(), b.DB, u.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

// events returns all audit events, newest first.
func (b *bench) events() []audit.Event {
	b.t.Helper()
	page, err := b.audit.List(b.t.Context(), actor.System(), audit.Filter{}, db.Paging{Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Items
}

// event returns the newest audit event of a type.
func (b *bench) event(kind string) audit.Event {
	b.t.Helper()
	for _, e := range b.events() {
		if e.Type == kind {
			return e
		}
	}
	b.t.Fatalf("no audit event %s", kind)
	return audit.Event{}
}

func (b *bench) count(kind string) int {
	b.t.Helper()
	n := 0
	for _, e := range b.events() {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// ok stops the test on an error.
func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// refused checks that err has this kind.
func (b *bench) refused(err error, kind errs.Kind) {
	b.t.Helper()
	if !errs.Is(err, kind) {
		b.t.Fatalf("error %v is of kind %d, not %d", err, errs.KindOf(err), kind)
	}
}

// wrong checks that err is Invalid with this message for the field.
func (b *bench) wrong(err error, field, text string) {
	b.t.Helper()
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind != errs.KindInvalid || len(e.Fields[field]) != 1 || e.Fields[field][0] != text {
		b.t.Fatalf("error %v does not say that %s %s", err, field, text)
	}
}

func ptr[T any](v T) *T { return &v }
