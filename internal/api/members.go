package api

import (
	"strconv"
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

func (a *API) memberRoutes() {
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		a.tag("Members")
		handle(a, "GET "+in.path+"/members", readAPI, m.list, summary("List direct members of a "+in.kind))
		handle(a, "GET "+in.path+"/members/all", readAPI, m.listAll, summary("List all members of a "+in.kind+", including inherited and invited members"))
		handle(a, "GET "+in.path+"/members/{user_id}", readAPI, m.get, summary("Get a direct member of a "+in.kind))
		handle(a, "GET "+in.path+"/members/all/{user_id}", readAPI, m.getAny, summary("Get a member of a "+in.kind+", including inherited and invited members"))
		handle(a, "POST "+in.path+"/members", writeAPI, m.add, returns(memberJSON{}, addedJSON{}), summary("Add a member to a "+in.kind))
		handle(a, "PUT "+in.path+"/members/{user_id}", writeAPI, m.update, summary("Update a member of a "+in.kind))
		handle(a, "DELETE "+in.path+"/members/{user_id}", writeAPI, m.remove, summary("Remove a member from a "+in.kind))
		a.tag("Access requests")
		handle(a, "GET "+in.path+"/access_requests", readAPI, m.listRequests, summary("List access requests for a "+in.kind))
		handle(a, "POST "+in.path+"/access_requests", writeAPI, m.request, summary("Request access to a "+in.kind))
		handle(a, "PUT "+in.path+"/access_requests/{user_id}/approve", writeAPI, m.approve, status(201), summary("Approve an access request for a "+in.kind))
		handle(a, "DELETE "+in.path+"/access_requests/{user_id}", writeAPI, m.deny, summary("Deny an access request for a "+in.kind))
	}
}

// parentEndpoints serves endpoints that projects and groups share, either for
// projects or for groups.
type parentEndpoints struct {
	api   *API
	group bool
}

func (m parentEndpoints) at(ref project.Ref) project.Place {
	return project.Place{Ref: ref, Group: m.group}
}

// placeParams identify a project or a group.
type placeParams struct {
	Ref project.Ref `param:"id" doc:"ID or full path."`
}

type listMembersParams struct {
	placeParams
	Query     string  `param:"query" doc:"Text in the name or username."`
	UserIDs   []int64 `param:"user_ids,csv"`
	SkipUsers []int64 `param:"skip_users,csv"`
	pageParams
}

// list: https://docs.gitlab.com/api/members/#list-all-members-of-a-group-or-project
func (m parentEndpoints) list(c *call, p listMembersParams) (page[memberJSON], error) {
	return m.members(c, p, false)
}

// listAll: https://docs.gitlab.com/api/members/#list-all-members-of-a-group-or-project-including-inherited-and-invited-members
func (m parentEndpoints) listAll(c *call, p listMembersParams) (page[memberJSON], error) {
	return m.members(c, p, true)
}

func (m parentEndpoints) members(c *call, p listMembersParams, all bool) (page[memberJSON], error) {
	f := project.MemberFilter{All: all, Query: p.Query, Users: p.UserIDs, Skip: p.SkipUsers}
	list, err := m.api.Projects.Members(c, c.actor, m.at(p.Ref), f, p.paging())
	if err != nil {
		return page[memberJSON]{}, err
	}
	now := m.api.Now()
	return offsetPage(p.pageParams, list, func(one *project.Member) memberJSON { return toMember(c, one, now) }), nil
}

type memberParams struct {
	placeParams
	UserID int64 `param:"user_id"`
}

// get: https://docs.gitlab.com/api/members/#get-a-member-of-a-group-or-project
func (m parentEndpoints) get(c *call, p memberParams) (memberJSON, error) {
	one, err := m.api.Projects.Member(c, c.actor, m.at(p.Ref), p.UserID, false)
	return m.present(c, one, err)
}

