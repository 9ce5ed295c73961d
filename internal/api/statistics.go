package api

import (
	"svc/internal/merge"
	"svc/internal/project"
)

func (a *API) statisticsRoutes() {
	a.tag("Application statistics")
	handle(a, "GET /application/statistics", readAPI, a.getStatistics, summary("Get details on current application statistics"))
	a.tag("Group activity analytics")
	const at = "/analytics/group_activity"
	handle(a, "GET "+at+"/issues_count", readAPI, a.countNewIssues, tier(Premium), summary("Get count of recently created issues for group"))
	handle(a, "GET "+at+"/merge_requests_count", readAPI, a.countNewMergeRequests, tier(Premium), summary("Get count of recently created merge requests for group"))
	handle(a, "GET "+at+"/new_members_count", readAPI, a.countNewMembers, tier(Premium), summary("Get count of members recently added to group"))
}

type statisticsJSON struct {
	Forks         int64 `json:"forks"`
	Issues        int64 `json:"issues"`
	MergeRequests int64 `json:"merge_requests"`
	Notes         int64 `json:"notes"`
	Snippets      int64 `json:"snippets"`
	SSHKeys       int64 `json:"ssh_keys"`
	Milestones    int64 `json:"milestones"`
	Users         int64 `json:"users"`
	Groups        int64 `json:"groups"`
	Projects      int64 `json:"projects"`
	ActiveUsers   int64 `json:"active_users"`
}

// getStatistics: https://docs.gitlab.com/api/statistics/
func (a *API) getStatistics(c *call, _ struct{}) (statisticsJSON, error) {
	s, err := a.Instance.Statistics(c, c.actor)
	if err != nil {
		return statisticsJSON{}, err
	}
	return statisticsJSON{s.Forks, s.Issues, s.MergeRequests, s.Notes, s.Snippets, s.SSHKeys, s.Milestones, s.Users, s.Groups, s.Projects, s.ActiveUsers}, nil
}

type groupActivityParams struct {
	Group project.Ref `param:"group_path,required" doc:"Full path of the group."`
}

type issuesCountJSON struct {
	Count int64 `json:"issues_count"`
}

// countNewIssues: https://docs.gitlab.com/api/group_activity_analytics/#get-count-of-recently-created-issues-for-group
func (a *API) countNewIssues(c *call, p groupActivityParams) (issuesCountJSON, error) {
	n, err := a.Merges.GroupActivity(c, c.actor, p.Group, merge.NewIssues)
	return issuesCountJSON{n}, err
}

type mergeRequestsCountJSON struct {
	Count int64 `json:"merge_requests_count"`
}

// countNewMergeRequests: https://docs.gitlab.com/api/group_activity_analytics/#get-count-of-recently-created-merge-requests-for-group
func (a *API) countNewMergeRequests(c *call, p groupActivityParams) (mergeRequestsCountJSON, error) {
	n, err := a.Merges.GroupActivity(c, c.actor, p.Group, merge.NewRequests)
	return mergeRequestsCountJSON{n}, err
}

type newMembersCountJSON struct {
	Count int64 `json:"new_members_count"`
}

// countNewMembers: https://docs.gitlab.com/api/group_activity_analytics/#get-count-of-members-recently-added-to-group
func (a *API) countNewMembers(c *call, p groupActivityParams) (newMembersCountJSON, error) {
	n, err := a.Merges.GroupActivity(c, c.actor, p.Group, merge.NewMembers)
	return newMembersCountJSON{n}, err
}
