package alert

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/secret"
)

// Type is the type of an integration.
type Type string

// The types.
const (
	HTTP       Type = "http"
	Prometheus Type = "prometheus"
)

// Types returns all types.
func Types() []Type { return []Type{HTTP, Prometheus} }

// Integration is an endpoint to which a program sends alerts.
type Integration struct {
	ID        int64
	ProjectID int64
	Name      string
	Type      Type
	Active    bool
	Endpoint  string // its ID in the URL: 16 hexadecimal digits
	Token     string // sealed in the store
	Example   string // an example payload in JSON; empty for none
	Mappings  []Mapping
	CreatedAt time.Time
	UpdatedAt time.Time

	// Set by Service.
	URL string // that payloads are sent to
}

// IntegrationFields are the fields of an integration; nil keeps the current value.
type IntegrationFields struct {
	Name     *string
	Type     *Type // only for new integrations
	Active   *bool
	Example  *json.RawMessage // null removes it
	Mappings *json.RawMessage // see ParseMappings; null removes them
}

// Integrations lists the integrations of a project, with their tokens, for
// Maintainers and above.
func (s *Service) Integrations(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*Integration], error) {
	in, err := s.maintainer(ctx, by, ref)
	if err != nil {
		return db.Page[*Integration]{}, err
	}
	page, err := listIntegrations(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list alert integrations: %w", err)
	}
	return page, s.fill(by, in, page.Items...)
}

// Integration returns one integration to Maintainers and above; NotFound.
func (s *Service) Integration(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*Integration, error) {
	in, err := s.maintainer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	i, err := findIntegration(ctx, s.DB, in.ID, id)
	if err != nil {
		return nil, db.NotFound(err, "Integration")
	}
	return i, s.fill(by, in, i)
}

// CreateIntegration creates an integration with a new token, for Maintainers and
// above. Invalid, also for a second one of a type if the tier allows only one.
func (s *Service) CreateIntegration(ctx context.Context, by actor.Actor, ref project.Ref, f IntegrationFields) (*Integration, error) {
	in, err := s.changer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	i := &Integration{ProjectID: in.ID, Type: HTTP, Active: true, Endpoint: newEndpoint(), CreatedAt: now, UpdatedAt: now}
	patch.Set(&i.Type, f.Type)
	if err := i.apply(f, s.Site); err != nil {
		return nil, err
	}
	token := secret.Token("")
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.allowed(ctx, tx, i); err != nil {
			return err
		}
		if err := insertIntegration(ctx, tx, i, secret.Digest(token)); err != nil {
			return err
		}
		i.Token = s.Keys.Seal([]byte(token), tokenPlace(i.ID))
		if err := saveToken(ctx, tx, i, secret.Digest(token)); err != nil {
			return err
		}
		return s.recordIntegration(ctx, tx, by, in, i, "alert_integration_created", audit.Details{Add: "alert integration"})
	})
	if err != nil {
		return nil, fmt.Errorf("create alert integration: %w", err)
	}
	return i, s.fill(by, in, i)
}

// changer returns a project to a Maintainer who may change its settings.
func (s *Service) changer(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
}

// maxIntegrations is the maximum number of integrations of a project.
const maxIntegrations = 100

// allowed returns Invalid if the project has the maximum number of integrations.
func (s *Service) allowed(ctx context.Context, tx *db.Tx, i *Integration) error {
	if err := project.HoldNumbers(ctx, tx, i.ProjectID, numbers); err != nil {
		return err
	}
	same, all, err := countIntegrations(ctx, tx, i.ProjectID, i.Type)
	switch {
	case err != nil:
		return err
	case same > 0 && !s.Site.Premium:
		return errs.Invalid("Multiple integrations of a type are not supported for this project")
	case all >= maxIntegrations:
		return errs.Invalid("A project has at most %d integrations", maxIntegrations)
	}
	return nil
}

// UpdateIntegration changes an integration, for Maintainers and above. NotFound;
// Invalid.
func (s *Service) UpdateIntegration(ctx context.Context, by actor.Actor, ref project.Ref, id int64, f IntegrationFields) (*Integration, error) {
	in, err := s.changer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	var i *Integration
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if i, err = lockIntegration(ctx, tx, in.ID, id); err != nil {
			return err
		}
		if f.Type != nil && *f.Type != i.Type {
			return errs.InvalidField("type", "can't be changed")
		}
		was := *i
		if err := i.apply(f, s.Site); err != nil {
			return err
		}
		i.UpdatedAt = s.Now()
		if err := saveIntegration(ctx, tx, i); err != nil {
			return err
		}
		return s.recordChanges(ctx, tx, by, in, &was, i)
	})
	if err != nil {
		return nil, fmt.Errorf("update alert integration %d: %w", id, err)
	}
	return i, s.fill(by, in, i)
}

// recordChanges records an audit event for each attribute that changed.
func (s *Service) recordChanges(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, was, i *Integration) error {
	for _, c := range []struct{ name, from, to string }{
		{"name", was.Name, i.Name},
		{"active", fmt.Sprint(was.Active), fmt.Sprint(i.Active)},
		{"payload_example", was.Example, i.Example},
		{"payload_attribute_mappings", stored(was), stored(i)},
	} {
		if c.from == c.to {
			continue
		}
		d := audit.Details{Change: c.name, From: c.from, To: c.to}
		if c.name == "payload_example" { // it can be long, and contain private data
			d.From, d.To = "", ""
		}
		if err := s.recordIntegration(ctx, tx, by, in, i, "alert_integration_updated", d); err != nil {
			return err
		}
	}
	return nil
}