// getAny: https://docs.gitlab.com/api/members/#get-a-member-of-a-group-or-project-including-inherited-and-invited-members
func (m parentEndpoints) getAny(c *call, p memberParams) (memberJSON, error) {
	one, err := m.api.Projects.Member(c, c.actor, m.at(p.Ref), p.UserID, true)
	return m.present(c, one, err)
}

type addMemberParams struct {
	placeParams
	UserID      string     `param:"user_id" doc:"User IDs, separated by commas."`
	Username    string     `param:"username" doc:"Usernames, separated by commas."`
	AccessLevel int64      `param:"access_level,required"`
	ExpiresAt   *bind.Date `param:"expires_at"`
}

func (addMemberParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.ExactlyOne("user_id", "username")}
}

// add: https://docs.gitlab.com/api/members/#add-a-member-to-a-group-or-project
func (m parentEndpoints) add(c *call, p addMemberParams) (any, error) {
	refs := splitList(p.UserID)
	if p.Username != "" {
		refs = splitList(p.Username)
	}
	if len(refs) > maxPerPage {
		return nil, bind.Invalid("user_id does not have a valid value")
	}
	if len(refs) == 1 {
		one, err := m.addOne(c, p, refs[0])
		return m.present(c, one, err)
	}
	// If several users are given, the valid ones are added and the errors of the
	// others are returned.
	failed := map[string]string{}
	for _, ref := range refs {
		_, err := m.addOne(c, p, ref)
		switch code, body := errorBody(err); {
		case err == nil:
		case code == 404 && !strings.Contains(err.Error(), "User"), code == 403, code == 401, code >= 500:
			return nil, err
		default:
			failed[ref] = sentence(body)
		}
	}
	if len(failed) > 0 {
		return addedJSON{Status: "error", Message: failed}, nil
	}
	return addedJSON{Status: "success"}, nil
}

// addedJSON is the result of adding several members.
type addedJSON struct {
	Status  string            `json:"status"`
	Message map[string]string `json:"message,omitempty"` // errors by user
}

// sentence returns the text of an error body.
func sentence(body any) string {
	message, ok := body.(messageJSON)
	if !ok {
		return "is invalid"
	}
	switch text := message.Message.(type) {
	case string:
		return text
	case map[string][]string:
		var parts []string
		for name, list := range text {
			parts = append(parts, name+" "+strings.Join(list, ", "))
		}
		return strings.Join(parts, "; ")
	}
	return "is invalid"
}

func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func (m parentEndpoints) addOne(c *call, p addMemberParams, ref string) (*project.Member, error) {
	id, err := strconv.ParseInt(ref, 10, 64)
	if p.Username == "" && err != nil {
		return nil, bind.Invalid("user_id is invalid")
	}
	if p.Username != "" {
		u, err := m.api.Users.Find(c, c.actor, user.Ref(ref))
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(u.Username, ref) {
			return nil, errs.NotFound("User") // a number is not a username
		}
		id = u.ID
	}
	return m.api.Projects.AddMember(c, c.actor, m.at(p.Ref), project.NewMember{
		UserID: id, Level: project.Level(p.AccessLevel), ExpiresAt: dateText(p.ExpiresAt),
	})
}

type updateMemberParams struct {
	memberParams
	AccessLevel *int64              `param:"access_level"`
	ExpiresAt   bind.Opt[bind.Date] `param:"expires_at" doc:"Expiration date; empty to remove."`
}

// update: https://docs.gitlab.com/api/members/#edit-a-member-of-a-group-or-project
func (m parentEndpoints) update(c *call, p updateMemberParams) (memberJSON, error) {
	change := project.MemberChange{Level: (*project.Level)(p.AccessLevel), ExpiresAt: dateChange(p.ExpiresAt)}
	one, err := m.api.Projects.UpdateMember(c, c.actor, m.at(p.Ref), p.UserID, change)
	return m.present(c, one, err)
}

