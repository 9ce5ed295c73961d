package api

// specified is an endpoint of the specification. Its path is relative to the API
// unless root is set.
type specified struct {
	area   string
	method string
	path   string
	root   bool
	page   bool // a page of the web interface
}

const (
	areaJobs          = "Jobs"
	areaRepository    = "Repository"
	areaUsers         = "Users"
	areaVariables     = "Instance CI/CD variables"
	areaAlerts        = "Alert intake"
	areaPages         = "Pages domains"
	areaTransfer      = "Group export and import"
	areaMoves         = "Repository storage moves"
	areaNotifications = "Notification settings"
	areaEvents        = "Events"
	areaErrors        = "Error tracking"
	areaAudit         = "Audit events"
	areaOAuth         = "OAuth 2.0 provider"
)

var specification = []specified{
	{area: areaJobs, method: "GET", path: "/projects/{id}/jobs"},
	{area: areaJobs, method: "GET", path: "/projects/{id}/pipelines/{pipeline_id}/jobs"},
	{area: areaJobs, method: "GET", path: "/projects/{id}/pipelines/{pipeline_id}/bridges"},
	{area: areaJobs, method: "GET", path: "/job"},
	{area: areaJobs, method: "GET", path: "/job/allowed_agents"},
	{area: areaJobs, method: "GET", path: "/projects/{id}/jobs/{job_id}"},
	{area: areaJobs, method: "GET", path: "/projects/{id}/jobs/{job_id}/trace"},
	{area: areaJobs, method: "POST", path: "/projects/{id}/jobs/{job_id}/cancel"},
	{area: areaJobs, method: "POST", path: "/projects/{id}/jobs/{job_id}/retry"},
	{area: areaJobs, method: "POST", path: "/projects/{id}/jobs/{job_id}/erase"},

	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/tree"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/blobs/{sha}"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/blobs/{sha}/raw"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/archive"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/archive.{format}"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/compare"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/contributors"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/merge_base"},
	{area: areaRepository, method: "POST", path: "/projects/{id}/repository/changelog"},
	{area: areaRepository, method: "GET", path: "/projects/{id}/repository/changelog"},

	{area: areaUsers, method: "GET", path: "/users"},
	{area: areaUsers, method: "GET", path: "/users/{id}"},
	{area: areaUsers, method: "POST", path: "/users"},
	{area: areaUsers, method: "PUT", path: "/users/{id}"},
	{area: areaUsers, method: "DELETE", path: "/users/{id}/identities/{provider}"},
	{area: areaUsers, method: "DELETE", path: "/users/{id}"},
	{area: areaUsers, method: "GET", path: "/user"},
	{area: areaUsers, method: "POST", path: "/users/{user_id}/personal_access_tokens"},
	{area: areaUsers, method: "POST", path: "/user/personal_access_tokens"},
	{area: areaUsers, method: "GET", path: "/user/activities"},
	{area: areaUsers, method: "GET", path: "/users/{id}/memberships"},
	{area: areaUsers, method: "PATCH", path: "/users/{id}/disable_two_factor"},
	{area: areaUsers, method: "POST", path: "/user/runners"},

	{area: areaVariables, method: "GET", path: "/admin/ci/variables"},
	{area: areaVariables, method: "GET", path: "/admin/ci/variables/{key}"},
	{area: areaVariables, method: "POST", path: "/admin/ci/variables"},
	{area: areaVariables, method: "PUT", path: "/admin/ci/variables/{key}"},
	{area: areaVariables, method: "DELETE", path: "/admin/ci/variables/{key}"},

	{area: areaAlerts, method: "POST", path: "/{namespace}/{project}/alerts/notify.json", root: true, page: true},
	{area: areaAlerts, method: "POST", path: "/{namespace}/{project}/alerts/notify/{name}/{id}.json", root: true, page: true},
	{area: areaAlerts, method: "POST", path: "/{namespace}/{project}/prometheus/alerts/notify.json", root: true, page: true},

	{area: areaPages, method: "GET", path: "/pages/domains"},
	{area: areaPages, method: "GET", path: "/projects/{id}/pages/domains"},
	{area: areaPages, method: "GET", path: "/projects/{id}/pages/domains/{domain}"},
	{area: areaPages, method: "POST", path: "/projects/{id}/pages/domains"},
	{area: areaPages, method: "PUT", path: "/projects/{id}/pages/domains/{domain}"},
	{area: areaPages, method: "DELETE", path: "/projects/{id}/pages/domains/{domain}"},

	{area: areaTransfer, method: "POST", path: "/groups/{id}/export"},
	{area: areaTransfer, method: "GET", path: "/groups/{id}/export/download"},
	{area: areaTransfer, method: "POST", path: "/groups/import"},

	{area: areaMoves, method: "POST", path: "/project_repository_storage_moves"},
	{area: areaMoves, method: "POST", path: "/snippet_repository_storage_moves"},
	{area: areaMoves, method: "POST", path: "/group_repository_storage_moves"},
	{area: areaMoves, method: "POST", path: "/projects/{project_id}/repository_storage_moves"},

	{area: areaNotifications, method: "GET", path: "/notification_settings"},
	{area: areaNotifications, method: "PUT", path: "/notification_settings"},
	{area: areaNotifications, method: "GET", path: "/groups/{id}/notification_settings"},
	{area: areaNotifications, method: "GET", path: "/projects/{id}/notification_settings"},
	{area: areaNotifications, method: "PUT", path: "/groups/{id}/notification_settings"},
	{area: areaNotifications, method: "PUT", path: "/projects/{id}/notification_settings"},

	{area: areaEvents, method: "GET", path: "/events"},
	{area: areaEvents, method: "GET", path: "/users/{id}/events"},
	{area: areaEvents, method: "GET", path: "/projects/{project_id}/events"},

	{area: areaErrors, method: "GET", path: "/projects/{id}/error_tracking/settings"},
	{area: areaErrors, method: "PUT", path: "/projects/{id}/error_tracking/settings"},
	{area: areaErrors, method: "PATCH", path: "/projects/{id}/error_tracking/settings"},
	{area: areaErrors, method: "GET", path: "/projects/{id}/error_tracking/client_keys"},
	{area: areaErrors, method: "POST", path: "/projects/{id}/error_tracking/client_keys"},
	{area: areaErrors, method: "DELETE", path: "/projects/{id}/error_tracking/client_keys/{key_id}"},

	{area: areaAudit, method: "GET", path: "/audit_events"},
	{area: areaAudit, method: "GET", path: "/audit_events/{id}"},
	{area: areaAudit, method: "GET", path: "/groups/{id}/audit_events"},
	{area: areaAudit, method: "GET", path: "/groups/{id}/audit_events/{audit_event_id}"},
	{area: areaAudit, method: "GET", path: "/projects/{id}/audit_events"},
	{area: areaAudit, method: "GET", path: "/projects/{id}/audit_events/{audit_event_id}"},

	{area: areaOAuth, method: "GET", path: "/oauth/authorize", root: true, page: true},
	{area: areaOAuth, method: "POST", path: "/oauth/token", root: true},
	{area: areaOAuth, method: "POST", path: "/oauth/revoke", root: true},
	{area: areaOAuth, method: "GET", path: "/oauth/token/info", root: true},
	{area: areaOAuth, method: "GET", path: "/oauth/userinfo", root: true},
}
