package api

func (a *API) projectStorageRoutes() {
	a.tag("Projects")
	handle(a, "POST /projects/{id}/housekeeping", writeAPI, a.housekeepProject, summary("Start the housekeeping task of a project"))
	handle(a, "GET /projects/{id}/storage", readAPI, a.getProjectStorage, summary("Get the path to repository storage"))
}

type housekeepParams struct {
	projectParams
	Task string `param:"task" enum:"eager,prune" default:"eager" doc:"Housekeeping task. Both values run all steps."`
}

// housekeepProject: https://docs.gitlab.com/api/projects/#start-the-housekeeping-task-for-a-project
func (a *API) housekeepProject(c *call, p housekeepParams) (*struct{}, error) {
	return nil, a.Repos.Housekeep(c, c.actor, p.Project)
}

type projectStorageJSON struct {
	ProjectID int64  `json:"project_id"`
	DiskPath  string `json:"disk_path"`
	CreatedAt stamp  `json:"created_at"`
	Storage   string `json:"repository_storage"`
}

// getProjectStorage: https://docs.gitlab.com/api/projects/#retrieve-the-path-to-repository-storage
func (a *API) getProjectStorage(c *call, p projectParams) (projectStorageJSON, error) {
	found, dir, err := a.Repos.Location(c, c.actor, p.Project)
	if err != nil {
		return projectStorageJSON{}, err
	}
	return projectStorageJSON{found.ID, dir, toStamp(found.CreatedAt), found.Storage}, nil
}