type removeMemberParams struct {
	memberParams
	SkipSubresources bool `param:"skip_subresources" doc:"Keep memberships in subgroups and projects."`
}

// remove: https://docs.gitlab.com/api/members/#remove-a-member-from-a-group-or-project
func (m parentEndpoints) remove(c *call, p removeMemberParams) (none, error) {
	return none{}, m.api.Projects.RemoveMember(c, c.actor, m.at(p.Ref), p.UserID, p.SkipSubresources)
}

type listRequestsParams struct {
	placeParams
	pageParams
}

// listRequests: https://docs.gitlab.com/api/access_requests/#list-access-requests-for-a-group-or-project
func (m parentEndpoints) listRequests(c *call, p listRequestsParams) (page[requestJSON], error) {
	list, err := m.api.Projects.Requests(c, c.actor, m.at(p.Ref), p.paging())
	if err != nil {
		return page[requestJSON]{}, err
	}
	now := m.api.Now()
	return offsetPage(p.pageParams, list, func(one *project.Member) requestJSON { return toRequest(c, one, now) }), nil
}

// request: https://docs.gitlab.com/api/access_requests/#request-access-to-a-group-or-project
func (m parentEndpoints) request(c *call, p placeParams) (requestJSON, error) {
	one, err := m.api.Projects.RequestAccess(c, c.actor, m.at(p.Ref))
	if err != nil {
		return requestJSON{}, err
	}
	return toRequest(c, one, m.api.Now()), nil
}

type approveParams struct {
	memberParams
	AccessLevel int64 `param:"access_level" default:"30"`
}

// approve: https://docs.gitlab.com/api/access_requests/#approve-an-access-request
func (m parentEndpoints) approve(c *call, p approveParams) (memberJSON, error) {
	one, err := m.api.Projects.Approve(c, c.actor, m.at(p.Ref), p.UserID, project.Level(p.AccessLevel))
	return m.present(c, one, err)
}

// deny: https://docs.gitlab.com/api/access_requests/#deny-an-access-request
func (m parentEndpoints) deny(c *call, p memberParams) (none, error) {
	return none{}, m.api.Projects.Deny(c, c.actor, m.at(p.Ref), p.UserID)
}

type memberJSON struct {
	userPublicJSON
	AccessLevel     int64           `json:"access_level"`
	CreatedAt       stamp           `json:"created_at"`
	CreatedBy       *userPublicJSON `json:"created_by"`
	ExpiresAt       *day            `json:"expires_at"`
	MembershipState string          `json:"membership_state"`
	PublicEmail     string          `json:"public_email"`
	MemberRole      *struct{}       `json:"member_role"` // there are no custom roles
	SAMLIdentity    *struct{}       `json:"group_saml_identity"`
}

func (m parentEndpoints) present(c *call, one *project.Member, err error) (memberJSON, error) {
	if err != nil {
		return memberJSON{}, err
	}
	return toMember(c, one, m.api.Now()), nil
}

func toMember(c *call, m *project.Member, now time.Time) memberJSON {
	out := memberJSON{
		AccessLevel: int64(m.Level), CreatedAt: toStamp(m.CreatedAt), ExpiresAt: toDayOrNull(m.ExpiresAt), MembershipState: "active",
	}
	if m.User != nil {
		out.userPublicJSON = toUserPublic(c.site, m.User, now)
		out.PublicEmail = m.User.PublicEmail
	}
	if m.Creator != nil {
		creator := toUserPublic(c.site, m.Creator, now)
		out.CreatedBy = &creator
	}
	return out
}

// requestJSON is an access request.
type requestJSON struct {
	userPublicJSON
	RequestedAt *stamp `json:"requested_at"`
}

func toRequest(c *call, m *project.Member, now time.Time) requestJSON {
	out := requestJSON{RequestedAt: toStampOrNull(m.RequestedAt)}
	if m.User != nil {
		out.userPublicJSON = toUserPublic(c.site, m.User, now)
	}
	return out
}
