package api

import (
	"fmt"
	"net/http"
	"net/url"

	"svc/internal/blob"
	"svc/internal/project"
)

func (a *API) projectAvatarRoutes() {
	a.tag("Projects")
	handle(a, "GET /projects/{id}/avatar", readAPI.orAnonymous(), a.getProjectAvatar, summary("Download a project avatar"))
	a.tag("Groups")
	handle(a, "GET /groups/{id}/avatar", readAPI.orAnonymous(), a.getGroupAvatar, summary("Download a group avatar"))
}

// getProjectAvatar: https://docs.gitlab.com/api/projects/#download-a-project-avatar
func (a *API) getProjectAvatar(c *call, p projectParams) (streamed, error) {
	picture, err := a.Projects.Avatar(c, c.actor, project.Place{Ref: p.Project})
	return streamPicture(c, picture, err)
}

// getGroupAvatar: https://docs.gitlab.com/api/groups/#download-a-group-avatar
func (a *API) getGroupAvatar(c *call, p inGroupParams) (streamed, error) {
	picture, err := a.Projects.Avatar(c, c.actor, project.Place{Ref: p.Group, Group: true})
	return streamPicture(c, picture, err)
}

func streamPicture(c *call, picture *blob.Object, err error) (streamed, error) {
	if err != nil {
		return streamed{}, err
	}
	defer picture.Close()
	h := c.w.Header()
	h.Set("Content-Type", picture.ContentType)
	h["Cache-Control"] = revalidate
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	http.ServeContent(c.w, c.r, "", picture.ModTime, picture)
	return streamed{}, nil
}

// pictureURL returns the URL of an avatar, or nil if there is none.
func pictureURL(site *Site, owner string, id int64, name string) *string {
	if name == "" {
		return nil
	}
	address := fmt.Sprintf("%s/uploads/-/system/%s/avatar/%d/%s", site.URL, owner, id, url.PathEscape(name))
	return &address
}

// namespacePicture returns the avatar URL of a group namespace.
func namespacePicture(site *Site, n *project.Namespace) *string {
	if n.Kind != project.GroupNamespace {
		return nil
	}
	return pictureURL(site, "group", n.ID, n.Avatar)
}
