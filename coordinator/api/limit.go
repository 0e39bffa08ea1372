package api

import (
	"sync"
	"time"
)

// A bucket holds up to burst tokens and gains rate of them a second. A request takes one or is refused.
type bucket struct {
	mu     sync.Mutex
	rate   float64
	burst  float64
	tokens float64
	last   time.Time
}

func newBucket(rate, burst float64) *bucket { return &bucket{rate: rate, burst: burst, tokens: burst} }

// take takes a token at time now; if there is none, it says how long until there is.
func (b *bucket) take(now time.Time) (ok bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.tokens = min(b.burst, b.tokens+d*b.rate)
		b.last = now
	}
	if b.tokens >= 1 {
		b.tokens--
		return true, 0
	}
	return false, time.Duration((1 - b.tokens) / b.rate * float64(time.Second))
}

// A limiter has a bucket for each node. Only nodes with a certificate reach it, so it stays as small as the fleet.
type limiter struct {
	mu          sync.Mutex
	rate, burst float64
	buckets     map[string]*bucket
}

func newLimiter(rate, burst float64) *limiter {
	return &limiter{rate: rate, burst: burst, buckets: map[string]*bucket{}}
}

func (l *limiter) take(node string, now time.Time) (bool, time.Duration) {
	l.mu.Lock()
	b := l.buckets[node]
	if b == nil {
		b = newBucket(l.rate, l.burst)
		l.buckets[node] = b
	}
	l.mu.Unlock()
	return b.take(now)
}
