package api

import (
	"svc/internal/project"
	"svc/internal/repo/pushrule"
)

func (a *API) pushRuleRoutes() {
	a.tag("Push rules")
	handle(a, "GET /projects/{id}/push_rule", readAPI, a.getPushRule, tier(Premium), summary("Get project push rules"))
	handle(a, "POST /projects/{id}/push_rule", writeAPI, a.createPushRule, tier(Premium), summary("Add a push rule to a project"))
	handle(a, "PUT /projects/{id}/push_rule", writeAPI, a.changePushRule, tier(Premium), summary("Update a project push rule"))
	handle(a, "DELETE /projects/{id}/push_rule", writeAPI, a.deletePushRule, tier(Premium), summary("Delete a project push rule"))
}

type pushRuleJSON struct {
	ID        int64 `json:"id"`
	ProjectID int64 `json:"project_id"`
	CreatedAt stamp `json:"created_at"`
	pushRuleFieldsJSON
}

// pushRuleFieldsJSON are the conditions of a push rule of a project or group.
type pushRuleFieldsJSON struct {
	CommitMessage         string `json:"commit_message_regex"`
	CommitMessageNegative string `json:"commit_message_negative_regex"`
	BranchName            string `json:"branch_name_regex"`
	DenyDeleteTag         bool   `json:"deny_delete_tag"`
	MemberCheck           bool   `json:"member_check"`
	PreventSecrets        bool   `json:"prevent_secrets"`
	AuthorEmail           string `json:"author_email_regex"`
	FileName              string `json:"file_name_regex"`
	MaxFileSize           int64  `json:"max_file_size"`
	CommitterCheck        bool   `json:"commit_committer_check"`
	CommitterNameCheck    bool   `json:"commit_committer_name_check"`
	RejectUnsigned        bool   `json:"reject_unsigned_commits"`
	RejectNonDCO          bool   `json:"reject_non_dco_commits"`
}

func toPushRuleFields(r pushrule.Rules) pushRuleFieldsJSON {
	return pushRuleFieldsJSON{
		CommitMessage: r.CommitMessage, CommitMessageNegative: r.CommitMessageNegative, BranchName: r.BranchName,
		DenyDeleteTag: r.DenyDeleteTag, MemberCheck: r.MemberCheck, PreventSecrets: r.PreventSecrets,
		AuthorEmail: r.AuthorEmail, FileName: r.FileName, MaxFileSize: r.MaxFileSize, CommitterCheck: r.CommitterCheck,
		CommitterNameCheck: r.CommitterNameCheck, RejectUnsigned: r.RejectUnsigned, RejectNonDCO: r.RejectNonDCO,
	}
}

func presentPushRule(r *pushrule.Rule, err error) (pushRuleJSON, error) {
	if err != nil {
		return pushRuleJSON{}, err
	}
	return pushRuleJSON{r.ID, r.OwnerID, toStamp(r.CreatedAt), toPushRuleFields(r.Rules)}, nil
}

type pushRuleParams struct {
	projectParams
	pushRuleFieldParams
}

type pushRuleFieldParams struct {
	CommitMessage         *string `param:"commit_message_regex" doc:"RE2 regular expression that commit messages must match."`
	CommitMessageNegative *string `param:"commit_message_negative_regex" doc:"RE2 regular expression that commit messages must not match."`
	BranchName            *string `param:"branch_name_regex" doc:"RE2 regular expression that names of new branches must match."`
	AuthorEmail           *string `param:"author_email_regex" doc:"RE2 regular expression that commit author and committer emails must match."`
	FileName              *string `param:"file_name_regex" doc:"RE2 regular expression that names of new files must not match."`
	MaxFileSize           *int64  `param:"max_file_size" doc:"Maximum file size in MiB; 0 means no limit."`
	DenyDeleteTag         *bool   `param:"deny_delete_tag"`
	MemberCheck           *bool   `param:"member_check" doc:"Restrict commits to existing users."`
	PreventSecrets        *bool   `param:"prevent_secrets" doc:"Reject files that are likely to contain secrets."`
	CommitterCheck        *bool   `param:"commit_committer_check" doc:"Committer email must be a verified email of the user who pushes."`
	CommitterNameCheck    *bool   `param:"commit_committer_name_check" doc:"Author name must match the name of the user who pushes."`
	RejectUnsigned        *bool   `param:"reject_unsigned_commits" doc:"Reject unsigned commits."`
	RejectNonDCO          *bool   `param:"reject_non_dco_commits" doc:"Reject commits without a DCO sign-off."`
}

func (p *pushRuleFieldParams) change() pushrule.Change {
	return pushrule.Change{
		CommitMessage: p.CommitMessage, CommitMessageNegative: p.CommitMessageNegative, BranchName: p.BranchName, AuthorEmail: p.AuthorEmail,
		FileName: p.FileName, MaxFileSize: p.MaxFileSize, DenyDeleteTag: p.DenyDeleteTag, MemberCheck: p.MemberCheck,
		PreventSecrets: p.PreventSecrets, CommitterCheck: p.CommitterCheck, CommitterNameCheck: p.CommitterNameCheck,
		RejectUnsigned: p.RejectUnsigned, RejectNonDCO: p.RejectNonDCO,
	}
}

// getPushRule: https://docs.gitlab.com/api/project_push_rules/#get-project-push-rules
// The response is null if the project has no push rule.
func (a *API) getPushRule(c *call, p projectParams) (*pushRuleJSON, error) {
	rule, err := a.PushRules.Rule(c, c.actor, project.Place{Ref: p.Project})
	if rule == nil || err != nil {
		return nil, err
	}
	shown, err := presentPushRule(rule, nil)
	return &shown, err
}

// createPushRule: https://docs.gitlab.com/api/project_push_rules/#add-a-project-push-rule
func (a *API) createPushRule(c *call, p pushRuleParams) (pushRuleJSON, error) {
	return presentPushRule(a.PushRules.CreateRule(c, c.actor, project.Place{Ref: p.Project}, p.change()))
}

// changePushRule: https://docs.gitlab.com/api/project_push_rules/#edit-project-push-rule
func (a *API) changePushRule(c *call, p pushRuleParams) (pushRuleJSON, error) {
	return presentPushRule(a.PushRules.ChangeRule(c, c.actor, project.Place{Ref: p.Project}, p.change()))
}

// deletePushRule: https://docs.gitlab.com/api/project_push_rules/#delete-project-push-rule
func (a *API) deletePushRule(c *call, p projectParams) (none, error) {
	return none{}, a.PushRules.DeleteRule(c, c.actor, project.Place{Ref: p.Project})
}
