// Package limit implements rate limits: token buckets in memory, one for each pair
// of a rate and a key (an address, a user, a login). Each node counts separately.
package limit

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"
)

// Rate is a number of requests per period. A bucket starts full, so all of them may
// be made at once; then they are refilled evenly over the period. A Rate without
// requests or period means no limit.
type Rate struct {
	Name     string // separates the buckets of a key; value of RateLimit-Name
	Requests int
	Period   time.Duration
}

// Decision is the result of checking a request.
type Decision struct {
	OK bool
	// Limit is the number of requests in the period of the rate; 0 means that there
	// is no limit, and the other fields are empty.
	Limit int
	// Observed is the number of requests that count for the bucket: this one, those
	// that have not been refilled, and those refused since the last allowed one. It
	// is greater than Limit if OK is false.
	Observed  int
	Remaining int
	// Reset is when the bucket is full again if there are no further requests.
	Reset time.Time
	// RetryAfter is how long to wait until the next request is allowed; 0 if this
	// one is allowed.
	RetryAfter time.Duration

	rate Rate
}

// Deps are the dependencies of a Limiter.
type Deps struct {
	Now func() time.Time
	// Keys limits the number of buckets, and thereby the memory: about 60 bytes per
	// bucket. If all are in use, a new key replaces one that is nearly idle. 0 means
	// 100,000.
	Keys int
}

// Limiter has the buckets. It is safe for concurrent use.
type Limiter struct {
	now    func() time.Time
	start  time.Time
	seed   maphash.Seed
	most   int // maximum number of buckets in a shard
	shards [shardCount]shard
}

const (
	// shardCount is the number of shards, which have separate locks to reduce
	// contention.
	shardCount  = 32
	defaultKeys = 100_000
	// looks is how many buckets are examined for an idle one when a key is added.
	looks = 8
)

type shard struct {
	mu      sync.Mutex
	buckets map[uint64]bucket
	_       [48]byte // padding: each lock has a separate cache line
}

// bucket is a token bucket, stored as the time at which it will be full if there are
// no further requests. A full bucket need not be stored.
type bucket struct {
	full    time.Duration // time since Limiter.start
	refused int32         // refused requests since the last allowed one
}

// New returns an empty Limiter.
func New(d Deps) *Limiter {
	l := &Limiter{
		now:   d.Now,
		start: d.Now(),
		seed:  maphash.MakeSeed(),
		most:  max(1, cmp.Or(d.Keys, defaultKeys)/shardCount),
	}
	for i := range l.shards {
		l.shards[i].buckets = map[uint64]bucket{}
	}
	return l
}

// Allow takes a request of the key from the bucket of the rate, if there is one
// left.
func (l *Limiter) Allow(key string, rate Rate) Decision {
	if rate.Requests <= 0 || rate.Period <= 0 {
		return Decision{OK: true}
	}
	now := l.now()
	at := now.Sub(l.start) // monotonic, so that setting the clock has no effect on the limits

	id := l.bucketOf(key, rate)
	s := &l.shards[id%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	b, known := s.buckets[id]
	if !known {
		s.makeRoom(at, l.most)
	}
	d := b.take(at, now, rate)
	s.buckets[id] = b
	return d
}

// bucketOf returns the key of a bucket in the map. It is a hash, so that long keys
// use no memory. Its seed is random, so that no one can choose a key that collides
// with another.
func (l *Limiter) bucketOf(key string, rate Rate) uint64 {
	return maphash.Comparable(l.seed, struct{ name, key string }{rate.Name, key})
}

// take decides on a request at a time.
func (b *bucket) take(at time.Duration, now time.Time, rate Rate) Decision {
	one := max(1, rate.Period/time.Duration(rate.Requests)) // time to refill one request
	whole := one * time.Duration(rate.Requests)

	// The debt is at most a whole bucket: the rate may have been changed, or the
	// clock set back.
	wait := min(max(0, b.full-at), whole)
	d := Decision{OK: wait+one <= whole, Limit: rate.Requests, rate: rate}
	if d.OK {
		wait += one
		b.refused = 0
	} else {
		d.RetryAfter = wait + one - whole
		b.refused++
	}
	b.full = at + wait
	d.Remaining = int((whole - wait) / one)
	d.Observed = d.Limit - d.Remaining + int(b.refused)
	d.Reset = now.Add(wait)
	return d
}

// makeRoom removes idle buckets among a few, and the one nearest to idle if the
// shard is full. Examining a few at a time is sufficient, because buckets are
// removed at least as fast as they are added, and no request has to examine all of
// them.
func (s *shard) makeRoom(at time.Duration, most int) {
	var nearest uint64
	var found bool
	left := looks
	for id, b := range s.buckets { // in random order
		if b.full <= at {
			delete(s.buckets, id)
		} else if !found || b.full < s.buckets[nearest].full {
			nearest, found = id, true
		}
		if left--; left == 0 {
			break
		}
	}
	if found && len(s.buckets) >= most {
		delete(s.buckets, nearest)
	}
}
