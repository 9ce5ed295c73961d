// Package limit implements rate limits: token buckets in memory, one for each pair
// of a rate and a key (an address, a user, a login). Each node counts for itself.
package limit

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"
)

// Rate is a number of requests in a period. A bucket starts full, so all of
// them may come at once; then they come back evenly over the period. The zero
// Rate, or one without requests or period, is no limit.
type Rate struct {
	Name     string // tells buckets of one key apart, and stands in RateLimit-Name
	Requests int
	Period   time.Duration
}

// Decision is the answer to one request.
type Decision struct {
	OK bool
	// Limit is the number of requests in the rate's period; 0 means that
	// there is no limit, and all else is empty.
	Limit int
	// Observed counts the requests that weigh on the bucket: this one, those
	// that have not come back yet, and those refused since the last one that
	// was allowed. It is over Limit when OK is false.
	Observed  int
	Remaining int
	// Reset is when the whole quota is there again if no one asks.
	Reset time.Time
	// RetryAfter is how long to wait for the next request to be allowed; 0
	// unless this one was refused.
	RetryAfter time.Duration

	rate Rate
}

// Deps is what a Limiter needs.
type Deps struct {
	Now func() time.Time
	// Keys bounds the number of buckets, and so the memory: about 60 bytes
	// each. When all are in use, a new key takes the place of one that is
	// nearly idle. 0 means 100,000.
	Keys int
}

// Limiter holds the buckets. It may be used by many goroutines at once.
type Limiter struct {
	now    func() time.Time
	start  time.Time
	seed   maphash.Seed
	most   int // buckets in a shard
	shards [shardCount]shard
}

const (
	// shardCount keeps requests on different processors from waiting for one
	// lock.
	shardCount  = 32
	defaultKeys = 100_000
	// looks is how many buckets a new key examines to find an idle one.
	looks = 8
)

type shard struct {
	mu      sync.Mutex
	buckets map[uint64]bucket
	_       [48]byte // a cache line for each lock
}

// bucket is a token bucket in the form of one instant: when it will be full if
// no one asks. A bucket that is full is the same as none.
type bucket struct {
	full    time.Duration // since Limiter.start
	refused int32         // since the last request that was allowed
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

// Allow takes one request of the key out of the rate's bucket, if there is
// one left.
func (l *Limiter) Allow(key string, rate Rate) Decision {
	if rate.Requests <= 0 || rate.Period <= 0 {
		return Decision{OK: true}
	}
	now := l.now()
	at := now.Sub(l.start) // by the monotonic clock, so that setting the time frees or locks out no one

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

// bucketOf names a bucket. Hashes stand for the keys, so that a long key costs
// no memory. The seed is random: no one can choose a key that shares another's
// bucket.
func (l *Limiter) bucketOf(key string, rate Rate) uint64 {
	return maphash.Comparable(l.seed, struct{ name, key string }{rate.Name, key})
}

// take decides on one request at an instant.
func (b *bucket) take(at time.Duration, now time.Time, rate Rate) Decision {
	one := max(1, rate.Period/time.Duration(rate.Requests)) // what one request adds to the wait
	whole := one * time.Duration(rate.Requests)

	// More than a whole bucket is not owed: the rate may have been changed
	// since, or the clock set back.
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

// makeRoom drops idle buckets among a few; a shard that is full loses the one
// nearest to idle if need be. To look at a few each time is enough: buckets
// go at least as fast as they come, and no request pays for all of them.
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
