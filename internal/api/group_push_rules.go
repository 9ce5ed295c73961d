package api

import (
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo/pushrule"
)

func (a *API) groupPushRuleRoutes() {
	a.tag("Group push rules")
	handle(a, "GET /groups/{id}/push_rule", readAPI, a.getGroupPushRule, tier(Premium), summary("Get the push rules of a group"))
	handle(a, "POST /groups/{id}/push_rule", writeAPI, a.createGroupPushRule, tier(Premium), summary("Add push rules to a group"))
	handle(a, "PUT /groups/{id}/push_rule", writeAPI, a.changeGroupPushRule, tier(Premium), summary("Edit the push rules of a group"))
	handle(a, "DELETE /groups/{id}/push_rule", writeAPI, a.deleteGroupPushRule, tier(Premium), summary("Delete the push rules of a group"))
}

type groupPushRuleJSON struct {
	ID        int64 `json:"id"`
	CreatedAt stamp `json:"created_at"`
	pushRuleFieldsJSON
}

func presentGroupPushRule(r *pushrule.Rule, err error) (groupPushRuleJSON, error) {
	if err != nil {
		return groupPushRuleJSON{}, err
	}
	return groupPushRuleJSON{r.ID, toStamp(r.CreatedAt), toPushRuleFields(r.Rules)}, nil
}

type groupPushRuleParams struct {
	inGroupParams
	pushRuleFieldParams
}

// getGroupPushRule: https://docs.gitlab.com/api/group_push_rules/#get-the-push-rules-of-a-group
func (a *API) getGroupPushRule(c *call, p inGroupParams) (groupPushRuleJSON, error) {
	rule, err := a.PushRules.Rule(c, c.actor, project.Place{Ref: p.Group, Group: true})
	if rule == nil && err == nil {
		err = errs.NotFound("Push Rule")
	}
	return presentGroupPushRule(rule, err)
}

// createGroupPushRule: https://docs.gitlab.com/api/group_push_rules/#add-push-rules-to-a-group
func (a *API) createGroupPushRule(c *call, p groupPushRuleParams) (groupPushRuleJSON, error) {
	return presentGroupPushRule(a.PushRules.CreateRule(c, c.actor, project.Place{Ref: p.Group, Group: true}, p.change()))
}

// changeGroupPushRule: https://docs.gitlab.com/api/group_push_rules/#edit-the-push-rules-of-a-group
func (a *API) changeGroupPushRule(c *call, p groupPushRuleParams) (groupPushRuleJSON, error) {
	return presentGroupPushRule(a.PushRules.ChangeRule(c, c.actor, project.Place{Ref: p.Group, Group: true}, p.change()))
}

// deleteGroupPushRule: https://docs.gitlab.com/api/group_push_rules/#delete-the-push-rules-of-a-group
func (a *API) deleteGroupPushRule(c *call, p inGroupParams) (none, error) {
	return none{}, a.PushRules.DeleteRule(c, c.actor, project.Place{Ref: p.Group, Group: true})
}
