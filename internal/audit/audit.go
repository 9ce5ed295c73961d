// Package audit stores audit events, the records of administrative changes. Each
// event is written in the transaction of its change, so that neither exists
// without the other.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// EntityType is the type of the entity that an event belongs to.
type EntityType string

// The entity types.
const (
	UserEntity     EntityType = "User"
	GroupEntity    EntityType = "Group"
	ProjectEntity  EntityType = "Project"
	InstanceEntity EntityType = "Instance"
)

// Entity is the user, group, project or instance that an event belongs to.
type Entity struct {
	Type EntityType
	ID   int64
	Path string // username or full path
}

// Instance is the entity of events of the whole instance.
func Instance() Entity { return Entity{Type: InstanceEntity, ID: 1, Path: "svc"} }

// Target is the object that was changed. Record sets it to the entity if its type
// is empty.
type Target struct {
	Type    string // "User", "PersonalAccessToken", …
	ID      int64
	Details string // its name, for users
}

// Event is one administrative change.
type Event struct {
	ID        int64
	Type      string // snake case, e.g. "user_blocked"
	By        Author
	Entity    Entity
	Target    Target
	IP        string
	Details   Details
	CreatedAt time.Time
}

// Author is the actor who made the change, with their name and email address at
// that time.
type Author struct {
	ID    int64
	Name  string
	Email string
	Class string // "User" or "System"
}

// Details describe the change. They are stored in the JSON format of the API.
type Details struct {
	Message string `json:"custom_message,omitempty"`
	Add     string `json:"add,omitempty"`
	Remove  string `json:"remove,omitempty"`
	Change  string `json:"change,omitempty"` // the attribute that changed
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// Impersonator is the administrator who acted as the author by sudo.
	Impersonator string `json:"impersonated_by,omitempty"`
}

// Record writes an event for the actor. IDs and the time are filled in here.
func Record(ctx context.Context, tx *db.Tx, by actor.Actor, now time.Time, e Event) error {
	e.By = Author{ID: by.ID, Name: by.Name, Email: by.Email, Class: "User"}
	switch {
	case by.ID == actor.SystemID:
		e.By.Class = "System"
	case by.Anonymous():
		e.By = Author{ID: actor.SystemID, Name: "An unauthenticated user", Class: "UnauthenticatedAuthor"}
	}
	e.IP, e.CreatedAt = by.IP, now
	if by.Impersonator != nil {
		e.Details.Impersonator = by.Impersonator.Username
	}
	if e.Target.Type == "" {
		e.Target = Target{Type: string(e.Entity.Type), ID: e.Entity.ID, Details: e.Entity.Path}
	}
	details, err := json.Marshal(e.Details)
	if err != nil {
		return fmt.Errorf("record %s: %w", e.Type, err)
	}
	if err := insertEvent(ctx, tx, e, string(details)); err != nil {
		return fmt.Errorf("record %s: %w", e.Type, err)
	}
	return nil
}

// Deps are the dependencies of the service.
type Deps struct {
	DB *db.DB
}

// Service reads audit events.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Filter selects events. Zero values select all events.
type Filter struct {
	CreatedAfter  *time.Time
	CreatedBefore *time.Time
	EntityType    EntityType
	EntityID      int64 // needs EntityType
	AuthorID      int64
}

// List returns the events of the whole instance, newest first. Only
// administrators may call it.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[Event], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[Event]{}, err
	}
	if f.EntityID != 0 && f.EntityType == "" {
		return db.Page[Event]{}, errs.Invalid("entity_type is missing")
	}
	return listEvents(ctx, s.DB, f, p)
}

// Get returns an event. Only administrators may call it. It returns NotFound if the
// event does not exist.
func (s *Service) Get(ctx context.Context, by actor.Actor, id int64) (Event, error) {
	if err := by.RequireAdmin(); err != nil {
		return Event{}, err
	}
	return findEvent(ctx, s.DB, id)
}

// Of returns the events of a group or project, newest first. If author is not 0, it
// returns only the events of this author. The caller must check the permissions.
func (s *Service) Of(ctx context.Context, in Entity, author int64, f Filter, p db.Paging) (db.Page[Event], error) {
	f.EntityType, f.EntityID, f.AuthorID = in.Type, in.ID, author
	return listEvents(ctx, s.DB, f, p)
}

// OneOf returns an event of a group or project, or NotFound if the event belongs to
// another entity. The caller must check the permissions.
func (s *Service) OneOf(ctx context.Context, in Entity, id int64) (Event, error) {
	e, err := findEvent(ctx, s.DB, id)
	if err == nil && (e.Entity.Type != in.Type || e.Entity.ID != in.ID) {
		return Event{}, errs.NotFound("Audit Event")
	}
	return e, err
}
