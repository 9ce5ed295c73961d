package sshd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/project"
)

// lfsAccess is the response to git-lfs-authenticate.
//
// See https://github.com/git-lfs/git-lfs/blob/main/docs/api/server-discovery.md#ssh.
type lfsAccess struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header"`
	ExpiresIn int64             `json:"expires_in"`
}

// authenticateLFS sends the client the URL of the LFS API of a project and a token
// for the operation. The token is valid only as long as the SSH key is.
func (x *session) authenticateLFS(ctx context.Context, by actor.Actor, c command) error {
	if c.project == "" {
		err := errs.NotFound("Project")
		x.refuse(ctx, err, string(c.operation))
		return err
	}
	p, err := x.LFS.Project(ctx, by, c.project, c.operation)
	if moved, ok := errors.AsType[*project.Moved](err); ok {
		p, err = x.LFS.Project(ctx, by, project.Ref(moved.Path), c.operation)
	}
	if err != nil {
		x.refuse(ctx, err, string(c.operation))
		return err
	}
	login := by.Username
	if by.Deploy != nil {
		login = "lfs+deploy-key"
	}
	token := x.LFS.NewToken(lfs.Grant{Key: x.fingerprint}, p, c.operation)
	return json.NewEncoder(x.channel).Encode(lfsAccess{
		Href:      strings.TrimSuffix(x.URL, "/") + "/" + p.FullPath + ".git/info/lfs",
		Header:    map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+token))},
		ExpiresIn: lfs.ExpiresIn,
	})
}
