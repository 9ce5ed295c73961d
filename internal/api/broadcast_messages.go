package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/broadcast"
)

func (a *API) broadcastMessageRoutes() {
	a.tag("Broadcast messages")
	const all, one = "/broadcast_messages", "/broadcast_messages/{message_id}"
	handle(a, "GET "+all, readAPI.orAnonymous(), a.listBroadcastMessages, summary("List all broadcast messages"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getBroadcastMessage, summary("Get a specific broadcast message"))
	handle(a, "POST "+all, writeAPI, a.createBroadcastMessage, summary("Create a broadcast message"))
	handle(a, "PUT "+one, writeAPI, a.updateBroadcastMessage, summary("Update a broadcast message"))
	handle(a, "DELETE "+one, writeAPI, a.deleteBroadcastMessage, summary("Delete a broadcast message"))
}

type broadcastMessageJSON struct {
	ID          int64   `json:"id"`
	Message     string  `json:"message"`
	StartsAt    stamp   `json:"starts_at"`
	EndsAt      stamp   `json:"ends_at"`
	Color       string  `json:"color"`
	Font        string  `json:"font"`
	Levels      []int64 `json:"target_access_levels"`
	Path        *string `json:"target_path"`
	Type        string  `json:"broadcast_type"`
	Theme       string  `json:"theme"`
	Dismissable bool    `json:"dismissable"`
	Active      bool    `json:"active"`
}

func (a *API) toBroadcastMessage(m *broadcast.Message) broadcastMessageJSON {
	levels := m.Levels
	if levels == nil {
		levels = []int64{}
	}
	return broadcastMessageJSON{
		ID: m.ID, Message: m.Text, StartsAt: toStamp(m.StartsAt), EndsAt: toStamp(m.EndsAt), Color: m.Color, Font: m.Font, Levels: levels,
		Path: textOrNull(m.Path), Type: string(m.Type), Theme: m.Theme, Dismissable: m.Dismissable, Active: m.ActiveAt(a.Now()),
	}
}

func (a *API) presentBroadcastMessage(m *broadcast.Message, err error) (broadcastMessageJSON, error) {
	if err != nil {
		return broadcastMessageJSON{}, err
	}
	return a.toBroadcastMessage(m), nil
}

// listBroadcastMessages: https://docs.gitlab.com/api/broadcast_messages/#get-all-broadcast-messages
func (a *API) listBroadcastMessages(c *call, p pageParams) (page[broadcastMessageJSON], error) {
	return offsetList(p, a.toBroadcastMessage)(a.Broadcasts.List(c, p.paging()))
}

type broadcastMessageParams struct {
	ID int64 `param:"message_id" doc:"ID of the message."`
}

// getBroadcastMessage: https://docs.gitlab.com/api/broadcast_messages/#get-a-specific-broadcast-message
func (a *API) getBroadcastMessage(c *call, p broadcastMessageParams) (broadcastMessageJSON, error) {
	return a.presentBroadcastMessage(a.Broadcasts.Get(c, p.ID))
}

type broadcastFields struct {
	StartsAt    *time.Time        `param:"starts_at" doc:"Start time. Default: now."`
	EndsAt      *time.Time        `param:"ends_at" doc:"End time. Default: one hour after the start."`
	Color       *string           `param:"color" doc:"Deprecated: stored and returned only. Use theme."`
	Font        *string           `param:"font" doc:"Foreground color: stored and returned only."`
	Levels      bind.Opt[[]int64] `param:"target_access_levels" doc:"Roles of the users who see the message on pages of projects and groups."`
	Path        *string           `param:"target_path" doc:"Path of the pages that show the message, with * for any text."`
	Type        *string           `param:"broadcast_type" enum:"banner,notification" doc:"Where the message is shown. Default: banner."`
	Dismissable *bool             `param:"dismissable" doc:"Whether users can dismiss the message."`
	Theme       *string           `param:"theme" enum:"indigo,light-indigo,blue,light-blue,green,light-green,red,light-red,dark,light" doc:"Color theme."`
}

func (f broadcastFields) change() broadcast.Change {
	c := broadcast.Change{
		StartsAt: f.StartsAt, EndsAt: f.EndsAt, Color: f.Color, Font: f.Font, Path: f.Path, Type: (*broadcast.Type)(f.Type), Dismissable: f.Dismissable, Theme: f.Theme,
	}
	if f.Levels.Set {
		c.Levels = &f.Levels.Value
	}
	return c
}

type createBroadcastMessageParams struct {
	Message string `param:"message,required" doc:"Text of the message, in Markdown."`
	broadcastFields
}

// createBroadcastMessage: https://docs.gitlab.com/api/broadcast_messages/#create-a-broadcast-message
func (a *API) createBroadcastMessage(c *call, p createBroadcastMessageParams) (broadcastMessageJSON, error) {
	change := p.change()
	change.Text = &p.Message
	return a.presentBroadcastMessage(a.Broadcasts.Create(c, c.actor, change))
}

type updateBroadcastMessageParams struct {
	broadcastMessageParams
	Message *string `param:"message" doc:"Text of the message, in Markdown."`
	broadcastFields
}

// updateBroadcastMessage: https://docs.gitlab.com/api/broadcast_messages/#update-a-broadcast-message
func (a *API) updateBroadcastMessage(c *call, p updateBroadcastMessageParams) (broadcastMessageJSON, error) {
	change := p.change()
	change.Text = p.Message
	return a.presentBroadcastMessage(a.Broadcasts.Update(c, c.actor, p.ID, change))
}

// deleteBroadcastMessage: https://docs.gitlab.com/api/broadcast_messages/#delete-a-broadcast-message
func (a *API) deleteBroadcastMessage(c *call, p broadcastMessageParams) (none, error) {
	return none{}, a.Broadcasts.Delete(c, c.actor, p.ID)
}
