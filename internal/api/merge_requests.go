package api

import (
	"html"
	"net/http"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/listing"
)

func (a *API) mergeRequestRoutes() {
	a.tag("Merge requests")
	const at = "/projects/{id}/merge_requests"
	const one = at + "/{merge_request_iid}"
	list := returns([]mergeRequestJSON{}, []mergeSimpleJSON{})
	handle(a, "GET /merge_requests", readAPI.orAnonymous(), a.listMergeRequests, list, summary("List merge requests"))
	handle(a, "GET /groups/{id}/merge_requests", readAPI.orAnonymous(), parentEndpoints{a, true}.listMergeRequests, list, summary("List group merge requests"))
	handle(a, "GET "+at, readAPI.orAnonymous(), parentEndpoints{a, false}.listMergeRequests, list, summary("List project merge requests"))
	handle(a, "POST "+at, writeAPI, a.createMergeRequest, branchConflict, branchesInvalid, summary("Create a merge request"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getMergeRequest, summary("Get a merge request"))
	handle(a, "PUT "+one, writeAPI, a.updateMergeRequest, branchConflict, branchesInvalid, summary("Update a merge request"))
	handle(a, "DELETE "+one, writeAPI, a.deleteMergeRequest, summary("Delete a merge request"))
	handle(a, "POST "+one+"/subscribe", writeAPI, a.subscribeMergeRequest, summary("Subscribe to a merge request"))
	handle(a, "POST "+one+"/unsubscribe", writeAPI, a.unsubscribeMergeRequest, summary("Unsubscribe from a merge request"))
	handle(a, "GET "+one+"/participants", readAPI.orAnonymous(), a.listMergeParticipants, summary("List merge request participants"))
	handle(a, "GET "+one+"/reviewers", readAPI.orAnonymous(), a.listMergeReviewers, summary("List merge request reviewers"))
	handle(a, "GET "+one+"/closes_issues", readAPI.orAnonymous(), a.listClosesIssues, summary("List issues that close on merge"))
	handle(a, "GET "+one+"/related_issues", readAPI.orAnonymous(), a.listRelatedIssues, summary("List issues related to a merge request"))
	handle(a, "GET /projects/{id}/issues/{issue_iid}/related_merge_requests", readAPI.orAnonymous(), a.listRelatedRequests, summary("List merge requests related to an issue"))
	handle(a, "GET /projects/{id}/issues/{issue_iid}/closed_by", readAPI.orAnonymous(), a.listClosingRequests, summary("List merge requests that close an issue on merge"))
	handle(a, "GET /projects/{id}/repository/commits/{sha}/merge_requests", readAPI.orAnonymous(), a.listCommitRequests, summary("List merge requests associated with a commit"))
}

// Additional responses of create and update.
var (
	branchConflict  = response(http.StatusConflict, "Another open merge request exists for these branches, or the merge request cannot be reopened.", messagesJSON{})
	branchesInvalid = response(http.StatusUnprocessableEntity, "The source and target branch cannot be merged.", messagesJSON{})
)

// messagesJSON is an error body with one message or a list.
type messagesJSON struct {
	Message any `json:"message"`
}

// mergeMatchParams are filters on attributes. Requests can negate them with not,
// as in not[labels].
type mergeMatchParams struct {
	matchParams
	ReviewerID        string   `param:"reviewer_id" doc:"User ID, None or Any."`
	ReviewerUsernames []string `param:"reviewer_username,csv"`
}

func (p *mergeMatchParams) match() merge.Match {
	return merge.Match{Match: p.matchParams.match(), ReviewerID: p.ReviewerID, ReviewerUsernames: p.ReviewerUsernames}
}

func (p *mergeMatchParams) ParamRules() []bind.Rule {
	return append(p.matchParams.ParamRules(), bind.Exclusive("reviewer_id", "reviewer_username"))
}

type listMergeParams struct {
	mergeMatchParams
	IIDs            []int64 `param:"iids,csv"`
	State           string  `param:"state" enum:"opened,closed,locked,merged,all"`
	Scope           string  `param:"scope" enum:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,reviews_for_me,all"`
	WIP             string  `param:"wip" enum:"yes,no" doc:"Filter by draft status."`
	Draft           *bool   `param:"draft"`
	SourceBranch    string  `param:"source_branch"`
	TargetBranch    string  `param:"target_branch"`
	SourceProjectID int64   `param:"source_project_id"`
	MergeUserID     int64   `param:"merge_user_id"`
	MergeUsername   string  `param:"merge_user_username"`

	Approved        string   `param:"approved" enum:"yes,no" doc:"yes returns merge requests with an approval, no those without."`
	ApproverIDs     []string `param:"approver_ids,csv" max:"5" doc:"IDs of users whom approval rules name; or None or Any."`
	ApprovedByIDs   []string `param:"approved_by_ids,csv" max:"5" doc:"IDs of users who have all approved; or None or Any."`
	ApprovedByNames []string `param:"approved_by_usernames,csv" max:"5" doc:"Usernames of users who have all approved."`
	filterParams
	Not         mergeMatchParams `param:"not" doc:"Return merge requests that do not match these parameters."`
	OrderBy     string           `param:"order_by" enum:"created_at,updated_at,merged_at,title,priority,label_priority,milestone_due,popularity" default:"created_at"`
	Sort        string           `param:"sort" enum:"asc,desc" default:"desc"`
	WithDetails bool             `param:"with_labels_details"`
	Recheck     bool             `param:"with_merge_status_recheck" doc:"Recalculate unknown merge statuses in the background."`
	View        string           `param:"view" enum:"simple" doc:"simple returns only basic fields."`
	pageParams
}

func (p *listMergeParams) filter(scope string) merge.Filter {
	f := merge.Filter{
		Filter: p.filterParams.filter(p.State, p.Scope, scope), Match: p.match(), Not: p.Not.match(), Draft: p.Draft,
		SourceBranch: p.SourceBranch, TargetBranch: p.TargetBranch, SourceProjectID: p.SourceProjectID,
		MergeUserID: p.MergeUserID, MergeUsername: p.MergeUsername, Recheck: p.Recheck,
	}
	f.IIDs = p.IIDs
	f.ApproverIDs, f.ApprovedByIDs, f.ApprovedByNames = p.ApproverIDs, p.ApprovedByIDs, p.ApprovedByNames
	if p.Approved != "" {
		approved := p.Approved == "yes"
		f.Approved = &approved
	}
	if p.WIP != "" {
		draft := p.WIP == "yes"
		f.Draft = &draft
	}
	return f
}

func (p *listMergeParams) check() error {
	for name, list := range map[string][]string{"approver_ids": p.ApproverIDs, "approved_by_ids": p.ApprovedByIDs} {
		for _, id := range list {
			word := strings.EqualFold(id, listing.None) || strings.EqualFold(id, listing.Any)
			if _, err := strconv.ParseInt(id, 10, 64); err != nil && !(word && len(list) == 1) {
				return bind.Invalid(name + " should be an array of IDs, None or Any")
			}
		}
	}
	if p.ApprovedByIDs != nil && p.ApprovedByNames != nil {
		return bind.Invalid("approved_by_ids, approved_by_usernames are mutually exclusive")
	}
	return p.pageParams.check()
}

func (p *listMergeParams) order() listing.Sort {
	return listing.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}
}

