package api

import "svc/internal/user"

func (a *API) userFollowRoutes() {
	a.tag("User follow and unfollow")
	handle(a, "POST /users/{id}/follow", writeAPI, a.followUser, summary("Follow a user"))
	handle(a, "POST /users/{id}/unfollow", writeAPI, a.unfollowUser, summary("Unfollow a user"))
	handle(a, "GET /users/{id}/followers", readUser, a.listFollowers, summary("List followers of a user"))
	handle(a, "GET /users/{id}/following", readUser, a.listFollowing, summary("List users a user follows"))
}

// followUser: https://docs.gitlab.com/api/user_follow_unfollow/#follow-a-user
func (a *API) followUser(c *call, p userParams) (unchanged[userPublicJSON], error) {
	u, changed, err := a.Users.Follow(c, c.actor, p.ID)
	if err != nil {
		return unchanged[userPublicJSON]{}, err
	}
	return unchanged[userPublicJSON]{toUserPublic(c.site, u, a.Now()), !changed}, nil
}

// unfollowUser: https://docs.gitlab.com/api/user_follow_unfollow/#unfollow-a-user
func (a *API) unfollowUser(c *call, p userParams) (unchanged[userPublicJSON], error) {
	u, changed, err := a.Users.Unfollow(c, c.actor, p.ID)
	if err != nil {
		return unchanged[userPublicJSON]{}, err
	}
	return unchanged[userPublicJSON]{toUserPublic(c.site, u, a.Now()), !changed}, nil
}

type listFollowsParams struct {
	userParams
	pageParams
}

// listFollowers: https://docs.gitlab.com/api/user_follow_unfollow/#list-all-accounts-that-follow-a-user
func (a *API) listFollowers(c *call, p listFollowsParams) (page[userPublicJSON], error) {
	list, err := a.Users.Followers(c, c.actor, p.ID, p.paging())
	if err != nil {
		return page[userPublicJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(u *user.User) userPublicJSON { return toUserPublic(c.site, u, now) }), nil
}

// listFollowing: https://docs.gitlab.com/api/user_follow_unfollow/#list-all-accounts-followed-by-a-user
func (a *API) listFollowing(c *call, p listFollowsParams) (page[userPublicJSON], error) {
	list, err := a.Users.Following(c, c.actor, p.ID, p.paging())
	if err != nil {
		return page[userPublicJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(u *user.User) userPublicJSON { return toUserPublic(c.site, u, now) }), nil
}
