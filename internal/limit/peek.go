package limit

// Peek says what Allow would answer, and takes nothing. It is for limits on
// what goes wrong: ask before the try, and call Allow when it failed.
func (l *Limiter) Peek(key string, rate Rate) Decision {
	if rate.Requests <= 0 || rate.Period <= 0 {
		return Decision{OK: true}
	}
	now := l.now()
	id := l.bucketOf(key, rate)
	s := &l.shards[id%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[id] // a copy
	return b.take(now.Sub(l.start), now, rate)
}
