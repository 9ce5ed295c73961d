package api

import (
	"svc/internal/plan"
)

func (a *API) awardRoutes() {
	awardRoutesOf[issueParams](a, "/projects/{id}/issues/{issue_iid}", "an issue")
	awardRoutesOf[mergeParams](a, "/projects/{id}/merge_requests/{merge_request_iid}", "a merge request")
	awardRoutesOf[projectSnippetParams](a, "/projects/{id}/snippets/{snippet_id}", "a snippet")
}

// awardEndpoints serves the emoji reactions to one type of objects and to the notes
// on them.
type awardEndpoints[T noteTarget] struct{ api *API }

func awardRoutesOf[T noteTarget](a *API, at, what string) {
	a.tag("Emoji reactions")
	t := awardEndpoints[T]{a}
	handle(a, "GET "+at+"/award_emoji", readAPI.orAnonymous(), t.listAwards, summary("List emoji reactions to "+what))
	handle(a, "GET "+at+"/award_emoji/{award_id}", readAPI.orAnonymous(), t.getAward, summary("Get an emoji reaction to "+what))
	handle(a, "POST "+at+"/award_emoji", writeAPI, t.createAward, summary("Add an emoji reaction to "+what))
	handle(a, "DELETE "+at+"/award_emoji/{award_id}", writeAPI, t.deleteAward, summary("Delete an emoji reaction to "+what))
	on := at + "/notes/{note_id}"
	handle(a, "GET "+on+"/award_emoji", readAPI.orAnonymous(), t.listNoteAwards, summary("List emoji reactions to a comment on "+what))
	handle(a, "GET "+on+"/award_emoji/{award_id}", readAPI.orAnonymous(), t.getNoteAward, summary("Get an emoji reaction to a comment on "+what))
	handle(a, "POST "+on+"/award_emoji", writeAPI, t.createNoteAward, summary("Add an emoji reaction to a comment on "+what))
	handle(a, "DELETE "+on+"/award_emoji/{award_id}", writeAPI, t.deleteNoteAward, summary("Delete an emoji reaction to a comment on "+what))
}

type awardJSON struct {
	ID            int64           `json:"id"`
	Name          string          `json:"name"`
	User          *userPublicJSON `json:"user"`
	CreatedAt     stamp           `json:"created_at"`
	UpdatedAt     stamp           `json:"updated_at"`
	AwardableID   int64           `json:"awardable_id"`
	AwardableType string          `json:"awardable_type"`
	URL           *string         `json:"url"` // of a custom emoji
}

func (a *API) toAward(c *call, w *plan.Award) awardJSON {
	return awardJSON{
		ID: w.ID, Name: w.Name, User: toUserOrNull(c.site, w.User, a.Now()), CreatedAt: toStamp(w.CreatedAt), UpdatedAt: toStamp(w.UpdatedAt),
		AwardableID: w.On.ID, AwardableType: string(w.On.Kind),
	}
}

type awardListParams[T noteTarget] struct {
	On T `param:"*"`
	pageParams
}

// listAwards: https://docs.gitlab.com/api/emoji_reactions/#list-an-awardables-emoji-reactions
func (t awardEndpoints[T]) listAwards(c *call, p awardListParams[T]) (page[awardJSON], error) {
	return t.list(c, p.On, 0, p.pageParams)
}

type noteAwardListParams[T noteTarget] struct {
	noteParams[T]
	pageParams
}

// listNoteAwards: https://docs.gitlab.com/api/emoji_reactions/#list-a-comments-emoji-reactions
func (t awardEndpoints[T]) listNoteAwards(c *call, p noteAwardListParams[T]) (page[awardJSON], error) {
	return t.list(c, p.On, p.Note, p.pageParams)
}

func (t awardEndpoints[T]) list(c *call, at T, note int64, p pageParams) (page[awardJSON], error) {
	on, err := at.on(t.api, c)
	if err != nil {
		return page[awardJSON]{}, err
	}
	list, err := t.api.Plan.Awards(c, on, note, p.paging())
	if err != nil {
		return page[awardJSON]{}, err
	}
	return offsetPage(p, list, func(w *plan.Award) awardJSON { return t.api.toAward(c, w) }), nil
}

type awardParams[T noteTarget] struct {
	On    T     `param:"*"`
	Award int64 `param:"award_id"`
}

// getAward: https://docs.gitlab.com/api/emoji_reactions/#get-single-emoji-reaction
func (t awardEndpoints[T]) getAward(c *call, p awardParams[T]) (awardJSON, error) {
	return t.get(c, p.On, 0, p.Award)
}

type noteAwardParams[T noteTarget] struct {
	noteParams[T]
	Award int64 `param:"award_id"`
}

// getNoteAward: https://docs.gitlab.com/api/emoji_reactions/#get-an-emoji-reaction-for-a-comment
func (t awardEndpoints[T]) getNoteAward(c *call, p noteAwardParams[T]) (awardJSON, error) {
	return t.get(c, p.On, p.Note, p.Award)
}

func (t awardEndpoints[T]) get(c *call, at T, note, id int64) (awardJSON, error) {
	on, err := at.on(t.api, c)
	if err != nil {
		return awardJSON{}, err
	}
	w, err := t.api.Plan.Award(c, on, note, id)
	if err != nil {
		return awardJSON{}, err
	}
	return t.api.toAward(c, w), nil
}

type createAwardParams[T noteTarget] struct {
	On   T      `param:"*"`
	Name string `param:"name,required" doc:"Name of the emoji without colons."`
}

// createAward: https://docs.gitlab.com/api/emoji_reactions/#add-a-new-emoji-reaction
func (t awardEndpoints[T]) createAward(c *call, p createAwardParams[T]) (awardJSON, error) {
	return t.create(c, p.On, 0, p.Name)
}

type createNoteAwardParams[T noteTarget] struct {
	noteParams[T]
	Name string `param:"name,required" doc:"Name of the emoji without colons."`
}

// createNoteAward: https://docs.gitlab.com/api/emoji_reactions/#add-a-new-emoji-reaction-to-a-comment
func (t awardEndpoints[T]) createNoteAward(c *call, p createNoteAwardParams[T]) (awardJSON, error) {
	return t.create(c, p.On, p.Note, p.Name)
}

func (t awardEndpoints[T]) create(c *call, at T, note int64, name string) (awardJSON, error) {
	on, err := at.on(t.api, c)
	if err != nil {
		return awardJSON{}, err
	}
	w, err := t.api.Plan.CreateAward(c, c.actor, on, note, name)
	if err != nil {
		return awardJSON{}, err
	}
	return t.api.toAward(c, w), nil
}

// deleteAward: https://docs.gitlab.com/api/emoji_reactions/#delete-an-emoji-reaction
func (t awardEndpoints[T]) deleteAward(c *call, p awardParams[T]) (none, error) {
	return t.delete(c, p.On, 0, p.Award)
}

// deleteNoteAward: https://docs.gitlab.com/api/emoji_reactions/#delete-an-emoji-reaction-from-a-comment
func (t awardEndpoints[T]) deleteNoteAward(c *call, p noteAwardParams[T]) (none, error) {
	return t.delete(c, p.On, p.Note, p.Award)
}

func (t awardEndpoints[T]) delete(c *call, at T, note, id int64) (none, error) {
	on, err := at.on(t.api, c)
	if err != nil {
		return none{}, err
	}
	return none{}, t.api.Plan.DeleteAward(c, c.actor, on, note, id)
}
