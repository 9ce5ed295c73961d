// Package broadcast manages broadcast messages, which administrators show on pages
// as a banner at the top or as a notification in the corner.
package broadcast

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/glob"
	"svc/internal/notice"
	"svc/internal/patch"
)

// Message is a broadcast message.
type Message struct {
	ID          int64
	Text        string // Markdown
	StartsAt    time.Time
	EndsAt      time.Time
	Type        Type
	Theme       string
	Color       string // not used for rendering
	Font        string // not used for rendering
	Path        string // pattern for the paths of pages; empty for all
	Levels      []int64
	Dismissable bool
	CreatedAt   time.Time
}

// Type is where a message is shown.
type Type string

// The types.
const (
	Banner       Type = "banner"
	Notification Type = "notification"
)

// Themes returns the color themes of messages.
func Themes() []string {
	return []string{"indigo", "light-indigo", "blue", "light-blue", "green", "light-green", "red", "light-red", "dark", "light"}
}

// Levels returns the access levels that a message can be limited to.
func Levels() []int64 { return []int64{10, 15, 20, 30, 40, 50} }

// ActiveAt reports whether a message is shown at a time.
func (m *Message) ActiveAt(now time.Time) bool {
	return !m.StartsAt.After(now) && m.EndsAt.After(now)
}

// Deps are the dependencies of the service.
type Deps struct {
	DB      *db.DB
	Notices *notice.Bus
	Now     func() time.Time
}

// Service manages broadcast messages.
type Service struct {
	Deps
	current *notice.Cache[struct{}, []*Message]
}

const (
	topic       = "broadcast_messages"
	maxMessages = 1000
	maxText     = 10_000
	maxField    = 255
	// maxShown is the maximum number of messages that are active at once.
	maxShown = 20
)

// New returns the service.
func New(d Deps) *Service {
	s := &Service{Deps: d, current: notice.NewCache[struct{}](notice.CacheOptions[[]*Message]{Bus: d.Notices, Max: 1, TTL: time.Minute, Now: d.Now})}
	d.Notices.SendOnWrite(topic, "broadcast_messages")
	d.Notices.Subscribe(topic, func(string) { s.current.Drop() })
	return s
}

// List lists all messages, newest first. No permissions are required.
func (s *Service) List(ctx context.Context, p db.Paging) (db.Page[*Message], error) {
	page, err := list(ctx, s.DB, p)
	if err != nil {
		return page, fmt.Errorf("list broadcast messages: %w", err)
	}
	return page, nil
}

// Get returns a message. No permissions are required. NotFound.
func (s *Service) Get(ctx context.Context, id int64) (*Message, error) {
	m, err := find(ctx, s.DB, id)
	return m, db.NotFound(err, "")
}

// Change lists changes to a message; nil keeps the current value.
type Change struct {
	Text        *string
	StartsAt    *time.Time
	EndsAt      *time.Time
	Type        *Type
	Theme       *string
	Color       *string
	Font        *string
	Path        *string
	Levels      *[]int64
	Dismissable *bool
}

// hexColor matches #rgb and #rrggbb.
var hexColor = regexp.MustCompile(`\A#(?:[0-9A-Fa-f]{3}){1,2}\z`)

func (m *Message) apply(c Change) error {
	patch.Set(&m.Text, c.Text)
	patch.Set(&m.StartsAt, c.StartsAt)
	patch.Set(&m.EndsAt, c.EndsAt)
	patch.Set(&m.Type, c.Type)
	patch.Set(&m.Theme, c.Theme)
	patch.Set(&m.Color, c.Color)
	patch.Set(&m.Font, c.Font)
	patch.Set(&m.Path, c.Path)
	patch.Set(&m.Levels, c.Levels)
	patch.Set(&m.Dismissable, c.Dismissable)
	wrong := errs.Fields{}
	switch n := utf8.RuneCountInString(m.Text); {
	case strings.TrimSpace(m.Text) == "":
		wrong.Set("message", "can't be blank")
	case n > maxText:
		wrong.Set("message", "is too long (maximum is %d characters)", maxText)
	}
	if m.Type != Banner && m.Type != Notification {
		wrong.Set("broadcast_type", "is not included in the list")
	}
	if !slices.Contains(Themes(), m.Theme) {
		wrong.Set("theme", "is not included in the list")
	}
	if !m.EndsAt.After(m.StartsAt) {
		wrong.Set("ends_at", "must be after starts_at")
	}
	if utf8.RuneCountInString(m.Path) > maxField {
		wrong.Set("target_path", "is too long (maximum is %d characters)", maxField)
	}
	for name, text := range map[string]*string{"color": c.Color, "font": c.Font} {
		if text != nil && *text != "" && !hexColor.MatchString(*text) {
			wrong.Set(name, "must be a valid color code")
		}
	}
	for _, level := range m.Levels {
		if !slices.Contains(Levels(), level) {
			wrong.Set("target_access_levels", "is not included in the list")
		}
	}
	return wrong.Err()
}

