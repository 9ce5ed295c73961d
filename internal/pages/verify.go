package pages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// enabledFor is how long a verified domain stays enabled after its DNS record was
// last found, so that DNS failures do not disable it immediately.
const enabledFor = 7 * 24 * time.Hour

// unverifiedFor is how long a domain that is not verified is kept. Then it is removed,
// so that it does not block the owner of the domain.
const unverifiedFor = 7 * 24 * time.Hour

// lookupTime is the timeout of a DNS query.
const lookupTime = 15 * time.Second

// domainWork is the background job that verifies a domain.
type domainWork struct {
	DomainID int64 `json:"domain_id"`
}

// Kind implements queue.Work.
func (domainWork) Kind() string { return "pages_domain" }

// VerifyDomain checks the DNS record of a domain immediately. For permissions see
// Domains. It returns NotFound, or Unprocessable if the record is missing.
func (s *Service) VerifyDomain(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Domain, error) {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	d, err := findDomain(ctx, s.DB, in.ID, lookedUp(name))
	if err != nil {
		return nil, db.NotFound(err, "PagesDomain")
	}
	if err := s.fill(ctx, d); err != nil {
		return nil, err
	}
	shown := s.shows(ctx, d)
	if err := s.noteVerified(ctx, by, in, d, shown); err != nil {
		return nil, fmt.Errorf("verify domain %q: %w", name, err)
	}
	if !shown {
		record, value := d.Record()
		return nil, errs.Unprocessable("Couldn't verify %s: there is no TXT record %s with the value %s", d.Name, record, value)
	}
	return d, nil
}

// shows reports whether the verification code is in DNS. The record may also be at
// the domain itself.
func (s *Service) shows(ctx context.Context, d *Domain) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	record, value := d.Record()
	for _, name := range []string{record, d.Name} {
		texts, err := s.LookupTXT(ctx, name)
		if err == nil && slices.ContainsFunc(texts, func(t string) bool {
			return strings.TrimSpace(t) == value || strings.TrimSpace(t) == d.Code && name == record
		}) {
			return true
		}
	}
	return false
}

// noteVerified saves the result of a DNS check. A verified domain stays
// verified until EnabledUntil.
func (s *Service) noteVerified(ctx context.Context, by actor.Actor, in *project.Project, d *Domain, shown bool) error {
	now := s.Now()
	was := d.VerifiedAt != nil
	switch {
	case shown:
		until := now.Add(enabledFor)
		d.EnabledUntil, d.RemoveAt = &until, nil
		if !was {
			d.VerifiedAt = &now
		}
	case was && d.EnabledUntil != nil && now.Before(*d.EnabledUntil):
		return nil
	default:
		d.VerifiedAt, d.EnabledUntil = nil, nil
		if !was && (!d.Verification || d.RemoveAt != nil) {
			return nil
		}
		at := now.Add(unverifiedFor)
		d.RemoveAt = &at
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveVerified(ctx, tx, d); err != nil {
			return db.NotFound(err, "PagesDomain")
		}
		if was == shown {
			return nil
		}
		details := audit.Details{Change: "verified", From: fmt.Sprint(was), To: fmt.Sprint(shown)}
		if err := s.record(ctx, tx, by, in, d, "pages_domain_verified", details); err != nil {
			return err
		}
		return s.follow(ctx, tx, d)
	})
}

// checkDomain runs a domainWork: it verifies a domain, or removes it if it has not been
// verified in time.
func (s *Service) checkDomain(ctx context.Context, w domainWork) error {
	d, err := findDomainByID(ctx, s.DB, w.DomainID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.fill(ctx, d); err != nil {
		return err
	}
	in := &project.Project{ID: d.ProjectID, FullPath: d.ProjectPath}
	shown := s.shows(ctx, d)
	if !shown && d.Verification && d.RemoveAt != nil && !s.Now().Before(*d.RemoveAt) {
		return s.removeUnverified(ctx, in, d)
	}
	return s.noteVerified(ctx, actor.System(), in, d, shown)
}

// removeUnverified removes a domain that has not been verified in time.
func (s *Service) removeUnverified(ctx context.Context, in *project.Project, d *Domain) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := s.lockDomain(ctx, tx, d.ProjectID, d.Name)
		if errs.Is(err, errs.KindNotFound) || err == nil && (now.ID != d.ID || now.RemoveAt == nil) {
			return nil // the domain was deleted or verified
		}
		if err != nil {
			return err
		}
		if err := deleteDomain(ctx, tx, now); err != nil {
			return err
		}
		return s.record(ctx, tx, actor.System(), in, now, "pages_domain_deleted", audit.Details{Remove: "pages_domain"})
	})
	if err != nil {
		return fmt.Errorf("remove unverified domain %q: %w", d.Name, err)
	}
	return nil
}

// CheckDomains adds background jobs that verify all domains, if verification is
// required. Otherwise no domain is removed, and when verification is required again,
// owners have the whole time.
func (s *Service) CheckDomains(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	if !settings.PagesVerification {
		return keepDomains(ctx, s.DB)
	}
	for after := int64(0); ; {
		ids, err := domainIDs(ctx, s.DB, after)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.Queue.Add(ctx, tx, domainWork{id}, queue.In(lane), queue.Unique(), queue.Priority(3), queue.Tries(3)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("check domains: %w", err)
		}
	}
}