// ResetToken replaces the token of an integration, for Maintainers and above. The
// old token stops working immediately. NotFound.
func (s *Service) ResetToken(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*Integration, error) {
	in, err := s.changer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	token := secret.Token("")
	var i *Integration
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if i, err = lockIntegration(ctx, tx, in.ID, id); err != nil {
			return err
		}
		i.Token, i.UpdatedAt = s.Keys.Seal([]byte(token), tokenPlace(i.ID)), s.Now()
		if err := saveToken(ctx, tx, i, secret.Digest(token)); err != nil {
			return err
		}
		return s.recordIntegration(ctx, tx, by, in, i, "alert_integration_token_reset", audit.Details{Change: "token"})
	})
	if err != nil {
		return nil, fmt.Errorf("reset token of alert integration %d: %w", id, err)
	}
	return i, s.fill(by, in, i)
}

// DeleteIntegration removes an integration and keeps its alerts, for Maintainers
// and above. NotFound; Precondition if it was modified since.
func (s *Service) DeleteIntegration(ctx context.Context, by actor.Actor, ref project.Ref, id int64, unmodifiedSince *time.Time) error {
	in, err := s.changer(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		i, err := lockIntegration(ctx, tx, in.ID, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(i.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteIntegration(ctx, tx, id); err != nil {
			return err
		}
		return s.recordIntegration(ctx, tx, by, in, i, "alert_integration_deleted", audit.Details{Remove: "alert integration"})
	})
	if err != nil {
		return fmt.Errorf("delete alert integration %d: %w", id, err)
	}
	return nil
}

func (s *Service) recordIntegration(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, i *Integration, kind string, d audit.Details) error {
	return s.record(ctx, tx, by, in, kind, audit.Target{Type: "AlertManagement::HttpIntegration", ID: i.ID, Details: i.Name}, d)
}

// apply checks and sets the fields of an integration. Below the tier premium,
// mappings and examples are ignored.
func (i *Integration) apply(f IntegrationFields, site Site) (err error) {
	patch.Set(&i.Name, f.Name)
	i.Name = strings.TrimSpace(i.Name)
	patch.Set(&i.Active, f.Active)
	wrong := errs.Fields{}
	switch {
	case i.Name == "":
		wrong.Set("name", "can't be blank")
	case utf8.RuneCountInString(i.Name) > 255:
		wrong.Set("name", "is too long (maximum is 255 characters)")
	}
	if i.Type != HTTP && i.Type != Prometheus {
		wrong.Set("type", "is not included in the list")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if !site.Premium || f.Example == nil && f.Mappings == nil {
		return nil
	}
	if f.Example != nil {
		if i.Example, err = readExample(*f.Example); err != nil {
			return err
		}
	}
	if f.Mappings != nil {
		if i.Mappings, err = ParseMappings(*f.Mappings, site.Name); err != nil {
			return err
		}
	}
	if i.Type == Prometheus && len(i.Mappings) > 0 {
		return errs.InvalidField("payload_attribute_mappings", "are for integrations of type http")
	}
	return checkMappings(i.Mappings, i.Example)
}

func readExample(text json.RawMessage) (string, error) {
	if string(text) == "null" {
		return "", nil
	}
	if len(text) > maxExample {
		return "", errs.InvalidField("payload_example", "is too long (maximum is %d bytes)", maxExample)
	}
	if _, err := decode(text); err != nil {
		return "", errs.InvalidField("payload_example", "must be a JSON object")
	}
	return string(text), nil
}

func newEndpoint() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func tokenPlace(id int64) string { return fmt.Sprintf("alert_integrations/token/%d", id) }

// fill decrypts the tokens and sets the URLs. Credentials that may not read secrets
// get only the first four characters of a token.
func (s *Service) fill(by actor.Actor, in *project.Project, list ...*Integration) error {
	for _, i := range list {
		token, err := s.Keys.Open(i.Token, tokenPlace(i.ID))
		if err != nil {
			return fmt.Errorf("token of alert integration %d: %w", i.ID, err)
		}
		if i.Token = string(token); !by.ReadsSecrets() {
			i.Token = i.Token[:min(4, len(i.Token))]
		}
		i.URL = s.Site.URL + (&url.URL{Path: "/" + in.FullPath + "/alerts/notify/" + slug(i.Name) + "/" + i.Endpoint + ".json"}).EscapedPath()
		if i.Type == Prometheus {
			i.URL = s.Site.URL + (&url.URL{Path: "/" + in.FullPath + "/prometheus/alerts/notify.json"}).EscapedPath()
		}
		if !s.Site.Premium {
			i.Example, i.Mappings = "", nil
		}
	}
	return nil
}

// slug returns a name for use in the URL. It makes the URL readable and is not
// checked.
func slug(name string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			out.WriteRune(r)
		case out.Len() > 0 && !strings.HasSuffix(out.String(), "-"):
			out.WriteByte('-')
		}
		if out.Len() >= 63 {
			break
		}
	}
	if text := strings.Trim(out.String(), "-"); text != "" {
		return text
	}
	return "http-endpoint"
}
