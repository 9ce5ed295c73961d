package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// Failed sign-ins are events that anyone can cause, so their number is bounded:
// those from one address with one login within failureWindow are one event with
// a count. Beyond maxLogins of an address, and maxFailures altogether, events
// name no login and no address.
const (
	failedLogin   = "failed_login"
	failureWindow = time.Hour
	maxLogins     = 20
	maxFailures   = 1000

	// severalLogins and severalAddresses stand for what is not distinguished.
	severalLogins    = "(several logins)"
	severalAddresses = "several"
)

// failure is a stored event of failed sign-ins.
type failure struct {
	id       int64
	login    string
	attempts int64
}

// RecordFailedLogin counts a failed sign-in of the actor's address, which is the
// key that limits count it by. The target is the user; its details are the login
// that was given.
func RecordFailedLogin(ctx context.Context, tx *db.Tx, by actor.Actor, now time.Time, target Target) error {
	found, err := findFailures(ctx, tx, by.IP, now.Add(-failureWindow))
	if err != nil {
		return fmt.Errorf("record failed sign-in: %w", err)
	}
	at := slices.IndexFunc(found, func(f failure) bool { return f.login == target.Details })
	if at >= 0 {
		return addAttempt(ctx, tx, found[at], now)
	}
	if len(found) >= maxLogins && target.Details != severalLogins {
		return RecordFailedLogin(ctx, tx, by, now, Target{Type: target.Type, Details: severalLogins})
	}
	if by.IP != severalAddresses {
		n, err := countFailures(ctx, tx, now.Add(-failureWindow))
		if err != nil {
			return fmt.Errorf("record failed sign-in: %w", err)
		}
		if n >= maxFailures {
			by.IP = severalAddresses
			return RecordFailedLogin(ctx, tx, by, now, Target{Type: target.Type, Details: severalLogins})
		}
	}
	return Record(ctx, tx, by, now, Event{
		Type: failedLogin, Entity: Instance(), Target: target, Details: Details{Message: failureText},
	})
}

const failureText = "Failed to sign in"

func addAttempt(ctx context.Context, tx *db.Tx, f failure, now time.Time) error {
	details, err := json.Marshal(Details{
		Message: fmt.Sprintf("%s (%d attempts, last at %s)", failureText, f.attempts+1, now.UTC().Format(time.RFC3339)),
	})
	if err != nil {
		return err
	}
	if err := saveAttempts(ctx, tx, f.id, f.attempts+1, string(details)); err != nil {
		return fmt.Errorf("record failed sign-in: %w", err)
	}
	return nil
}

// PurgeFailedLogins removes the events of failed sign-ins before an instant.
func PurgeFailedLogins(ctx context.Context, q db.Q, before time.Time) error {
	for {
		n, err := deleteFailures(ctx, q, before, purgeBatch)
		if err != nil {
			return fmt.Errorf("purge failed sign-ins: %w", err)
		}
		if n < purgeBatch {
			return nil
		}
	}
}

// purgeBatch is how many rows one statement removes.
const purgeBatch = 1000
