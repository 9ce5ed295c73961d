package instance

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
)

// Check is one item of the setup checklist.
type Check struct {
	ID     string // "url", "mail", …
	Name   string
	State  CheckState
	Result string // a sentence
	Advice string // what to do; empty if nothing
	Page   string // page for doing it, relative to the external URL; may be empty
}

// CheckState is the result of a check.
type CheckState string

// The states of a check. An Open check works, but is not ready for users.
const (
	Done   CheckState = "done"
	Open   CheckState = "open"
	Failed CheckState = "failed"
)

const (
	// backupAge is the age from which a backup is reported as old.
	backupAge = 7 * 24 * time.Hour
	// leastFree is the free share of a file system below which it is reported.
	leastFree = 10 // percent
	// setupTimeout is the time limit for the services that are checked.
	setupTimeout = 5 * time.Second
)

// Setup checks what a new instance needs before users can work with it. host is the
// host and port that the administrator opened. Administrators only.
func (s *Service) Setup(ctx context.Context, by actor.Actor, host string) ([]Check, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	checks := []Check{s.checkURL(host), s.checkMail(within), s.checkStorage(within)}
	for _, check := range []func(context.Context) (Check, error){s.checkRunners, s.checkBackups, s.checkSignUp} {
		c, err := check(ctx)
		if err != nil {
			return nil, fmt.Errorf("setup: %w", err)
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// checkURL compares the external URL with the host that the administrator opened.
func (s *Service) checkURL(host string) Check {
	c := Check{ID: "url", Name: "External URL", State: Done, Result: "Links, clone URLs and emails use " + s.ExternalURL + "."}
	own, err := url.Parse(s.ExternalURL)
	if err != nil {
		c.State, c.Result = Failed, "The external URL is invalid."
		return c
	}
	switch local := isLoopback(own.Hostname()); {
	case !strings.EqualFold(host, own.Host):
		c.State = Open
		c.Result = fmt.Sprintf("You opened this page at %s, but links, clone URLs and emails use %s.", host, s.ExternalURL)
		c.Advice = "Set external_url to the address that users open. Behind a proxy, also set trusted_proxies."
	case local:
		c.State = Open
		c.Result = fmt.Sprintf("Links, clone URLs and emails use %s, which works on this machine only.", s.ExternalURL)
		c.Advice = "Set external_url to the address that users open."
	case own.Scheme != "https":
		c.State = Open
		c.Result = "Passwords and tokens are sent unencrypted."
		c.Advice = "Use a proxy with a TLS certificate, and set external_url to its https:// address."
	}
	return c
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func (s *Service) checkMail(ctx context.Context) Check {
	c := Check{ID: "mail", Name: "Email"}
	if !s.Mail.Enabled() {
		c.State = Open
		c.Result = "No mail server is configured: users get no notifications and cannot reset their passwords."
		c.Advice = "Set smtp_url."
		return c
	}
	if err := s.Mail.Ping(ctx); err != nil {
		c.State, c.Result, c.Advice = Failed, "The mail server does not respond: "+err.Error()+".", "Check smtp_url and the mail server. Emails are kept for about a day and sent later."
		return c
	}
	c.State, c.Result = Done, "The mail server accepts connections."
	return c
}

// checkStorage checks the object storage, and the space of the repository storages.
func (s *Service) checkStorage(ctx context.Context) Check {
	c := Check{ID: "storage", Name: "Storage", State: Done, Page: "/admin/storages"}
	if err := s.Blobs.Ping(ctx); err != nil {
		c.State, c.Result, c.Advice = Failed, "The object storage cannot be used: "+err.Error()+".", "Check blob_url, or the free space of the data directory."
		return c
	}
	var full []string
	for _, name := range slices.Sorted(maps.Keys(s.Storages)) {
		switch d := look(s.Storages[name]); {
		case d.Locked:
			c.State, c.Result, c.Advice = Failed, fmt.Sprintf("The repository storage %s cannot be written to.", name), "Check the permissions of its directory."
			return c
		case d.Size > 0 && d.Free < d.Size/100*leastFree:
			full = append(full, fmt.Sprintf("%s (%d %%)", name, d.Free*100/d.Size))
		}
	}
	if c.Result = "The object storage and the repository storages can be written to."; len(full) > 0 {
		c.State, c.Result, c.Advice = Open, "Little space is free: "+strings.Join(full, ", ")+".", "Add space, or move projects to another storage."
	}
	return c
}

func (s *Service) checkRunners(ctx context.Context) (Check, error) {
	c := Check{ID: "runner", Name: "Runners", Page: "/admin/runners"}
	all, online, err := countInstanceRunners(ctx, s.DB, s.Now().Add(-runners.OnlineFor))
	switch {
	case err != nil:
	case online > 0:
		c.State, c.Result = Done, "A runner that all projects can use is online."
	case all > 0:
		c.State, c.Result, c.Advice = Open, "No runner that all projects can use is online.", "Check that the runner is started and can reach this server."
	default:
		c.State, c.Result = Open, "There is no runner that all projects can use: jobs stay pending, except in groups and projects with runners of their own."
		c.Advice = "Create an instance runner and start it with svc runner, or with the public runner."
	}
	return c, err
}

func (s *Service) checkBackups(ctx context.Context) (Check, error) {
	c := Check{ID: "backup", Name: "Backups", State: Open, Advice: "Run svc backup every day, for example with a systemd timer, and store the file on another machine."}
	at, err := lastBackup(ctx, s.DB)
	switch {
	case err != nil:
	case at == nil:
		c.Result = "svc backup was never run."
	case s.Now().Sub(*at) > backupAge:
		c.Result = fmt.Sprintf("The last backup was made on %s.", at.Format(time.DateOnly))
	default:
		c.State, c.Result, c.Advice = Done, fmt.Sprintf("The last backup was made on %s.", at.Format(time.DateOnly)), ""
	}
	return c, err
}

func (s *Service) checkSignUp(ctx context.Context) (Check, error) {
	c := Check{ID: "sign_up", Name: "Sign-up", State: Done, Result: "New users cannot sign up, or wait for approval.", Page: "/admin/application_settings"}
	current, err := s.Settings.Current(ctx)
	if err == nil && current.SignUpEnabled && !current.SignUpApproval {
		c.State, c.Result = Open, "Everyone who reaches this server can create an account."
		c.Advice = "Disable sign-up, or require approval by an administrator."
	}
	return c, err
}

// RecordBackup records that a backup was created.
func (s *Service) RecordBackup(ctx context.Context, made time.Time, size int64) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveBackup(ctx, tx, made); err != nil {
			return fmt.Errorf("record the backup: %w", err)
		}
		return audit.Record(ctx, tx, actor.System(), s.Now(), audit.Event{
			Type: "backup_created", Entity: audit.Instance(), Details: audit.Details{Message: fmt.Sprintf("Backup of %d bytes created", size)},
		})
	})
}

// SendTestEmail sends an email to the administrator who requests it.
func (s *Service) SendTestEmail(ctx context.Context, by actor.Actor) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	if !s.Mail.Enabled() {
		return errs.Invalid("No mail server is configured")
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Mail.Post(ctx, tx, mail.Email{
			To: by.Email, Name: by.Name, Subject: "Test email",
			Lines: []string{"This email was sent from the setup page of the Admin area. The mail server works."},
		})
	})
}
