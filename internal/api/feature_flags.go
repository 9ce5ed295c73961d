package api

import (
	"encoding/json"
	"net/http"

	"svc/internal/bind"
	"svc/internal/featureflag"
)

func (a *API) featureFlagRoutes() {
	a.tag("Feature flags")
	const all = "/projects/{id}/feature_flags"
	const one = all + "/{feature_flag_name}"
	handle(a, "GET "+all, readAPI, a.listFeatureFlags, summary("List feature flags for a project"))
	handle(a, "POST "+all, writeAPI, a.createFeatureFlag, summary("Create a feature flag"))
	handle(a, "GET "+one, readAPI, a.getFeatureFlag, summary("Get a single feature flag"))
	handle(a, "PUT "+one, writeAPI, a.updateFeatureFlag, summary("Update a feature flag"))
	handle(a, "DELETE "+one, writeAPI, a.deleteFeatureFlag, summary("Delete a feature flag"))

	a.tag("Feature flag user lists")
	const lists = "/projects/{id}/feature_flags_user_lists"
	handle(a, "GET "+lists, readAPI, a.listFlagUserLists, summary("List all feature flag user lists for a project"))
	handle(a, "POST "+lists, writeAPI, a.createFlagUserList, summary("Create a feature flag user list"))
	handle(a, "GET "+lists+"/{iid}", readAPI, a.getFlagUserList, summary("Get a feature flag user list"))
	handle(a, "PUT "+lists+"/{iid}", writeAPI, a.updateFlagUserList, summary("Update a feature flag user list"))
	handle(a, "DELETE "+lists+"/{iid}", writeAPI, a.deleteFlagUserList, summary("Delete feature flag user list"))

	// Unleash clients derive these URLs from the API URL of a project.
	a.tag("Unleash")
	const unleash = "/feature_flags/unleash/{project_id}"
	handle(a, "GET "+unleash, sdkCall, a.pingUnleash, status(http.StatusOK), summary("Check the credential of an Unleash client"))
	handle(a, "GET "+unleash+"/features", sdkCall, a.serveFeatures, returns(unleashJSON{}), summary("List feature flags for an Unleash client (deprecated)"))
	handle(a, "GET "+unleash+"/client/features", sdkCall, a.serveFeatures, returns(unleashJSON{}), summary("List feature flags for an Unleash client"))
	handle(a, "POST "+unleash+"/client/register", sdkCall, a.pingUnleash, raw, status(http.StatusOK), summary("Register an Unleash client"))
	handle(a, "POST "+unleash+"/client/metrics", sdkCall, a.pingUnleash, raw, status(http.StatusOK), summary("Send metrics of an Unleash client"))
}

type featureFlagJSON struct {
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Active      bool               `json:"active"`
	Version     string             `json:"version"`
	CreatedAt   stamp              `json:"created_at"`
	UpdatedAt   stamp              `json:"updated_at"`
	Scopes      []flagScopeJSON    `json:"scopes" doc:"Always empty: strategies have scopes."`
	Strategies  []flagStrategyJSON `json:"strategies"`
}

type flagScopeJSON struct {
	ID          int64  `json:"id"`
	Environment string `json:"environment_scope"`
}

type flagStrategyJSON struct {
	ID         int64             `json:"id"`
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters"`
	Scopes     []flagScopeJSON   `json:"scopes"`
	UserList   *flagListRefJSON  `json:"user_list"`
}

type flagListRefJSON struct {
	ID      int64  `json:"id"`
	IID     int64  `json:"iid"`
	Name    string `json:"name"`
	UserIDs string `json:"user_xids"`
}

func toFeatureFlag(f *featureflag.Flag) featureFlagJSON {
	return featureFlagJSON{
		Name: f.Name, Description: f.Description, Active: f.Active, Version: "new_version_flag",
		CreatedAt: toStamp(f.CreatedAt), UpdatedAt: toStamp(f.UpdatedAt), Scopes: []flagScopeJSON{}, Strategies: mapped(f.Strategies, toFlagStrategy),
	}
}

func toFlagStrategy(s *featureflag.Strategy) flagStrategyJSON {
	j := flagStrategyJSON{ID: s.ID, Name: s.Name, Parameters: s.Parameters, Scopes: mapped(s.Scopes, func(sc *featureflag.Scope) flagScopeJSON {
		return flagScopeJSON{sc.ID, sc.Environment}
	})}
	if l := s.UserList; l != nil {
		j.UserList = &flagListRefJSON{l.ID, l.IID, l.Name, l.UserIDs}
	}
	return j
}

type listFeatureFlagsParams struct {
	projectParams
	pageParams
	Scope string `param:"scope" enum:"enabled,disabled" doc:"Only flags with this status."`
}

// listFeatureFlags: https://docs.gitlab.com/api/feature_flags/#list-feature-flags-for-a-project
func (a *API) listFeatureFlags(c *call, p listFeatureFlagsParams) (page[featureFlagJSON], error) {
	return offsetList(p.pageParams, toFeatureFlag)(a.Flags.Flags(c, c.actor, p.Project, featureflag.Status(p.Scope), p.paging()))
}

