package api

import (
	"html"

	"svc/internal/bind"
	"svc/internal/plan"
)

func (a *API) labelRoutes() {
	a.tag("Labels")
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/labels", readAPI.orAnonymous(), m.listLabels, summary("List "+in.kind+" labels"))
		handle(a, "POST "+in.path+"/labels", writeAPI, m.createLabel, summary("Create a "+in.kind+" label"))
		handle(a, "PUT "+in.path+"/labels", writeAPI, m.updateNamedLabel, summary("Update a "+in.kind+" label (deprecated)"))
		handle(a, "DELETE "+in.path+"/labels", writeAPI, m.deleteNamedLabel, summary("Delete a "+in.kind+" label (deprecated)"))
		handle(a, "GET "+in.path+"/labels/{name}", readAPI.orAnonymous(), m.getLabel, summary("Get a "+in.kind+" label"))
		handle(a, "PUT "+in.path+"/labels/{name}", writeAPI, m.updateLabel, summary("Update a "+in.kind+" label"))
		handle(a, "DELETE "+in.path+"/labels/{name}", writeAPI, m.deleteLabel, summary("Delete a "+in.kind+" label"))
		handle(a, "POST "+in.path+"/labels/{name}/subscribe", writeAPI, m.subscribeLabel, summary("Subscribe to a "+in.kind+" label"))
		handle(a, "POST "+in.path+"/labels/{name}/unsubscribe", writeAPI, m.unsubscribeLabel, summary("Unsubscribe from a "+in.kind+" label"))
	}
	handle(a, "PUT /projects/{id}/labels/{name}/promote", writeAPI, a.promoteLabel, summary("Promote a project label to a group label"))
}

type labelJSON struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Description     *string `json:"description"`
	DescriptionHTML string  `json:"description_html"`
	TextColor       string  `json:"text_color"`
	Color           string  `json:"color"`
	Archived        bool    `json:"archived"` // always false
	Subscribed      bool    `json:"subscribed"`
	OpenIssues      int64   `json:"open_issues_count"`
	ClosedIssues    int64   `json:"closed_issues_count"`
	OpenRequests    int64   `json:"open_merge_requests_count"`
	Priority        *int64  `json:"priority"`
	IsProjectLabel  bool    `json:"is_project_label"`
}

func toLabel(l *plan.Label) labelJSON {
	return labelJSON{
		ID: l.ID, Name: l.Name, Description: textOrNull(l.Description), DescriptionHTML: html.EscapeString(l.Description), TextColor: l.TextColor(), Color: l.Color,
		Subscribed: l.Subscribed, OpenIssues: l.OpenIssues, ClosedIssues: l.ClosedIssues, OpenRequests: l.OpenRequests, Priority: l.Priority, IsProjectLabel: l.ProjectID != nil,
	}
}

type listLabelsParams struct {
	placeParams
	WithCounts  bool   `param:"with_counts"`
	Ancestors   *bool  `param:"include_ancestor_groups" doc:"Include labels of ancestor groups. Default is true."`
	Descendants bool   `param:"include_descendant_groups" doc:"For groups: include labels of descendant groups."`
	OnlyGroup   *bool  `param:"only_group_labels" doc:"For groups: only group labels. Always in effect."`
	Search      string `param:"search" max:"1024"`
	Archived    *bool  `param:"archived" doc:"No effect: labels cannot be archived."`
	pageParams
}

// listLabels: https://docs.gitlab.com/api/labels/#list-labels
func (m parentEndpoints) listLabels(c *call, p listLabelsParams) (page[labelJSON], error) {
	f := plan.LabelFilter{Search: p.Search, Ancestors: p.Ancestors == nil || *p.Ancestors, Descendants: p.Descendants, Counts: p.WithCounts}
	return offsetList(p.pageParams, toLabel)(m.api.Plan.Labels(c, c.actor, m.at(p.Ref), f, p.paging()))
}

type labelParams struct {
	placeParams
	Label string `param:"name" doc:"Label ID or name."`
}

// getLabel: https://docs.gitlab.com/api/labels/#get-a-single-project-label
func (m parentEndpoints) getLabel(c *call, p labelParams) (labelJSON, error) {
	return presentAs(toLabel)(m.api.Plan.Label(c, c.actor, m.at(p.Ref), p.Label))
}

type labelFieldParams struct {
	Description *string         `param:"description"`
	Priority    bind.Opt[int64] `param:"priority" doc:"Priority of the label; null to remove."`
}

