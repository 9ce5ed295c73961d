package api

func (a *API) metadataRoutes() {
	a.tag("Metadata")
	handle(a, "GET /version", access{scopes: readUser.scopes}, a.getVersion, summary("Get version information"))
	handle(a, "GET /metadata", access{scopes: readUser.scopes}, a.getMetadata, summary("Get instance metadata"))
}

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
}

// getVersion: https://docs.gitlab.com/api/version/
func (a *API) getVersion(_ *call, _ struct{}) (versionJSON, error) {
	return versionJSON{a.Site.Version, a.Site.Revision}, nil
}

type metadataJSON struct {
	Version    string  `json:"version"`
	Revision   string  `json:"revision"`
	KAS        kasJSON `json:"kas"`
	Enterprise bool    `json:"enterprise"`
}

// kasJSON describes the agent server, which does not exist.
type kasJSON struct {
	Enabled             bool    `json:"enabled"`
	ExternalURL         *string `json:"externalUrl"`
	ExternalK8sProxyURL *string `json:"externalK8sProxyUrl"`
	Version             *string `json:"version"`
}

// getMetadata: https://docs.gitlab.com/api/metadata/
func (a *API) getMetadata(_ *call, _ struct{}) (metadataJSON, error) {
	return metadataJSON{Version: a.Site.Version, Revision: a.Site.Revision, Enterprise: a.Site.Tier > Free}, nil
}
