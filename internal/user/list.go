package user

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Filter selects accounts. Zero values match everything. The fields below Admin
// are ignored if the actor is not an administrator.
type Filter struct {
	Username        string // exact, case-insensitive
	Search          string // substring of name or username, or a full email address
	PublicEmail     string // exact
	Active          bool
	ExcludeActive   bool
	Blocked         bool
	External        bool
	ExcludeExternal bool
	CreatedAfter    *time.Time
	CreatedBefore   *time.Time
	ExcludeInternal bool
	ExcludeBots     bool // of projects and groups
	Humans          bool
	ExcludeHumans   bool

	Admin AdminFilter
}

// AdminFilter has the conditions for administrators.
type AdminFilter struct {
	ExternUID       string
	Provider        string
	SAMLProviderID  int64
	TwoFactor       string // enabled or disabled
	WithoutProjects bool
	State           State
	Admins          bool
	Auditors        bool
	SkipLDAP        bool
	Attributes      map[string]string
	WithAttributes  bool // also read the custom attributes
}

// Sort is the order of a list.
type Sort struct {
	By   string // id, name, username, created_at or updated_at
	Desc bool
}

// List lists accounts. An anonymous caller must give a username, so that they
// cannot list all accounts: Forbidden.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, order Sort, p db.Paging) (db.Page[*User], error) {
	if by.Anonymous() && f.Username == "" {
		return db.Page[*User]{}, errs.Forbidden("Not authorized to access /api/v4/users")
	}
	if !by.Admin {
		f.Admin = AdminFilter{}
		if !p.Keyset {
			order = Sort{By: "id", Desc: true}
		}
	}
	page, err := listUsers(ctx, s.DB, by, f, order, p)
	if err != nil {
		return page, fmt.Errorf("list users: %w", err)
	}
	if !by.Admin || len(page.Items) == 0 {
		return page, nil
	}
	ids := make([]int64, len(page.Items))
	for i, u := range page.Items {
		ids[i] = u.ID
	}
	identities, err := identitiesOfAll(ctx, s.DB, ids)
	if err != nil {
		return page, fmt.Errorf("list users: %w", err)
	}
	attributes := map[int64][]Attribute{}
	if f.Admin.WithAttributes {
		if attributes, err = attributesOfAll(ctx, s.DB, ids); err != nil {
			return page, fmt.Errorf("list users: %w", err)
		}
	}
	for _, u := range page.Items {
		u.Identities, u.Attributes = identities[u.ID], attributes[u.ID]
	}
	return page, s.addCreators(ctx, page.Items...)
}

// Activity is the date on which a user was last active.
type Activity struct {
	UserID   int64
	Username string
	On       string // YYYY-MM-DD
}

// Activities lists the users who were active since a date, least recently active
// first. Requires an administrator.
func (s *Service) Activities(ctx context.Context, by actor.Actor, from string, p db.Paging) (db.Page[Activity], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Activity]{}, err
	}
	if from == "" {
		from = s.Now().UTC().AddDate(0, -6, 0).Format(time.DateOnly)
	}
	return listActivities(ctx, s.DB, from, p)
}
