package api

import "svc/internal/git"

func (a *API) languageRoutes() {
	handle(a, "GET /projects/{id}/languages", readAPI.orNobody(), a.getLanguages, does("Get the languages of a repository with their shares in percent"))
}

// getLanguages: https://docs.gitlab.com/api/projects/#list-programming-languages-used
func (a *API) getLanguages(c *call, p projectParams) (languagesJSON, error) {
	list, err := a.Repos.Languages(c, c.actor, p.Project)
	return languagesJSON(list), err
}

// languagesJSON is an object with a member for each language, the largest
// first.
type languagesJSON []git.Language

// MarshalJSON keeps the order, which a map would not.
func (l languagesJSON) MarshalJSON() ([]byte, error) {
	var list members
	for _, one := range l {
		list = append(list, member{one.Name, one.Share})
	}
	return list.MarshalJSON()
}

func (languagesJSON) describe(*schemas) *schema {
	return &schema{
		Description: "The share of each language in percent.", Type: typeNames{"object"},
		AdditionalProperties: &schema{Type: typeNames{"number"}},
	}
}