// listMergeRequests: https://docs.gitlab.com/api/merge_requests/#list-merge-requests
func (a *API) listMergeRequests(c *call, p listMergeParams) (any, error) {
	scope := "created_by_me"
	if c.actor.Anonymous() || p.hasUser() || p.ReviewerID != "" || len(p.ReviewerUsernames) > 0 {
		scope = ""
	}
	list, err := a.Merges.List(c, c.actor, p.filter(scope), p.order(), p.paging())
	return a.presentMerges(c, &p, list, err)
}

type placeMergeParams struct {
	placeParams
	listMergeParams
}

// listMergeRequests: https://docs.gitlab.com/api/merge_requests/#list-project-merge-requests
func (m parentEndpoints) listMergeRequests(c *call, p placeMergeParams) (any, error) {
	f := p.filter("")
	f.Live = m.group && p.live()
	list, err := m.api.Merges.PlaceList(c, c.actor, m.at(p.Ref), f, p.order(), p.paging())
	return m.api.presentMerges(c, &p.listMergeParams, list, err)
}

func (a *API) presentMerges(c *call, p *listMergeParams, list db.Page[*merge.MergeRequest], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if p.View == "simple" {
		return offsetPage(p.pageParams, list, func(m *merge.MergeRequest) mergeSimpleJSON { return toMergeSimple(c.site, m) }), nil
	}
	return a.mergePage(c, p.pageParams, list, p.WithDetails)
}

func (a *API) mergePage(c *call, p pageParams, list db.Page[*merge.MergeRequest], details bool) (page[mergeRequestJSON], error) {
	now := a.Now()
	return offsetPageWhile(c, p, list, func(m *merge.MergeRequest) mergeRequestJSON { return toMergeRequest(c.site, m, details, now) })
}

type mergeParams struct {
	projectParams
	Request int64 `param:"merge_request_iid" doc:"IID of the merge request: its number in the project."`
}

