package limit

// Peek returns what Allow would return, without taking a request. It is for limits
// on failures: call Peek before the attempt, and Allow if it failed.
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
