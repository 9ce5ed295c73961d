package api

import "encoding/json"

func (a *API) catalogRoutes() {
	a.tag("Catalog")
	handle(a, "POST /projects/{id}/catalog/publish", writeAPI.orJob(), a.publishCatalog, status(200), summary("Publish a CI/CD Catalog project"))
}

type publishCatalogParams struct {
	projectParams
	Version  string          `param:"version,required" doc:"Version to publish: the tag of a release, a semantic version."`
	Metadata json.RawMessage `param:"metadata" doc:"Ignored: components are read from the repository."`
}

type publishCatalogJSON struct {
	URL string `json:"catalog_url"`
}

// publishCatalog: https://docs.gitlab.com/api/projects_catalog/
func (a *API) publishCatalog(c *call, p publishCatalogParams) (publishCatalogJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return publishCatalogJSON{}, err
	}
	in, v, err := a.Catalog.Publish(c, by, p.Project, p.Version)
	if err != nil {
		return publishCatalogJSON{}, err
	}
	return publishCatalogJSON{c.site.URL + "/explore/catalog/" + in.FullPath + "?version=" + v.Name}, nil
}
