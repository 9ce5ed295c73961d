package api

import (
	"svc/internal/bind"
	"svc/internal/project/topic"
)

func (a *API) topicRoutes() {
	a.tag("Topics")
	handle(a, "GET /topics", readAPI.orAnonymous(), a.listTopics, summary("List topics"))
	handle(a, "GET /topics/{id}", readAPI.orAnonymous(), a.getTopic, summary("Get a topic"))
	handle(a, "POST /topics", writeAPI, a.createTopic, files(maxAvatarUpload), summary("Create a topic"))
	handle(a, "PUT /topics/{id}", writeAPI, a.updateTopic, files(maxAvatarUpload), summary("Update a topic"))
	handle(a, "DELETE /topics/{id}", writeAPI, a.deleteTopic, summary("Delete a topic"))
	handle(a, "POST /topics/merge", writeAPI, a.mergeTopics, summary("Merge topics"))
}

type topicJSON struct {
	ID             int64   `json:"id"`
	Name           string  `json:"name"`
	Title          string  `json:"title"`
	Description    *string `json:"description"`
	Projects       int64   `json:"total_projects_count"`
	OrganizationID int64   `json:"organization_id"` // always 1
	AvatarURL      *string `json:"avatar_url"`
}

func toTopic(site *Site, t *topic.Topic) topicJSON {
	return topicJSON{t.ID, t.Name, t.Title, textOrNull(t.Description), t.Projects, 1, pictureURL(site, "topic", t.ID, t.Avatar)}
}

func presentTopic(c *call, t *topic.Topic, err error) (topicJSON, error) {
	if err != nil {
		return topicJSON{}, err
	}
	return toTopic(c.site, t), nil
}

type listTopicsParams struct {
	Search string `param:"search" max:"1024" doc:"Text in the name."`
	Unused bool   `param:"without_projects" doc:"Only topics without projects."`
	pageParams
}

// listTopics: https://docs.gitlab.com/api/topics/#list-topics
func (a *API) listTopics(c *call, p listTopicsParams) (page[topicJSON], error) {
	list, err := a.Topics.List(c, topic.Filter{Search: p.Search, Unused: p.Unused}, p.paging())
	if err != nil {
		return page[topicJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(t *topic.Topic) topicJSON { return toTopic(c.site, t) }), nil
}

type topicParams struct {
	ID int64 `param:"id"`
}

// getTopic: https://docs.gitlab.com/api/topics/#get-a-topic
func (a *API) getTopic(c *call, p topicParams) (topicJSON, error) {
	t, err := a.Topics.Get(c, p.ID)
	return presentTopic(c, t, err)
}

// topicFieldParams are the attributes for create and update.
type topicFieldParams struct {
	Description *string                `param:"description"`
	Avatar      bind.Opt[*bind.Upload] `param:"avatar" doc:"Image file: PNG, JPEG, GIF or WebP, at most 200 KiB. Empty to remove the avatar."`
}

func (p *topicFieldParams) fields(name, title *string) topic.Fields {
	return topic.Fields{
		Name: name, Title: title, Description: p.Description, Avatar: toAvatarFile(p.Avatar.Value), RemoveAvatar: p.Avatar.Null,
	}
}

type createTopicParams struct {
	Name  string  `param:"name,required" doc:"Name of the topic, as used in projects."`
	Title *string `param:"title" doc:"Display name of the topic. Default is the name."`
	topicFieldParams
}

// createTopic: https://docs.gitlab.com/api/topics/#create-a-project-topic
func (a *API) createTopic(c *call, p createTopicParams) (topicJSON, error) {
	if p.Title == nil {
		p.Title = &p.Name
	}
	t, err := a.Topics.Create(c, c.actor, p.fields(&p.Name, p.Title))
	return presentTopic(c, t, err)
}

type updateTopicParams struct {
	topicParams
	Name  *string `param:"name" doc:"Name of the topic, as used in projects."`
	Title *string `param:"title" doc:"Display name of the topic."`
	topicFieldParams
}

// updateTopic: https://docs.gitlab.com/api/topics/#update-a-project-topic
func (a *API) updateTopic(c *call, p updateTopicParams) (topicJSON, error) {
	t, err := a.Topics.Update(c, c.actor, p.ID, p.fields(p.Name, p.Title))
	return presentTopic(c, t, err)
}

// deleteTopic: https://docs.gitlab.com/api/topics/#delete-a-project-topic
func (a *API) deleteTopic(c *call, p topicParams) (none, error) {
	return none{}, a.Topics.Delete(c, c.actor, p.ID, c.unmodifiedSince())
}

type mergeTopicsParams struct {
	Source int64 `param:"source_topic_id,required" doc:"ID of the topic to merge; it is deleted."`
	Target int64 `param:"target_topic_id,required" doc:"ID of the topic to merge into."`
}

// mergeTopics: https://docs.gitlab.com/api/topics/#merge-topics
func (a *API) mergeTopics(c *call, p mergeTopicsParams) (topicJSON, error) {
	t, err := a.Topics.Merge(c, c.actor, p.Source, p.Target)
	return presentTopic(c, t, err)
}