type featureFlagParams struct {
	projectParams
	Name string `param:"feature_flag_name" doc:"Name of the flag."`
}

// getFeatureFlag: https://docs.gitlab.com/api/feature_flags/#get-a-single-feature-flag
func (a *API) getFeatureFlag(c *call, p featureFlagParams) (featureFlagJSON, error) {
	return presentAs(toFeatureFlag)(a.Flags.Flag(c, c.actor, p.Project, p.Name))
}

type flagStrategyParams struct {
	ID         *int64            `param:"id" doc:"ID of the strategy to change. Without it, a strategy is added."`
	Name       *string           `param:"name" doc:"Name of the strategy: default, gradualRolloutUserId, flexibleRollout, userWithId or gitlabUserList."`
	Parameters json.RawMessage   `param:"parameters" doc:"Parameters of the strategy."`
	UserListID *int64            `param:"user_list_id" doc:"ID of the user list of the strategy gitlabUserList."`
	Destroy    bool              `param:"_destroy" doc:"Delete the strategy."`
	Scopes     []flagScopeParams `param:"scopes" doc:"Environments of the strategy."`
}

type flagScopeParams struct {
	ID          *int64  `param:"id" doc:"ID of the scope to change. Without it, a scope is added."`
	Environment *string `param:"environment_scope" doc:"Name or pattern of environments."`
	Destroy     bool    `param:"_destroy" doc:"Delete the scope."`
}

func flagStrategies(list []flagStrategyParams) []featureflag.StrategyChange {
	var changes []featureflag.StrategyChange
	for _, s := range list {
		one := featureflag.StrategyChange{ID: s.ID, Name: s.Name, Parameters: s.Parameters, UserListID: s.UserListID, Remove: s.Destroy}
		for _, sc := range s.Scopes {
			one.Scopes = append(one.Scopes, featureflag.ScopeChange{ID: sc.ID, Environment: sc.Environment, Remove: sc.Destroy})
		}
		changes = append(changes, one)
	}
	return changes
}

type createFeatureFlagParams struct {
	projectParams
	Name        string               `param:"name,required" doc:"Name of the flag."`
	Version     string               `param:"version" default:"new_version_flag" enum:"new_version_flag" doc:"Version of the flag."`
	Description *string              `param:"description"`
	Active      *bool                `param:"active" doc:"Whether the flag is active. Default: true."`
	Strategies  []flagStrategyParams `param:"strategies" doc:"Strategies of the flag."`
	Scopes      json.RawMessage      `param:"scopes" doc:"Not supported: legacy flags cannot be created."`
}

func (p *createFeatureFlagParams) check() error {
	if p.Scopes != nil {
		return bind.Invalid("scopes is not supported: strategies have scopes")
	}
	return nil
}

// createFeatureFlag: https://docs.gitlab.com/api/feature_flags/#create-a-feature-flag
func (a *API) createFeatureFlag(c *call, p createFeatureFlagParams) (featureFlagJSON, error) {
	strategies := flagStrategies(p.Strategies)
	for i := range strategies {
		strategies[i].ID = nil
	}
	return presentAs(toFeatureFlag)(a.Flags.Create(c, c.actor, p.Project, featureflag.Change{
		Name: &p.Name, Description: p.Description, Active: p.Active, Strategies: strategies,
	}))
}

type updateFeatureFlagParams struct {
	featureFlagParams
	NewName     *string              `param:"name" doc:"New name of the flag."`
	Description *string              `param:"description"`
	Active      *bool                `param:"active" doc:"Whether the flag is active."`
	Strategies  []flagStrategyParams `param:"strategies" doc:"Strategies to add, change or delete."`
}

// updateFeatureFlag: https://docs.gitlab.com/api/feature_flags/#update-a-feature-flag
func (a *API) updateFeatureFlag(c *call, p updateFeatureFlagParams) (featureFlagJSON, error) {
	return presentAs(toFeatureFlag)(a.Flags.Update(c, c.actor, p.Project, p.Name, featureflag.Change{
		Name: p.NewName, Description: p.Description, Active: p.Active, Strategies: flagStrategies(p.Strategies),
	}))
}

// deleteFeatureFlag: https://docs.gitlab.com/api/feature_flags/#delete-a-feature-flag
func (a *API) deleteFeatureFlag(c *call, p featureFlagParams) (featureFlagJSON, error) {
	return presentAs(toFeatureFlag)(a.Flags.Delete(c, c.actor, p.Project, p.Name))
}

type flagUserListJSON struct {
	Name      string `json:"name"`
	UserIDs   string `json:"user_xids"`
	ID        int64  `json:"id"`
	IID       int64  `json:"iid"`
	ProjectID int64  `json:"project_id"`
	CreatedAt stamp  `json:"created_at"`
	UpdatedAt stamp  `json:"updated_at"`
}

