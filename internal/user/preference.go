package user

import (
	"context"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// Appearance are preferences that only pages use. Empty values are the defaults.
type Appearance struct {
	Theme     string `json:"theme,omitempty"`      // light or dark; empty means that of the system
	StartPage string `json:"start_page,omitempty"` // one of StartPages; empty means projects
	DiffView  string `json:"diff_view,omitempty"`  // inline or parallel
	TabWidth  int    `json:"tab_width,omitempty"`  // one of TabWidths; 0 means 4
	FirstDay  int    `json:"first_day,omitempty"`  // of the week: 1 Sunday, 2 Monday, 7 Saturday; 0 means Monday
	// PassIdentities adds the identities of the user to ID tokens of jobs.
	PassIdentities bool `json:"pass_identities,omitempty"`
}

// StartPages returns the pages that can be the start page.
func StartPages() []string {
	return []string{"projects", "starred", "groups", "issues", "merge_requests", "todos", "activity"}
}

// TabWidths returns the possible tab widths.
func TabWidths() []int { return []int{2, 4, 8} }

// FirstDays returns the possible first days of the week: see Appearance.
func FirstDays() []int { return []int{0, 1, 2, 7} }

// Sunday returns the number of days between Sunday and the first day of the week.
func (a Appearance) Sunday() int {
	if a.FirstDay == 0 {
		return 1
	}
	return a.FirstDay - 1
}

// PreferenceChange are changes to preferences. A nil field keeps the current
// value.
type PreferenceChange struct {
	Timezone              *string
	Theme                 *string
	StartPage             *string
	DiffView              *string
	TabWidth              *int
	FirstDay              *int
	ViewDiffsFileByFile   *bool
	ShowWhitespaceInDiffs *bool
	PassIdentities        *bool
}

// SetPreferences changes the preferences of the actor. Forbidden for bot users;
// Invalid.
func (s *Service) SetPreferences(ctx context.Context, by actor.Actor, c PreferenceChange) (*User, error) {
	if err := by.RequireHuman("change their preferences"); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return s.change(ctx, by.ID, func(_ *db.Tx, u *User) error {
		patch.Set(&u.Timezone, c.Timezone)
		patch.Set(&u.Appearance.Theme, c.Theme)
		patch.Set(&u.Appearance.StartPage, c.StartPage)
		patch.Set(&u.Appearance.DiffView, c.DiffView)
		patch.Set(&u.Appearance.TabWidth, c.TabWidth)
		patch.Set(&u.Appearance.FirstDay, c.FirstDay)
		patch.Set(&u.Appearance.PassIdentities, c.PassIdentities)
		patch.Set(&u.ViewDiffsFileByFile, c.ViewDiffsFileByFile)
		patch.Set(&u.ShowWhitespaceInDiffs, c.ShowWhitespaceInDiffs)
		return nil
	})
}

func (c PreferenceChange) check() error {
	wrong := errs.Fields{}
	within := func(name string, value *string, list ...string) {
		if value != nil && *value != "" && !slices.Contains(list, *value) {
			wrong.Set(name, "is not included in the list")
		}
	}
	within("theme", c.Theme, "light", "dark")
	within("start_page", c.StartPage, StartPages()...)
	within("diff_view", c.DiffView, "inline", "parallel")
	if c.TabWidth != nil && *c.TabWidth != 0 && !slices.Contains(TabWidths(), *c.TabWidth) {
		wrong.Set("tab_width", "is not included in the list")
	}
	if c.FirstDay != nil && !slices.Contains(FirstDays(), *c.FirstDay) {
		wrong.Set("first_day", "is not included in the list")
	}
	if c.Timezone != nil {
		if _, err := time.LoadLocation(*c.Timezone); err != nil || *c.Timezone == "" || *c.Timezone == "Local" || len(*c.Timezone) > 100 {
			wrong.Set("timezone", "is not a time zone")
		}
	}
	return wrong.Err()
}

// SignIn is a sign-in of a user.
type SignIn struct {
	IP        string
	UserAgent string
	At        time.Time
}

// maxSignIns is the maximum number of stored sign-ins of a user.
const maxSignIns = 100

// SignIns lists the latest sign-ins of the actor, newest first.
func (s *Service) SignIns(ctx context.Context, by actor.Actor) ([]SignIn, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return listSignIns(ctx, s.DB, by.ID)
}
