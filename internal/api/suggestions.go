package api

import (
	"svc/internal/plan/diffnote"
)

func (a *API) suggestionRoutes() {
	a.tag("Suggestions")
	handle(a, "PUT /suggestions/{id}/apply", writeAPI, a.applySuggestion, summary("Apply a suggestion"))
	handle(a, "PUT /suggestions/batch_apply", writeAPI, a.applySuggestions, summary("Apply multiple suggestions"))
}

// suggestionJSON is a suggestion. It has both appliable and applicable, because the
// public documentation of suggestions and that of notes differ.
type suggestionJSON struct {
	ID          int64  `json:"id"`
	FromLine    int64  `json:"from_line"`
	ToLine      int64  `json:"to_line"`
	Appliable   bool   `json:"appliable"`
	Applicable  bool   `json:"applicable"`
	Applied     bool   `json:"applied"`
	FromContent string `json:"from_content"`
	ToContent   string `json:"to_content"`
}

func toSuggestion(s *diffnote.Suggestion) suggestionJSON {
	return suggestionJSON{s.ID, s.FromLine, s.ToLine, s.Appliable, s.Appliable, s.Applied(), s.FromContent, s.ToContent}
}

type applySuggestionParams struct {
	Suggestion int64  `param:"id"`
	Message    string `param:"commit_message" doc:"Commit message instead of that of the project."`
}

// applySuggestion: https://docs.gitlab.com/api/suggestions/#apply-a-suggestion
func (a *API) applySuggestion(c *call, p applySuggestionParams) (suggestionJSON, error) {
	list, err := a.Merges.ApplySuggestions(c, c.actor, []int64{p.Suggestion}, p.Message)
	if err != nil {
		return suggestionJSON{}, err
	}
	return toSuggestion(list[0]), nil
}

type applySuggestionsParams struct {
	Suggestions []int64 `param:"ids,required,csv" doc:"IDs of suggestions of one merge request."`
	Message     string  `param:"commit_message" doc:"Commit message instead of that of the project."`
}

// applySuggestions: https://docs.gitlab.com/api/suggestions/#apply-multiple-suggestions
func (a *API) applySuggestions(c *call, p applySuggestionsParams) ([]suggestionJSON, error) {
	list, err := a.Merges.ApplySuggestions(c, c.actor, p.Suggestions, p.Message)
	if err != nil {
		return nil, err
	}
	return mapped(list, toSuggestion), nil
}