func toFlagUserList(l *featureflag.UserList) flagUserListJSON {
	return flagUserListJSON{Name: l.Name, UserIDs: l.UserIDs, ID: l.ID, IID: l.IID, ProjectID: l.ProjectID, CreatedAt: toStamp(l.CreatedAt), UpdatedAt: toStamp(l.UpdatedAt)}
}

type listFlagUserListsParams struct {
	projectParams
	pageParams
	Search string `param:"search" max:"1024" doc:"Text in the name."`
}

// listFlagUserLists: https://docs.gitlab.com/api/feature_flag_user_lists/#list-all-feature-flag-user-lists-for-a-project
func (a *API) listFlagUserLists(c *call, p listFlagUserListsParams) (page[flagUserListJSON], error) {
	return offsetList(p.pageParams, toFlagUserList)(a.Flags.UserLists(c, c.actor, p.Project, p.Search, p.paging()))
}

type createFlagUserListParams struct {
	projectParams
	Name    string `param:"name,required" doc:"Name of the list."`
	UserIDs string `param:"user_xids,required" doc:"External user IDs, separated by commas."`
}

// createFlagUserList: https://docs.gitlab.com/api/feature_flag_user_lists/#create-a-feature-flag-user-list
func (a *API) createFlagUserList(c *call, p createFlagUserListParams) (flagUserListJSON, error) {
	return presentAs(toFlagUserList)(a.Flags.CreateUserList(c, c.actor, p.Project, featureflag.UserListChange{Name: &p.Name, UserIDs: &p.UserIDs}))
}

type flagUserListParams struct {
	projectParams
	IID int64 `param:"iid" doc:"Number of the list in its project."`
}

// getFlagUserList: https://docs.gitlab.com/api/feature_flag_user_lists/#get-a-feature-flag-user-list
func (a *API) getFlagUserList(c *call, p flagUserListParams) (flagUserListJSON, error) {
	return presentAs(toFlagUserList)(a.Flags.UserList(c, c.actor, p.Project, p.IID))
}

type updateFlagUserListParams struct {
	flagUserListParams
	Name    *string `param:"name" doc:"Name of the list."`
	UserIDs *string `param:"user_xids" doc:"External user IDs, separated by commas."`
}

// updateFlagUserList: https://docs.gitlab.com/api/feature_flag_user_lists/#update-a-feature-flag-user-list
func (a *API) updateFlagUserList(c *call, p updateFlagUserListParams) (flagUserListJSON, error) {
	return presentAs(toFlagUserList)(a.Flags.UpdateUserList(c, c.actor, p.Project, p.IID, featureflag.UserListChange{Name: p.Name, UserIDs: p.UserIDs}))
}

// deleteFlagUserList: https://docs.gitlab.com/api/feature_flag_user_lists/#delete-feature-flag-user-list
func (a *API) deleteFlagUserList(c *call, p flagUserListParams) (none, error) {
	return none{}, a.Flags.DeleteUserList(c, c.actor, p.Project, p.IID)
}

type unleashParams struct {
	Project    int64  `param:"project_id" doc:"ID of the project."`
	InstanceID string `param:"instance_id" secret:"true" doc:"Instance ID, if it is not in the header UNLEASH-INSTANCEID."`
	AppName    string `param:"app_name" doc:"Name of the environment, if it is not in the header UNLEASH-APPNAME."`
}

// credential returns the instance ID and the environment of a client.
func (p unleashParams) credential(c *call) (instanceID, environment string) {
	instanceID, environment = p.InstanceID, p.AppName
	if header := c.r.Header.Get("Unleash-Instanceid"); header != "" {
		instanceID = header
	}
	if header := c.r.Header.Get("Unleash-Appname"); header != "" {
		environment = header
	}
	return instanceID, environment
}

type unleashJSON struct {
	Version  int           `json:"version"`
	Features []unleashFlag `json:"features"`
}

type unleashFlag struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Enabled     bool              `json:"enabled"`
	Strategies  []unleashStrategy `json:"strategies"`
}

type unleashStrategy struct {
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters"`
}

// serveFeatures: https://docs.gitlab.com/operations/feature_flags/#integrate-feature-flags-with-your-application
func (a *API) serveFeatures(c *call, p unleashParams) (any, error) {
	instanceID, environment := p.credential(c)
	body, err := a.Flags.Serve(c, p.Project, instanceID, environment)
	if err != nil {
		return nil, err
	}
	return encoded(body), nil
}

// pingUnleash checks the credential of a client. Registrations and metrics of
// clients are accepted but not stored.
func (a *API) pingUnleash(c *call, p unleashParams) (streamed, error) {
	instanceID, _ := p.credential(c)
	if _, err := a.Flags.Authorize(c, p.Project, instanceID); err != nil {
		return streamed{}, err
	}
	return plainStatus(c, http.StatusOK)
}
