package api

import (
	"svc/internal/bind"
	"svc/internal/setting"
)

func (a *API) planLimitRoutes() {
	a.tag("Plan limits")
	handle(a, "GET /application/plan_limits", readAPI, a.getPlanLimits, summary("Get current plan limits"))
	handle(a, "PUT /application/plan_limits", writeAPI, a.changePlanLimits, summary("Update plan limits"))
}

// megabyte is the number of bytes in the unit of the settings; plan limits are in
// bytes.
const megabyte = 1 << 20

// planLimitsJSON has application settings with the names and units of plan limits.
type planLimitsJSON struct {
	InstanceVariables int64 `json:"ci_instance_level_variables"`
	GenericBytes      int64 `json:"generic_packages_max_file_size"`
	NPMBytes          int64 `json:"npm_max_file_size"`
	PyPIBytes         int64 `json:"pypi_max_file_size"`
}

func presentPlanLimits(s setting.Settings, err error) (planLimitsJSON, error) {
	return planLimitsJSON{
		InstanceVariables: int64(s.MaxInstanceVariables), GenericBytes: int64(s.MaxGenericMegabytes) * megabyte,
		NPMBytes: int64(s.MaxNPMMegabytes) * megabyte, PyPIBytes: int64(s.MaxPyPIMegabytes) * megabyte,
	}, err
}

type planParams struct {
	Plan string `param:"plan_name" enum:"default" default:"default" doc:"Name of the plan; there is only default."`
}

// getPlanLimits: https://docs.gitlab.com/api/plan_limits/#get-current-plan-limits
func (a *API) getPlanLimits(c *call, _ planParams) (planLimitsJSON, error) {
	return presentPlanLimits(a.Settings.Get(c, c.actor))
}

type planLimitsParams struct {
	Plan              string `param:"plan_name,required" enum:"default" doc:"Name of the plan; there is only default."`
	InstanceVariables *int64 `param:"ci_instance_level_variables" doc:"Maximum instance CI/CD variables."`
	GenericBytes      *int64 `param:"generic_packages_max_file_size" doc:"Maximum size of a file of a generic package in bytes, a multiple of 1048576; 0 means no limit."`
	NPMBytes          *int64 `param:"npm_max_file_size" doc:"Maximum size of an npm package in bytes, a multiple of 1048576; 0 means no limit."`
	PyPIBytes         *int64 `param:"pypi_max_file_size" doc:"Maximum size of a file of a PyPI package in bytes, a multiple of 1048576; 0 means no limit."`
}

func (p *planLimitsParams) check() error {
	for name, value := range map[string]*int64{
		"generic_packages_max_file_size": p.GenericBytes, "npm_max_file_size": p.NPMBytes, "pypi_max_file_size": p.PyPIBytes,
	} {
		if value != nil && *value%megabyte != 0 {
			return bind.Invalid(name + " must be a multiple of 1048576")
		}
	}
	return nil
}

// changePlanLimits: https://docs.gitlab.com/api/plan_limits/#change-plan-limits
func (a *API) changePlanLimits(c *call, p planLimitsParams) (planLimitsJSON, error) {
	return presentPlanLimits(a.Settings.Update(c, c.actor, func(s *setting.Settings) {
		if p.InstanceVariables != nil {
			s.MaxInstanceVariables = int(*p.InstanceVariables)
		}
		for _, limit := range []struct {
			to    *int
			bytes *int64
		}{{&s.MaxGenericMegabytes, p.GenericBytes}, {&s.MaxNPMMegabytes, p.NPMBytes}, {&s.MaxPyPIMegabytes, p.PyPIBytes}} {
			if limit.bytes != nil {
				*limit.to = int(*limit.bytes / megabyte)
			}
		}
	}))
}