// Create adds a message. Requires an administrator. Forbidden, Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, c Change) (*Message, error) {
	if err := requireAdmin(by); err != nil {
		return nil, err
	}
	now := s.Now()
	m := &Message{StartsAt: now, EndsAt: now.Add(time.Hour), Type: Banner, Theme: "indigo", Color: "#E75E40", Font: "#FFFFFF", CreatedAt: now}
	if c.StartsAt != nil {
		m.EndsAt = c.StartsAt.Add(time.Hour)
	}
	if err := m.apply(c); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := count(ctx, tx)
		if err != nil {
			return err
		}
		if n >= maxMessages {
			return errs.Invalid("There are at most %d broadcast messages: delete one first", maxMessages)
		}
		if err := insert(ctx, tx, m); err != nil {
			return err
		}
		return s.record(ctx, tx, by, m, "broadcast_message_created", audit.Details{Add: "broadcast_message"})
	})
	if err != nil {
		return nil, fmt.Errorf("create broadcast message: %w", err)
	}
	return m, nil
}

// Update changes a message. Requires an administrator. Forbidden, NotFound, Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, id int64, c Change) (*Message, error) {
	if err := requireAdmin(by); err != nil {
		return nil, err
	}
	var m *Message
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if m, err = find(ctx, tx, id); err != nil {
			return db.NotFound(err, "")
		}
		if err := m.apply(c); err != nil {
			return err
		}
		if err := update(ctx, tx, m); err != nil {
			return err
		}
		return s.record(ctx, tx, by, m, "broadcast_message_updated", audit.Details{Change: "broadcast_message"})
	})
	if err != nil {
		return nil, fmt.Errorf("update broadcast message: %w", err)
	}
	return m, nil
}

// Delete removes a message. Requires an administrator. Forbidden, NotFound.
func (s *Service) Delete(ctx context.Context, by actor.Actor, id int64) error {
	if err := requireAdmin(by); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		m, err := find(ctx, tx, id)
		if err != nil {
			return db.NotFound(err, "")
		}
		if err := remove(ctx, tx, id); err != nil {
			return db.NotFound(err, "")
		}
		return s.record(ctx, tx, by, m, "broadcast_message_deleted", audit.Details{Remove: "broadcast_message"})
	})
	if err != nil {
		return fmt.Errorf("delete broadcast message: %w", err)
	}
	return nil
}

func requireAdmin(by actor.Actor) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if !by.Admin {
		return errs.Forbidden("")
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, m *Message, kind string, d audit.Details) error {
	text := []rune(m.Text)
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Instance(),
		Target: audit.Target{Type: "BroadcastMessage", ID: m.ID, Details: string(text[:min(len(text), maxField)])}, Details: d,
	})
}

// Shown returns the active messages for the path of a page and the access level of
// the visitor in its project or group. The level is 0 on other pages and for
// visitors without a role. The messages are cached.
func (s *Service) Shown(ctx context.Context, path string, level int64) ([]*Message, error) {
	now := s.Now()
	all, err := s.current.Get(struct{}{}, func() ([]*Message, bool, error) {
		list, err := unended(ctx, s.DB, now)
		return list, true, err
	})
	if err != nil {
		return nil, fmt.Errorf("read broadcast messages: %w", err)
	}
	var shown []*Message
	for _, m := range all {
		if m.ActiveAt(now) && m.on(path) && (len(m.Levels) == 0 || slices.Contains(m.Levels, level)) && len(shown) < maxShown {
			shown = append(shown, m)
		}
	}
	return shown, nil
}

// on reports whether a message is for a path. Asterisks in the pattern match any
// text.
func (m *Message) on(path string) bool {
	if m.Path == "" {
		return true
	}
	pattern := m.Path
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "*") {
		pattern = "/" + pattern
	}
	if !strings.Contains(pattern, "*") {
		return strings.TrimSuffix(pattern, "/") == strings.TrimSuffix(path, "/")
	}
	return glob.Wild(pattern, path)
}

func joinLevels(levels []int64) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, strconv.FormatInt(l, 10))
	}
	return strings.Join(parts, ",")
}

func splitLevels(text string) []int64 {
	levels := []int64{}
	for part := range strings.SplitSeq(text, ",") {
		if l, err := strconv.ParseInt(part, 10, 64); err == nil {
			levels = append(levels, l)
		}
	}
	return levels
}
