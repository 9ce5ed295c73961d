package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
)

// NoteBatch is a set of new notes of one author on a target that are published
// together, with the changes of their quick actions and their cross-references.
type NoteBatch struct {
	Notes   []*Note  // nil for a text that contains only quick actions
	Outcome *Outcome // outcome of all quick actions; nil if there are none

	s       *Service
	by      actor.Actor
	on      Noteable
	crossed []noteMentions
	apply   func(ctx context.Context, tx *db.Tx) error

	mentions int // in all notes
}

// noteMentions are the cross-references of a note. Those of an internal note are not
// created, because the resulting system notes would be visible to other users.
type noteMentions struct {
	note *Note
	list []Mentioned
}

// PrepareNotes validates new notes, removes their quick actions and returns them
// for Publish. The quick actions of all texts run in order, as if they were in one
// text. head is the head SHA of the merge request that the author has seen, or
// empty. It reads the diff, so it must not be called in a transaction. Forbidden;
// Invalid.
func (s *Service) PrepareNotes(ctx context.Context, by actor.Actor, on Noteable, head string, list ...NewNote) (*NoteBatch, error) {
	b := &NoteBatch{s: s, by: by, on: on, apply: func(context.Context, *db.Tx) error { return nil }}
	if len(list) > 0 {
		if err := on.mayComment(by); err != nil {
			return nil, err
		}
	}
	var commands []Invocation
	for _, n := range list {
		var found []Invocation
		if on.Commands != nil {
			n.Body, found = s.ParseCommands(on.Kind, n.Body)
			commands = append(commands, found...)
		}
		if len(found) > 0 && n.Body == "" {
			b.Notes = append(b.Notes, nil)
			continue
		}
		note, err := s.Prepare(ctx, by, on, n)
		if err != nil {
			return nil, err
		}
		b.Notes = append(b.Notes, note)
		if err := b.mention(ctx, note); err != nil {
			return nil, err
		}
	}
	if len(commands) == 0 {
		return b, nil
	}
	on.Commands.Head = head
	var err error
	if b.Outcome, err = s.RunCommands(ctx, by, on.In, on.Commands, commands); err != nil {
		return nil, err
	}
	if len(b.Outcome.Messages) > 0 { // otherwise all commands were refused or run in After
		b.apply, err = on.Commands.Apply(ctx, b.Outcome)
	}
	return b, err
}

// mention adds the cross-references of a note.
func (b *NoteBatch) mention(ctx context.Context, n *Note) error {
	if n.Internal || b.on.Kind != IssueKind && b.on.Kind != MergeKind || b.mentions >= maxCrossReferences {
		return nil
	}
	found, err := b.s.Mentioned(ctx, b.by, b.on.In, n.Body)
	b.crossed, b.mentions = append(b.crossed, noteMentions{n, found}), b.mentions+len(found)
	return err
}

// Publish adds the notes and applies the quick actions, in the transaction of the
// caller. The errors are those of Service.Publish.
func (b *NoteBatch) Publish(ctx context.Context, tx *db.Tx) error {
	var notes []*Note
	for _, n := range b.Notes {
		if n != nil {
			notes = append(notes, n)
		}
	}
	if len(notes) > 0 {
		if err := b.s.Publish(ctx, tx, b.by, b.on, notes...); err != nil {
			return err
		}
	}
	for _, c := range b.crossed {
		if c.note.Internal { // known for a reply only now: it is as internal as its thread
			continue
		}
		if err := b.s.CrossReference(ctx, tx, b.by, b.on.source(), c.list); err != nil {
			return err
		}
	}
	return b.apply(ctx, tx)
}

// After runs the quick actions that cannot be part of a transaction. It is called
// when the transaction of Publish has been committed.
func (b *NoteBatch) After(ctx context.Context) error {
	if b.Outcome == nil {
		return nil
	}
	if err := b.Outcome.After(ctx, b.on.Commands.Issuable); err != nil {
		return fmt.Errorf("quick actions on %s %d: %w", b.on.Kind, b.on.ID, err)
	}
	return nil
}
