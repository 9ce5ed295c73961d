package api

import (
	"net/http"

	"svc/internal/bind"
	"svc/internal/ci/runners"
)

func (a *API) runnerCallRoutes() {
	a.tag("Runners")
	gone := response(http.StatusGone, "Registration tokens are not allowed.", messageJSON{})
	handle(a, "POST /runners", runnerCall, a.registerRunner, gone, summary("Register a runner"))
	handle(a, "POST /runners/verify", runnerCall, a.verifyRunner, status(http.StatusOK), summary("Verify authentication of a registered runner"))
	handle(a, "DELETE /runners", runnerCall, a.unregisterRunner, summary("Delete a runner by authentication token"))
	handle(a, "DELETE /runners/managers", runnerCall, a.unregisterManager, summary("Delete a runner manager"))
	handle(a, "POST /runners/reset_authentication_token", runnerCall, a.resetOwnRunnerToken, summary("Reset the authentication token of a runner by using the current token"))
	handle(a, "GET /runners/router/discovery", runnerCall, a.discoverRouter,
		response(http.StatusNotImplemented, "There is no job router.", messageJSON{}), summary("Discover the job router"))
}

// contactParams describe a runner.
type contactParams struct {
	Token    string           `param:"token" secret:"true"`
	SystemID string           `param:"system_id" doc:"System ID of the runner manager."`
	Info     *runnerInfoParam `param:"info"`
}

type runnerInfoParam struct {
	Name         string            `param:"name"`
	Version      string            `param:"version"`
	Revision     string            `param:"revision"`
	Platform     string            `param:"platform"`
	Architecture string            `param:"architecture"`
	Executor     string            `param:"executor"`
	Shell        string            `param:"shell"`
	Features     map[string]string `param:"features"`
}

// contact returns the description of the runner. The token may be in a header.
func (p *contactParams) contact(c *call) runners.Contact {
	out := runners.Contact{Token: runnerToken(c, p.Token), SystemID: p.SystemID, IP: c.actor.IP}
	if p.Info == nil {
		return out
	}
	i := p.Info
	out.Info = &runners.Info{
		Name: i.Name, Version: i.Version, Revision: i.Revision, Platform: i.Platform, Architecture: i.Architecture, Executor: i.Executor, Shell: i.Shell,
	}
	if i.Features != nil {
		out.Info.Features = map[string]bool{}
	}
	for name, value := range i.Features {
		if value == "true" || value == "1" {
			out.Info.Features[name] = true
		}
	}
	return out
}

func runnerToken(c *call, sent string) string {
	if sent != "" {
		return sent
	}
	return c.r.Header.Get("Runner-Token")
}

type registerRunnerParams struct {
	contactParams
	runnerFieldParams
	MaintainerNote *string `param:"maintainer_note" doc:"Deprecated: use maintenance_note."`
}

// registerRunner: https://docs.gitlab.com/api/runners/#create-a-runner
func (a *API) registerRunner(c *call, p registerRunnerParams) (runnerTokenJSON, error) {
	if p.Token == "" && c.r.Header.Get("Runner-Token") == "" {
		return runnerTokenJSON{}, bind.Invalid("token is missing")
	}
	change := p.change()
	if change.MaintenanceNote == nil {
		change.MaintenanceNote = p.MaintainerNote
	}
	return presentRunnerToken(a.CI.Runners.Register(c, runners.Registration{Contact: p.contact(c), Change: change}))
}

// verifyRunner: https://docs.gitlab.com/api/runners/#verify-authentication-for-a-registered-runner
func (a *API) verifyRunner(c *call, p contactParams) (runnerTokenJSON, error) {
	return presentRunnerToken(a.CI.Runners.Verify(c, p.contact(c)))
}

type heldTokenParams struct {
	Token string `param:"token" secret:"true"`
}

// unregisterRunner: https://docs.gitlab.com/api/runners/#delete-a-runner-by-authentication-token
func (a *API) unregisterRunner(c *call, p heldTokenParams) (none, error) {
	return none{}, a.CI.Runners.Unregister(c, runnerToken(c, p.Token), c.actor.IP)
}

type unregisterManagerParams struct {
	heldTokenParams
	SystemID string `param:"system_id,required"`
}

// unregisterManager deletes a runner manager, as requested by the public runner.
func (a *API) unregisterManager(c *call, p unregisterManagerParams) (none, error) {
	return none{}, a.CI.Runners.UnregisterManager(c, runnerToken(c, p.Token), p.SystemID)
}

// resetOwnRunnerToken: https://docs.gitlab.com/api/runners/#reset-runners-authentication-token-by-using-the-current-token
func (a *API) resetOwnRunnerToken(c *call, p heldTokenParams) (resetTokenJSON, error) {
	r, err := a.CI.Runners.ResetOwnToken(c, runnerToken(c, p.Token), c.actor.IP)
	if err != nil {
		return resetTokenJSON{}, err
	}
	return resetTokenJSON{r.Secret, toStampOrNull(r.TokenExpiresAt)}, nil
}

// discoverRouter responds that there is no job router.
func (a *API) discoverRouter(c *call, _ struct{}) (streamed, error) {
	a.writeJSON(c.w, c.r, http.StatusNotImplemented, messageJSON{"501 Not Implemented"})
	return streamed{}, nil
}
