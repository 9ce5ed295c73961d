// Package event lets features follow what happens in other features.
//
// A feature has its events in a struct named Events. Everything that subscribes
// to them does so in one place, internal/app/events.go, in the order in which
// the subscribers are called.
package event

import (
	"context"

	"svc/internal/db"
)

// Event is something that happens in a feature, with a value that describes it.
// The zero value has no subscribers.
type Event[T any] struct{ subscribers []Subscriber[T] }

// Subscriber is called in the transaction in which the event happens: both are
// stored, or neither. Slow work belongs in the queue.
type Subscriber[T any] func(ctx context.Context, tx *db.Tx, what T) error

// Subscribe adds subscribers. It is called at start-up.
func (e *Event[T]) Subscribe(s ...Subscriber[T]) { e.subscribers = append(e.subscribers, s...) }

// Publish calls the subscribers in their order, until one fails.
func (e *Event[T]) Publish(ctx context.Context, tx *db.Tx, what T) error {
	for _, s := range e.subscribers {
		if err := s(ctx, tx, what); err != nil {
			return err
		}
	}
	return nil
}

// causeKey is the key of the cause in a context.
type causeKey struct{}

// WithCause returns a context in which events are a consequence of an earlier
// delivery to a webhook: its receiver has sent the UUID back with a request. Like
// the ID of a request it travels in the context, because it is no concern of the
// features in between.
func WithCause(ctx context.Context, uuid string) context.Context {
	return context.WithValue(ctx, causeKey{}, uuid)
}

// Cause returns the UUID of WithCause; empty without one.
func Cause(ctx context.Context) string {
	uuid, _ := ctx.Value(causeKey{}).(string)
	return uuid
}
