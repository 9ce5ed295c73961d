package gitremote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// LFSObject is an object of Git LFS.
type LFSObject struct {
	OID  string `json:"oid"`
	Size int64  `json:"size"`
}

// LFSBatch is the maximum number of objects of a batch request.
const LFSBatch = 100

// ErrNoLFS means that the server has no LFS objects for the repository.
var ErrNoLFS = errors.New("the server has no LFS")

const lfsType = "application/vnd.git-lfs+json"

type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// LFSDownload is the download of an object. It has no action if the server does not
// have the object.
type LFSDownload struct {
	LFSObject
	action *lfsAction
}

// Missing reports that the server does not have the object.
func (d LFSDownload) Missing() bool { return d.action == nil }

// LFS requests the download URLs of at most LFSBatch objects. ErrNoLFS if the server
// has no LFS.
//
// See https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md.
func (r *Remote) LFS(ctx context.Context, objects []LFSObject) ([]LFSDownload, error) {
	body, err := json.Marshal(map[string]any{"operation": "download", "transfers": []string{"basic"}, "objects": objects, "hash_algo": "sha256"})
	if err != nil {
		return nil, err
	}
	at := *r.base
	if !strings.HasSuffix(at.Path, ".git") {
		at.Path, at.RawPath = at.Path+".git", ""
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at.JoinPath("/info/lfs/objects/batch").String(), bytes.NewReader(body))
	if err != nil {
		return nil, fail("The URL of the repository is not valid.")
	}
	q.Header.Set("Accept", lfsType)
	q.Header.Set("Content-Type", lfsType)
	r.authorize(q)
	answer, err := r.do(q)
	if err != nil {
		if answer != nil && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusNotImplemented) {
			return nil, ErrNoLFS
		}
		return nil, err
	}
	defer answer.Body.Close()
	var found struct {
		Objects []struct {
			LFSObject
			Actions struct {
				Download *lfsAction `json:"download"`
			} `json:"actions"`
			Error *struct {
				Code int `json:"code"`
			} `json:"error"`
		} `json:"objects"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 4<<20)).Decode(&found); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fail("The server does not answer like a Git LFS server.")
	}
	actions := map[string]*lfsAction{}
	for _, o := range found.Objects {
		if o.Error != nil && o.Error.Code != http.StatusNotFound && o.Error.Code != http.StatusGone {
			return nil, fail("The server does not give out an LFS object (code %d).", o.Error.Code)
		}
		if o.Error == nil {
			actions[o.OID] = o.Actions.Download
		}
	}
	list := make([]LFSDownload, len(objects))
	for i, o := range objects {
		list[i] = LFSDownload{o, actions[o.OID]}
	}
	return list, nil
}

// OpenLFS opens the content of an object, which must be closed.
func (r *Remote) OpenLFS(ctx context.Context, d LFSDownload) (io.ReadCloser, error) {
	at, err := url.Parse(d.action.Href)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" {
		return nil, fail("The server names a URL for an LFS object that is not allowed.")
	}
	if r.base.Scheme == "https" && at.Scheme == "http" {
		return nil, fail("The server names a URL without TLS for an LFS object.")
	}
	at.User = nil
	for range maxRedirects + 1 {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, fail("The server names a URL for an LFS object that is not allowed.")
		}
		if len(d.action.Header) > 32 {
			return nil, malformed()
		}
		r.authorize(q)
		for name, value := range d.action.Header {
			q.Header.Set(name, value)
		}
		answer, err := r.do(q)
		if answer == nil || answer.StatusCode < 300 || answer.StatusCode >= 400 {
			if err != nil {
				return nil, err
			}
			return answer.Body, nil
		}
		next, parseErr := at.Parse(answer.Header.Get("Location"))
		if parseErr != nil || next.Scheme != at.Scheme && next.Scheme != "https" || next.Hostname() == "" {
			return nil, err
		}
		if !sameOrigin(next, at) {
			d.action = &lfsAction{} // the headers are for the first server
		}
		next.User = nil
		at = next
	}
	return nil, fail("The server redirects too often.")
}