type getMergeParams struct {
	mergeParams
	Diverged bool `param:"include_diverged_commits_count"`
	Rebase   bool `param:"include_rebase_in_progress"`
	HTML     bool `param:"render_html" doc:"Include the title and the description as HTML."`
}

// getMergeRequest: https://docs.gitlab.com/api/merge_requests/#get-single-mr
func (a *API) getMergeRequest(c *call, p getMergeParams) (mergeDetailJSON, error) {
	m, err := a.Merges.Get(c, c.actor, p.Project, p.Request)
	out, err := a.presentMerge(c, m, err)
	if err != nil {
		return out, err
	}
	if p.Rebase {
		rebasing := m.Rebasing(a.Now())
		out.RebaseInProgress = &rebasing
	}
	if p.HTML {
		rendered, err := a.Plan.RenderAll(c, c.actor, &p.Project, plan.Text{Source: m.Description})
		if err != nil {
			return out, err
		}
		title := html.EscapeString(m.Title)
		out.TitleHTML, out.DescriptionHTML = &title, &rendered[0]
	}
	if p.Diverged {
		n, err := a.Merges.Diverged(c, m)
		if err != nil {
			return out, err
		}
		out.DivergedCommitsCount = &n
	}
	return out, nil
}

// mergeFieldParams are the attributes for create and update.
type mergeFieldParams struct {
	fieldParams
	ReviewerIDs        bind.Opt[[]int64] `param:"reviewer_ids,csv" doc:"User IDs; empty or 0 to unassign all."`
	RemoveSource       *bool             `param:"remove_source_branch"`
	AllowCollaboration *bool             `param:"allow_collaboration" aliases:"allow_maintainer_to_push"`
	Squash             *bool             `param:"squash"`
}

func (p *mergeFieldParams) fields(title, target *string) merge.Fields {
	f := merge.Fields{
		Fields: p.fieldParams.fields(title), TargetBranch: target, RemoveSource: p.RemoveSource, AllowCollaboration: p.AllowCollaboration, Squash: p.Squash,
	}
	if p.ReviewerIDs.Set {
		f.Reviewers = &p.ReviewerIDs.Value
	}
	return f
}

type createMergeParams struct {
	projectParams
	SourceBranch string `param:"source_branch,required"`
	TargetBranch string `param:"target_branch,required"`
	Title        string `param:"title,required"`
	Target       *int64 `param:"target_project_id" doc:"Target project, if it is another project of the fork network."`
	Approvals    *int64 `param:"approvals_before_merge" doc:"Deprecated: use the approval rules of the merge request."`
	mergeFieldParams
}

// createMergeRequest: https://docs.gitlab.com/api/merge_requests/#create-mr
func (a *API) createMergeRequest(c *call, p createMergeParams) (mergeDetailJSON, error) {
	m, err := a.Merges.Create(c, c.actor, p.Project, merge.NewRequest{Fields: p.fields(&p.Title, &p.TargetBranch), SourceBranch: p.SourceBranch, TargetProject: p.Target, Approvals: p.Approvals})
	return a.presentMerge(c, m, err)
}

type updateMergeParams struct {
	mergeParams
	Title        *string  `param:"title"`
	TargetBranch *string  `param:"target_branch"`
	StateEvent   string   `param:"state_event" enum:"close,reopen"`
	AddLabels    []string `param:"add_labels,csv"`
	RemoveLabels []string `param:"remove_labels,csv"`
	Locked       *bool    `param:"discussion_locked"`
	mergeFieldParams
}

func (updateMergeParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("assignee_id", "assignee_ids", "reviewer_ids", "description", "discussion_locked", "labels", "add_labels", "remove_labels", "milestone_id",
		"remove_source_branch", "allow_collaboration", "squash", "target_branch", "title", "state_event")}
}

// updateMergeRequest: https://docs.gitlab.com/api/merge_requests/#update-mr
func (a *API) updateMergeRequest(c *call, p updateMergeParams) (mergeDetailJSON, error) {
	f := p.fields(p.Title, p.TargetBranch)
	f.Event, f.Labels.Add, f.Labels.Remove, f.Locked = p.StateEvent, p.AddLabels, p.RemoveLabels, p.Locked
	m, err := a.Merges.Update(c, c.actor, p.Project, p.Request, f)
	return a.presentMerge(c, m, err)
}

// deleteMergeRequest: https://docs.gitlab.com/api/merge_requests/#delete-a-merge-request
func (a *API) deleteMergeRequest(c *call, p mergeParams) (none, error) {
	return none{}, a.Merges.Delete(c, c.actor, p.Project, p.Request, c.unmodifiedSince())
}

