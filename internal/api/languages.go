package api

import (
	"svc/internal/git"
	"svc/internal/openapi"
)

func (a *API) languageRoutes() {
	a.tag("Projects")
	handle(a, "GET /projects/{id}/languages", readAPI.orAnonymous(), a.getLanguages, summary("List programming languages used"))
}

// getLanguages: https://docs.gitlab.com/api/projects/#list-programming-languages-used
func (a *API) getLanguages(c *call, p projectParams) (languagesJSON, error) {
	list, err := a.Repos.Languages(c, c.actor, p.Project)
	return languagesJSON(list), err
}

// languagesJSON is an object with a member for each language, in descending order of
// its share.
type languagesJSON []git.Language

// MarshalJSON encodes the languages in their order.
func (l languagesJSON) MarshalJSON() ([]byte, error) {
	var list openapi.Object
	for _, one := range l {
		list = append(list, openapi.Field(one.Name, one.Share))
	}
	return list.MarshalJSON()
}

// DescribeSchema describes an object with a number for each language.
func (languagesJSON) DescribeSchema(*openapi.Schemas) *openapi.Schema {
	return &openapi.Schema{
		Description: "Percentage of each language.", Type: openapi.Types{"object"},
		AdditionalProperties: &openapi.Schema{Type: openapi.Types{"number"}},
	}
}
