package api

import "svc/internal/ci/deployment"

func (a *API) freezePeriodRoutes() {
	a.tag("Freeze periods")
	const all, one = "/projects/{id}/freeze_periods", "/projects/{id}/freeze_periods/{freeze_period_id}"
	handle(a, "GET "+all, readAPI, a.listFreezePeriods, summary("List freeze periods"))
	handle(a, "GET "+one, readAPI, a.getFreezePeriod, summary("Get a freeze period"))
	handle(a, "POST "+all, writeAPI, a.createFreezePeriod, summary("Create a freeze period"))
	handle(a, "PUT "+one, writeAPI, a.updateFreezePeriod, summary("Update a freeze period"))
	handle(a, "DELETE "+one, writeAPI, a.deleteFreezePeriod, summary("Delete a freeze period"))
}

type freezePeriodJSON struct {
	ID        int64  `json:"id"`
	Start     string `json:"freeze_start"`
	End       string `json:"freeze_end"`
	Timezone  string `json:"cron_timezone"`
	CreatedAt stamp  `json:"created_at"`
	UpdatedAt stamp  `json:"updated_at"`
}

func toFreezePeriod(f *deployment.FreezePeriod) freezePeriodJSON {
	return freezePeriodJSON{f.ID, f.Start, f.End, f.Timezone, toStamp(f.CreatedAt), toStamp(f.UpdatedAt)}
}

type listFreezePeriodsParams struct {
	projectParams
	pageParams
}

// listFreezePeriods: https://docs.gitlab.com/api/freeze_periods/#list-freeze-periods
func (a *API) listFreezePeriods(c *call, p listFreezePeriodsParams) (page[freezePeriodJSON], error) {
	return offsetList(p.pageParams, toFreezePeriod)(a.CI.Deployments.FreezePeriods(c, c.actor, p.Project, p.paging()))
}

type freezePeriodParams struct {
	projectParams
	ID int64 `param:"freeze_period_id"`
}

// getFreezePeriod: https://docs.gitlab.com/api/freeze_periods/#get-a-freeze-period-by-a-freeze_period_id
func (a *API) getFreezePeriod(c *call, p freezePeriodParams) (freezePeriodJSON, error) {
	return presentAs(toFreezePeriod)(a.CI.Deployments.FreezePeriod(c, c.actor, p.Project, p.ID))
}

type createFreezePeriodParams struct {
	projectParams
	Start    string  `param:"freeze_start,required" doc:"Start of the freeze period in cron format."`
	End      string  `param:"freeze_end,required" doc:"End of the freeze period in cron format."`
	Timezone *string `param:"cron_timezone" doc:"Time zone of the cron fields. Default: UTC."`
}

// createFreezePeriod: https://docs.gitlab.com/api/freeze_periods/#create-a-freeze-period
func (a *API) createFreezePeriod(c *call, p createFreezePeriodParams) (freezePeriodJSON, error) {
	return presentAs(toFreezePeriod)(a.CI.Deployments.CreateFreezePeriod(c, c.actor, p.Project, deployment.FreezeChange{Start: &p.Start, End: &p.End, Timezone: p.Timezone}))
}

type updateFreezePeriodParams struct {
	freezePeriodParams
	Start    *string `param:"freeze_start" doc:"Start of the freeze period in cron format."`
	End      *string `param:"freeze_end" doc:"End of the freeze period in cron format."`
	Timezone *string `param:"cron_timezone" doc:"Time zone of the cron fields."`
}

// updateFreezePeriod: https://docs.gitlab.com/api/freeze_periods/#update-a-freeze-period
func (a *API) updateFreezePeriod(c *call, p updateFreezePeriodParams) (freezePeriodJSON, error) {
	return presentAs(toFreezePeriod)(a.CI.Deployments.UpdateFreezePeriod(c, c.actor, p.Project, p.ID, deployment.FreezeChange{Start: p.Start, End: p.End, Timezone: p.Timezone}))
}

// deleteFreezePeriod: https://docs.gitlab.com/api/freeze_periods/#delete-a-freeze-period
func (a *API) deleteFreezePeriod(c *call, p freezePeriodParams) (none, error) {
	return none{}, a.CI.Deployments.DeleteFreezePeriod(c, c.actor, p.Project, p.ID)
}