func (p *labelFieldParams) fields(name, color *string) plan.LabelFields {
	f := plan.LabelFields{Name: name, Color: color, Description: p.Description, SetPriority: p.Priority.Set}
	if p.Priority.Set && !p.Priority.Null {
		f.Priority = &p.Priority.Value
	}
	return f
}

type createLabelParams struct {
	placeParams
	Name  string `param:"name,required,nonblank"`
	Color string `param:"color,required" doc:"Color: #rrggbb, #rgb or a CSS color name."`
	labelFieldParams
}

// createLabel: https://docs.gitlab.com/api/labels/#create-a-new-label
func (m parentEndpoints) createLabel(c *call, p createLabelParams) (labelJSON, error) {
	return presentAs(toLabel)(m.api.Plan.CreateLabel(c, c.actor, m.at(p.Ref), p.fields(&p.Name, &p.Color)))
}

type labelChangeParams struct {
	NewName *string `param:"new_name"`
	Color   *string `param:"color"`
	labelFieldParams
}

func (labelChangeParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("new_name", "color", "description", "priority")}
}

type updateLabelParams struct {
	labelParams
	labelChangeParams
}

// updateLabel: https://docs.gitlab.com/api/labels/#edit-an-existing-label
func (m parentEndpoints) updateLabel(c *call, p updateLabelParams) (labelJSON, error) {
	return presentAs(toLabel)(m.api.Plan.UpdateLabel(c, c.actor, m.at(p.Ref), p.Label, p.fields(p.NewName, p.Color)))
}

// namedLabelParams identify a label by a parameter, as older clients do.
type namedLabelParams struct {
	placeParams
	Name    string `param:"name"`
	LabelID string `param:"label_id"`
}

func (namedLabelParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.ExactlyOne("label_id", "name")}
}

func (p *namedLabelParams) label() string {
	if p.LabelID != "" {
		return p.LabelID
	}
	return p.Name
}

type updateNamedLabelParams struct {
	namedLabelParams
	labelChangeParams
}

func (p updateNamedLabelParams) ParamRules() []bind.Rule {
	return append(p.namedLabelParams.ParamRules(), p.labelChangeParams.ParamRules()...)
}

// updateNamedLabel: https://docs.gitlab.com/api/labels/#edit-an-existing-label
func (m parentEndpoints) updateNamedLabel(c *call, p updateNamedLabelParams) (labelJSON, error) {
	return presentAs(toLabel)(m.api.Plan.UpdateLabel(c, c.actor, m.at(p.Ref), p.label(), p.fields(p.NewName, p.Color)))
}

// deleteLabel: https://docs.gitlab.com/api/labels/#delete-a-label
func (m parentEndpoints) deleteLabel(c *call, p labelParams) (none, error) {
	return none{}, m.api.Plan.DeleteLabel(c, c.actor, m.at(p.Ref), p.Label, c.unmodifiedSince())
}

// deleteNamedLabel: https://docs.gitlab.com/api/labels/#delete-a-label
func (m parentEndpoints) deleteNamedLabel(c *call, p namedLabelParams) (none, error) {
	return none{}, m.api.Plan.DeleteLabel(c, c.actor, m.at(p.Ref), p.label(), c.unmodifiedSince())
}

// subscribeLabel: https://docs.gitlab.com/api/labels/#subscribe-to-a-label
func (m parentEndpoints) subscribeLabel(c *call, p labelParams) (unchanged[labelJSON], error) {
	return m.setSubscription(c, p, true)
}

// unsubscribeLabel: https://docs.gitlab.com/api/labels/#unsubscribe-from-a-label
func (m parentEndpoints) unsubscribeLabel(c *call, p labelParams) (unchanged[labelJSON], error) {
	return m.setSubscription(c, p, false)
}

func (m parentEndpoints) setSubscription(c *call, p labelParams, want bool) (unchanged[labelJSON], error) {
	l, changed, err := m.api.Plan.SubscribeLabel(c, c.actor, m.at(p.Ref), p.Label, want)
	out, err := presentAs(toLabel)(l, err)
	return unchanged[labelJSON]{out, !changed}, err
}

// promoteLabel: https://docs.gitlab.com/api/labels/#promote-a-project-label-to-a-group-label
func (a *API) promoteLabel(c *call, p labelParams) (labelJSON, error) {
	return presentAs(toLabel)(a.Plan.PromoteLabel(c, c.actor, p.Ref, p.Label))
}
