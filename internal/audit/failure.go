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

// Anyone can cause events of failed sign-ins, so their number is limited: failed
// sign-ins from one IP address with one login within failureWindow are one event
// with a count. Above maxLogins events of an address, further events have no login.
// Above maxFailures events in total, they have no address either.
const (
	failedLogin   = "failed_login"
	failureWindow = time.Hour
	maxLogins     = 20
	maxFailures   = 1000

	// severalLogins and severalAddresses replace the login and the address above
	// these limits.
	severalLogins    = "(several logins)"
	severalAddresses = "several"
)

// failure is a stored event of failed sign-ins.
type failure struct {
	id       int64
	login    string
	attempts int64
}

// RecordFailedLogin records a failed sign-in from the actor's IP address. The target
// is the user; its details are the login that was entered.
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

// PurgeFailedLogins deletes the events of failed sign-ins before a time.
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

// purgeBatch is the maximum number of rows that one statement deletes.
const purgeBatch = 1000
