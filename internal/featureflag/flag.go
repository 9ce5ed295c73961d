package featureflag

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// Flag is a feature flag of a project.
type Flag struct {
	ID          int64
	ProjectID   int64
	IID         int64
	Name        string
	Description string
	Active      bool
	Strategies  []*Strategy
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

const (
	maxFlags       = 1000 // of a project
	maxName        = 63
	maxDescription = 255
)

// Status limits a list to enabled or disabled flags.
type Status string

// The statuses.
const (
	AnyStatus Status = ""
	Enabled   Status = "enabled"
	Disabled  Status = "disabled"
)

// Flags lists the flags of a project by name. Developers and above. NotFound,
// Forbidden.
func (s *Service) Flags(ctx context.Context, by actor.Actor, ref project.Ref, status Status, p db.Paging) (db.Page[*Flag], error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return db.Page[*Flag]{}, err
	}
	page, err := listFlags(ctx, s.DB, in.ID, status, p)
	if err == nil {
		err = fillStrategies(ctx, s.DB, page.Items)
	}
	if err != nil {
		return page, fmt.Errorf("list feature flags: %w", err)
	}
	return page, nil
}

// Flag returns a flag by name. Developers and above. NotFound, Forbidden.
func (s *Service) Flag(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Flag, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.find(ctx, s.DB, in.ID, name)
}

// FlagByIID returns a flag by its IID. Developers and above. NotFound, Forbidden.
func (s *Service) FlagByIID(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Flag, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	f, err := findFlagByIID(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return f, fillStrategies(ctx, s.DB, []*Flag{f})
}

func (s *Service) find(ctx context.Context, q db.Q, projectID int64, name string) (*Flag, error) {
	f, err := findFlag(ctx, q, projectID, name)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return f, fillStrategies(ctx, q, []*Flag{f})
}

// Change lists changes to a flag; nil keeps the current value.
type Change struct {
	Name        *string
	Description *string
	Active      *bool
	Strategies  []StrategyChange
}

// Create adds a flag, which is active unless the change says otherwise.
// Developers and above. NotFound, Forbidden, Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*Flag, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	f := &Flag{ProjectID: in.ID, Active: true, CreatedAt: s.Now(), UpdatedAt: s.Now()}
	err = s.grow(ctx, in, func(tx *db.Tx) error {
		if err := s.apply(ctx, tx, f, c); err != nil {
			return err
		}
		if f.IID, err = number(ctx, tx, "feature_flags", in.ID, maxFlags, "feature flags"); err != nil {
			return err
		}
		if err := insertFlag(ctx, tx, f); err != nil {
			return taken(err)
		}
		if err := saveStrategies(ctx, tx, f, nil); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, "feature_flag_created", f.target(), audit.Details{
			Add: "feature_flag", Message: fmt.Sprintf("Created feature flag %s with description %q. %s", f.Name, f.Description, f.summary()),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("create feature flag: %w", err)
	}
	return f, nil
}

// Update changes a flag. Developers and above. NotFound, Forbidden, Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, name string, c Change) (*Flag, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	var f *Flag
	err = s.grow(ctx, in, func(tx *db.Tx) error {
		if f, err = s.find(ctx, tx, in.ID, name); err != nil {
			return err
		}
		was := *f
		if err := s.apply(ctx, tx, f, c); err != nil {
			return err
		}
		f.UpdatedAt = s.Now()
		if err := updateFlag(ctx, tx, f); err != nil {
			return taken(err)
		}
		if err := saveStrategies(ctx, tx, f, was.Strategies); err != nil {
			return err
		}
		for _, d := range differences(&was, f) {
			if err := s.record(ctx, tx, by, in, "feature_flag_updated", f.target(), d); err != nil {
				return err
			}
		}
		if f.Active == was.Active {
			return nil
		}
		return s.Events.Toggled.Publish(ctx, tx, Toggle{in, f, by})
	})
	if err != nil {
		return nil, fmt.Errorf("update feature flag: %w", err)
	}
	return f, nil
}

func differences(was, now *Flag) []audit.Details {
	var list []audit.Details
	for _, f := range []struct{ name, from, to string }{
		{"name", was.Name, now.Name}, {"description", was.Description, now.Description},
		{"active", strconv.FormatBool(was.Active), strconv.FormatBool(now.Active)}, {"strategies", was.summary(), now.summary()},
	} {
		if f.from != f.to {
			list = append(list, audit.Details{Change: f.name, From: f.from, To: f.to})
		}
	}
	return list
}

// Delete removes a flag and returns it. Developers and above. NotFound,
// Forbidden.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Flag, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	var f *Flag
	err = s.change(ctx, in, func(tx *db.Tx) error {
		if f, err = s.find(ctx, tx, in.ID, name); err != nil {
			return err
		}
		if err := deleteFlag(ctx, tx, f.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, "feature_flag_deleted", f.target(), audit.Details{Remove: "feature_flag"})
	})
	if err != nil {
		return nil, fmt.Errorf("delete feature flag: %w", err)
	}
	return f, nil
}

func (f *Flag) target() audit.Target {
	return audit.Target{Type: "Operations::FeatureFlag", ID: f.ID, Details: f.Name}
}

// maxSummary is the maximum length of strategies in an audit event, in bytes.
const maxSummary = 1000

// summary describes the strategies for audit events.
func (f *Flag) summary() string {
	var b strings.Builder
	for _, st := range f.Strategies {
		fmt.Fprintf(&b, "%s", st.Name)
		for _, key := range strategies[st.Name] {
			fmt.Fprintf(&b, " %s=%s", key, st.Parameters[key])
		}
		for _, sc := range st.Scopes {
			fmt.Fprintf(&b, " [%s]", sc.Environment)
		}
		b.WriteString("; ")
		if b.Len() > maxSummary {
			return strings.ToValidUTF8(b.String()[:maxSummary], "") + "…"
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

var namePattern = regexp.MustCompile(`^[a-z]([-_a-z0-9]*[a-z0-9])?$`)

// apply applies a change to a flag and validates the flag.
func (s *Service) apply(ctx context.Context, q db.Q, f *Flag, c Change) error {
	patch.Set(&f.Name, c.Name)
	patch.Set(&f.Description, c.Description)
	patch.Set(&f.Active, c.Active)
	wrong := errs.Fields{}
	switch {
	case len(f.Name) < 2:
		wrong.Set("name", "is too short (minimum is 2 characters)")
	case len(f.Name) > maxName:
		wrong.Set("name", "is too long (maximum is %d characters)", maxName)
	case !namePattern.MatchString(f.Name):
		wrong.Set("name", "can contain only lowercase letters, digits, '_' and '-'. Must start with a letter, and cannot end with '-' or '_'")
	}
	if utf8.RuneCountInString(f.Description) > maxDescription {
		wrong.Set("description", "is too long (maximum is %d characters)", maxDescription)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if c.Strategies == nil {
		return nil
	}
	list, err := s.applyStrategies(ctx, q, f, c.Strategies)
	if err != nil {
		return err
	}
	f.Strategies = list
	return nil
}

func taken(err error) error {
	for _, index := range []string{"feature_flags_project_id_name", "feature_flag_user_lists_project_id_name"} {
		if db.IsUnique(err, index) {
			return errs.InvalidField("name", "has already been taken")
		}
	}
	return err
}
