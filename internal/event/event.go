// Package event lets features subscribe to events of other features.
//
// A feature declares its events in a struct named Events. All subscriptions are in
// internal/app/events.go, in the order in which the subscribers are called.
package event

import (
	"context"

	"svc/internal/db"
)

// Event is a type of event of a feature, with a value that describes it. The zero
// value has no subscribers.
type Event[T any] struct{ subscribers []Subscriber[T] }

// Subscriber is called in the transaction that publishes the event: both are
// committed, or neither. Slow work belongs in the queue.
type Subscriber[T any] func(ctx context.Context, tx *db.Tx, what T) error

// Subscribe adds subscribers. It is called at startup.
func (e *Event[T]) Subscribe(s ...Subscriber[T]) { e.subscribers = append(e.subscribers, s...) }

// Publish calls the subscribers in order, and stops at the first error.
func (e *Event[T]) Publish(ctx context.Context, tx *db.Tx, what T) error {
	for _, s := range e.subscribers {
		if err := s(ctx, tx, what); err != nil {
			return err
		}
	}
	return nil
}

// causeKey is the context key of the cause.
type causeKey struct{}

// WithCause returns a context whose events are caused by an earlier webhook
// delivery: its receiver sent the UUID of the delivery with a request. The UUID is
// passed in the context, like a request ID, because the features in between do not
// use it.
func WithCause(ctx context.Context, uuid string) context.Context {
	return context.WithValue(ctx, causeKey{}, uuid)
}

// Cause returns the UUID set by WithCause; empty if there is none.
func Cause(ctx context.Context) string {
	uuid, _ := ctx.Value(causeKey{}).(string)
	return uuid
}
