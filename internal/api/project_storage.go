package api

func (a *API) projectStorageRoutes() {
	handle(a, "POST /projects/{id}/housekeeping", writeAPI, a.housekeepProject, does("Have a repository tidied"))
	handle(a, "GET /projects/{id}/storage", readAPI, a.getProjectStorage, does("Tell where a repository lies"))
}

type housekeepParams struct {
	projectParams
	Task string `param:"task" enum:"eager,prune" default:"eager" doc:"Both tidy all that there is."`
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
