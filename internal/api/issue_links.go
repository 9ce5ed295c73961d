package api

import (
	"svc/internal/plan"
	"svc/internal/project"
)

func (a *API) issueLinkRoutes() {
	a.tag("Issue links")
	const at = "/projects/{id}/issues/{issue_iid}/links"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listIssueLinks, summary("List issue relations"))
	handle(a, "POST "+at, writeAPI, a.createIssueLink, summary("Create an issue link"))
	handle(a, "GET "+at+"/{issue_link_id}", readAPI.orAnonymous(), a.getIssueLink, summary("Get an issue link"))
	handle(a, "DELETE "+at+"/{issue_link_id}", writeAPI, a.deleteIssueLink, summary("Delete an issue link"))
}

// linkedIssueJSON is an issue that is linked to another one.
type linkedIssueJSON struct {
	issueJSON
	LinkID        int64  `json:"issue_link_id"`
	LinkType      string `json:"link_type"`
	LinkCreatedAt stamp  `json:"link_created_at"`
	LinkUpdatedAt stamp  `json:"link_updated_at"`
}

// listIssueLinks: https://docs.gitlab.com/api/issue_links/#list-issue-relations
func (a *API) listIssueLinks(c *call, p issueParams) ([]linkedIssueJSON, error) {
	list, err := a.Plan.IssueLinks(c, c.actor, p.Project, p.Issue)
	if err != nil {
		return nil, err
	}
	now := a.Now()
	return mappedWhile(c, list, func(l *plan.Link) linkedIssueJSON {
		return linkedIssueJSON{toIssue(c.site, l.Target, false, now), l.ID, string(l.Kind), toStamp(l.CreatedAt), toStamp(l.UpdatedAt)}
	})
}

type issueLinkJSON struct {
	ID       int64     `json:"id"`
	Source   issueJSON `json:"source_issue"`
	Target   issueJSON `json:"target_issue"`
	LinkType string    `json:"link_type"`
}

func (a *API) presentIssueLink(c *call, l *plan.Link, err error) (issueLinkJSON, error) {
	if err != nil {
		return issueLinkJSON{}, err
	}
	now := a.Now()
	return issueLinkJSON{l.ID, toIssue(c.site, l.Source, false, now), toIssue(c.site, l.Target, false, now), string(l.Kind)}, nil
}

type createIssueLinkParams struct {
	issueParams
	TargetProject project.Ref `param:"target_project_id,required" doc:"Project ID or full path."`
	TargetIssue   int64       `param:"target_issue_iid,required"`
	LinkType      string      `param:"link_type" enum:"relates_to,blocks,is_blocked_by" default:"relates_to"`
}

// createIssueLink: https://docs.gitlab.com/api/issue_links/#create-an-issue-link
func (a *API) createIssueLink(c *call, p createIssueLinkParams) (issueLinkJSON, error) {
	l, err := a.Plan.LinkIssues(c, c.actor, p.Project, p.Issue, p.TargetProject, p.TargetIssue, plan.LinkKind(p.LinkType))
	return a.presentIssueLink(c, l, err)
}

type issueLinkParams struct {
	issueParams
	Link int64 `param:"issue_link_id"`
}

// getIssueLink: https://docs.gitlab.com/api/issue_links/#get-an-issue-link
func (a *API) getIssueLink(c *call, p issueLinkParams) (issueLinkJSON, error) {
	l, err := a.Plan.IssueLink(c, c.actor, p.Project, p.Issue, p.Link)
	return a.presentIssueLink(c, l, err)
}

// deleteIssueLink: https://docs.gitlab.com/api/issue_links/#delete-an-issue-link
func (a *API) deleteIssueLink(c *call, p issueLinkParams) (issueLinkJSON, error) {
	l, err := a.Plan.UnlinkIssues(c, c.actor, p.Project, p.Issue, p.Link)
	return a.presentIssueLink(c, l, err)
}