// subscribeMergeRequest: https://docs.gitlab.com/api/merge_requests/#subscribe-to-a-merge-request
func (a *API) subscribeMergeRequest(c *call, p mergeParams) (unchanged[mergeDetailJSON], error) {
	return a.setMergeSubscription(c, p, true)
}

// unsubscribeMergeRequest: https://docs.gitlab.com/api/merge_requests/#unsubscribe-from-a-merge-request
func (a *API) unsubscribeMergeRequest(c *call, p mergeParams) (unchanged[mergeDetailJSON], error) {
	return a.setMergeSubscription(c, p, false)
}

func (a *API) setMergeSubscription(c *call, p mergeParams, want bool) (unchanged[mergeDetailJSON], error) {
	m, changed, err := a.Merges.Subscribe(c, c.actor, p.Project, p.Request, want)
	out, err := a.presentMerge(c, m, err)
	return unchanged[mergeDetailJSON]{out, !changed}, err
}

// listMergeParticipants: https://docs.gitlab.com/api/merge_requests/#get-single-merge-request-participants
func (a *API) listMergeParticipants(c *call, p mergeParams) ([]userPublicJSON, error) {
	list, err := a.Merges.Participants(c, c.actor, p.Project, p.Request)
	return a.presentUsers(c, list, err)
}

type mergeReviewerJSON struct {
	User      userPublicJSON `json:"user"`
	State     string         `json:"state"`
	CreatedAt stamp          `json:"created_at"`
}

// listMergeReviewers: https://docs.gitlab.com/api/merge_requests/#get-single-merge-request-reviewers
func (a *API) listMergeReviewers(c *call, p mergeParams) ([]mergeReviewerJSON, error) {
	list, err := a.Merges.ReviewersOf(c, c.actor, p.Project, p.Request)
	if err != nil {
		return nil, err
	}
	now := a.Now()
	return mapped(list, func(r merge.Reviewer) mergeReviewerJSON {
		return mergeReviewerJSON{toUserPublic(c.site, r.User, now), string(r.State), toStamp(r.Since)}
	}), nil
}

type mergePageParams struct {
	mergeParams
	pageParams
}

// listClosesIssues: https://docs.gitlab.com/api/merge_requests/#list-issues-that-close-on-merge
func (a *API) listClosesIssues(c *call, p mergePageParams) (page[issueJSON], error) {
	list, err := a.Merges.ClosesIssues(c, c.actor, p.Project, p.Request)
	return a.presentIssues(c, p.pageParams, db.SlicePage(list, p.paging()), false, err)
}

// listRelatedIssues: https://docs.gitlab.com/api/merge_requests/#list-issues-related-to-the-merge-request
func (a *API) listRelatedIssues(c *call, p mergePageParams) (page[issueJSON], error) {
	list, err := a.Merges.RelatedIssues(c, c.actor, p.Project, p.Request)
	return a.presentIssues(c, p.pageParams, db.SlicePage(list, p.paging()), false, err)
}

type issuePageParams struct {
	issueParams
	pageParams
}

// listRelatedRequests: https://docs.gitlab.com/api/issues/#list-merge-requests-related-to-issue
func (a *API) listRelatedRequests(c *call, p issuePageParams) (page[mergeRequestJSON], error) {
	list, err := a.Merges.OfIssue(c, c.actor, p.Project, p.Issue, false, p.paging())
	if err != nil {
		return page[mergeRequestJSON]{}, err
	}
	return a.mergePage(c, p.pageParams, list, false)
}

// listClosingRequests: https://docs.gitlab.com/api/issues/#list-merge-requests-that-close-a-particular-issue-on-merge
func (a *API) listClosingRequests(c *call, p issuePageParams) (page[mergeRequestJSON], error) {
	list, err := a.Merges.OfIssue(c, c.actor, p.Project, p.Issue, true, p.paging())
	if err != nil {
		return page[mergeRequestJSON]{}, err
	}
	return a.mergePage(c, p.pageParams, list, false)
}

type commitRequestsParams struct {
	projectParams
	SHA   string `param:"sha" doc:"Branch, tag or commit."`
	State string `param:"state" enum:"opened,closed,locked,merged,all" doc:"No effect."`
	pageParams
}

// listCommitRequests: https://docs.gitlab.com/api/commits/#list-merge-requests-associated-with-a-commit
func (a *API) listCommitRequests(c *call, p commitRequestsParams) (page[mergeRequestJSON], error) {
	list, err := a.Merges.OfCommit(c, c.actor, p.Project, p.SHA, p.paging())
	if err != nil {
		return page[mergeRequestJSON]{}, err
	}
	return a.mergePage(c, p.pageParams, list, false)
}
