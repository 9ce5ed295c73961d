package githttp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/project"
)

// infoLFS is the path of the LFS API in a repository.
const infoLFS = "info/lfs/"

// lfsMedia is the media type of the LFS API.
const lfsMedia = "application/vnd.git-lfs+json"

// lfsService is the name of the LFS API in the metrics.
const lfsService = "git-lfs"

// maxLFSBody is the maximum size of a JSON body.
const maxLFSBody = 1 << 20

// lfsExchange is a request to the LFS API and its response.
type lfsExchange struct {
	*exchange
	grant *lfs.Grant // of the token that was used; nil for other credentials
	p     *project.Project
}

// lfs handles a request to the LFS API. file is the path after info/lfs/.
//
// See https://github.com/git-lfs/git-lfs/tree/main/docs/api.
func (x *exchange) lfs(file string) {
	x.service = lfsService
	l := &lfsExchange{exchange: x}
	parts := strings.Split(file, "/")
	const base = "/{project}.git/info/lfs/"
	var err error
	switch is := func(method string, path ...string) bool { return l.matches(parts, method, path) }; {
	case is("POST", "objects", "batch"):
		x.route(base + "objects/batch")
		err = l.batch()
	case is("POST", "objects", "verify"):
		x.route(base + "objects/verify")
		err = l.verify()
	case is("GET", "objects", "*"), is("HEAD", "objects", "*"):
		x.route(base + "objects/{oid}")
		err = l.download(parts[1])
	case is("PUT", "objects", "*", "*"):
		x.route(base + "objects/{oid}/{size}")
		err = l.upload(parts[1], parts[2])
	case is("GET", "locks"):
		x.route(base + "locks")
		err = l.listLocks()
	case is("POST", "locks"):
		x.route(base + "locks")
		err = l.createLock()
	case is("POST", "locks", "verify"):
		x.route(base + "locks/verify")
		err = l.verifyLocks()
	case is("POST", "locks", "*", "unlock"):
		x.route(base + "locks/{id}/unlock")
		err = l.unlock(parts[1])
	default:
		x.route(base + "{file}")
		l.fail(http.StatusNotFound, "Not found.")
		return
	}
	if err != nil {
		l.refuse(err)
		return
	}
	x.Count(lfsService, "ok")
}

// matches reports whether the request has a method and path. * in the path matches
// any segment.
func (x *lfsExchange) matches(parts []string, method string, path []string) bool {
	if x.r.Method != method || len(parts) != len(path) {
		return false
	}
	for i, want := range path {
		if want != parts[i] && (want != "*" || parts[i] == "") {
			return false
		}
	}
	return true
}

// open authenticates the request, and sets the project if the actor may do the
// operation there.
func (x *lfsExchange) open(op lfs.Operation) error {
	x.changes = op == lfs.Upload
	if err := x.identify(); err != nil {
		return err
	}
	if path := string(x.project); len(path) > maxPath || !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return errNoProject
	}
	ctx, by := x.r.Context(), x.by
	if by.Job != nil {
		as, _, err := x.Jobs.JobOpens(ctx, by, x.project)
		if err != nil {
			return err
		}
		by = as
	}
	p, err := x.LFS.Project(ctx, by, x.project, op)
	if err != nil {
		return err
	}
	if x.grant != nil && !x.grant.Allows(p, op) {
		return errs.Forbidden("The token is not for this project or operation.")
	}
	x.by, x.p = by, p
	return nil
}

// identify authenticates the request like authenticate, but also accepts LFS tokens.
func (x *lfsExchange) identify() error {
	login, password, basic := x.r.BasicAuth()
	if !basic || !lfs.IsToken(password) {
		return x.authenticate()
	}
	g, ok, err := x.LFS.OpenToken(password)
	if err != nil {
		return err
	}
	if !ok { // a password may look like a token
		return x.authenticate()
	}
	ctx, ip := x.r.Context(), httpreq.IP(x.r)
	var by actor.Actor
	if g.Key != "" {
		by, err = x.Users.AuthenticateKey(ctx, g.Key, ip)
		if errs.Is(err, errs.KindUnauthorized) {
			by, err = x.Projects.AuthenticateDeployKey(ctx, g.Key)
		}
	} else if by, err = x.Users.As(ctx, g.UserID); by.Username != login {
		err = errs.Unauthorized("The token is invalid.")
	}
	if err != nil {
		return err
	}
	by.IP = ip
	x.by, x.grant = by, &g
	limit.Identify(ctx, by.Account())
	if to, ok := x.w.(routed); ok {
		to.SetUser(name(by))
	}
	return nil
}

type lfsObject struct {
	OID  string `json:"oid"`
	Size int64  `json:"size"`
}

func (o lfsObject) pointer() lfs.Pointer { return lfs.Pointer{OID: o.OID, Size: o.Size} }

type lfsRef struct {
	Name string `json:"name"`
}

type batchRequest struct {
	Operation lfs.Operation `json:"operation"`
	Transfers []string      `json:"transfers"`
	Ref       *lfsRef       `json:"ref"`
	Objects   []lfsObject   `json:"objects"`
	HashAlgo  string        `json:"hash_algo"`
}

type batchResponse struct {
	Transfer string        `json:"transfer"`
	Objects  []batchObject `json:"objects"`
	HashAlgo string        `json:"hash_algo"`
}

type batchObject struct {
	lfsObject
	Authenticated bool                 `json:"authenticated,omitempty"`
	Actions       map[string]lfsAction `json:"actions,omitempty"`
	Error         *lfsObjectError      `json:"error,omitempty"`
}

type lfsAction struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header,omitempty"`
	ExpiresIn int64             `json:"expires_in"`
}

type lfsObjectError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// batch handles the batch API. See
// https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md.
func (x *lfsExchange) batch() error {
	var in batchRequest
	// The body is read before access is checked, because it names the operation.
	if err := x.read(&in); err != nil {
		return err
	}
	if in.Operation != lfs.Download && in.Operation != lfs.Upload {
		return errs.Unprocessable("The operation must be download or upload.")
	}
	if err := x.open(in.Operation); err != nil {
		return err
	}
	if in.HashAlgo != "" && in.HashAlgo != "sha256" {
		return errs.Conflict("Only the hash algorithm sha256 is supported.")
	}
	objects := make([]lfs.Pointer, len(in.Objects))
	for i, o := range in.Objects {
		objects[i] = o.pointer()
	}
	answers, err := x.LFS.Batch(x.r.Context(), x.by, x.p, in.Operation, objects)
	if err != nil {
		return err
	}
	out := batchResponse{Transfer: "basic", HashAlgo: "sha256", Objects: make([]batchObject, len(answers))}
	for i, a := range answers {
		out.Objects[i] = x.answerTo(in.Operation, a)
	}
	return x.reply(http.StatusOK, out)
}

func (x *lfsExchange) answerTo(op lfs.Operation, a lfs.Answer) batchObject {
	o := batchObject{lfsObject: lfsObject{a.OID, a.Size}, Authenticated: !x.anonymous}
	if a.Status != 0 {
		o.Authenticated, o.Error = false, &lfsObjectError{a.Status, a.Message}
		return o
	}
	if !a.Transfer {
		return o
	}
	at := strings.TrimSuffix(x.URL, "/") + "/" + x.p.FullPath + ".git/" + infoLFS + "objects/"
	header := x.credentials(op)
	action := lfsAction{Href: a.URL, Header: a.Header, ExpiresIn: lfs.ExpiresIn}
	if op == lfs.Download {
		if action.Href == "" {
			action.Href, action.Header = at+a.OID, header
		}
		o.Actions = map[string]lfsAction{"download": action}
		return o
	}
	verify := lfsAction{Href: at + "verify", Header: header, ExpiresIn: lfs.ExpiresIn}
	if action.Href == "" {
		action.Href, action.Header = at+a.OID+"/"+strconv.FormatInt(a.Size, 10), header
	} else {
		verify.Href += "?upload=" + a.UploadID
	}
	o.Actions = map[string]lfsAction{"upload": action, "verify": verify}
	return o
}

// credentials returns the headers with which the client performs the actions of a
// batch: its own credentials, or a token in place of a password, because checking a
// password is expensive.
func (x *lfsExchange) credentials(op lfs.Operation) map[string]string {
	if x.anonymous {
		return nil
	}
	sent := x.r.Header.Get("Authorization")
	if x.byPassword {
		token := x.LFS.NewToken(lfs.Grant{UserID: x.by.ID}, x.p, op)
		sent = "Basic " + base64.StdEncoding.EncodeToString([]byte(x.by.Username+":"+token))
	}
	return map[string]string{"Authorization": sent}
}

// verify handles the verification of an upload. See
// https://github.com/git-lfs/git-lfs/blob/main/docs/api/basic-transfers.md#verification.
func (x *lfsExchange) verify() error {
	var in lfsObject
	if err := x.read(&in); err != nil {
		return err
	}
	if err := x.open(lfs.Upload); err != nil {
		return err
	}
	if err := x.LFS.Verify(x.r.Context(), x.p, in.pointer(), x.r.URL.Query().Get("upload")); err != nil {
		return err
	}
	return x.reply(http.StatusOK, struct{}{})
}

func (x *lfsExchange) download(oid string) error {
	if err := x.open(lfs.Download); err != nil {
		return err
	}
	o, err := x.LFS.Open(x.r.Context(), x.p, oid)
	if err != nil {
		return err
	}
	defer o.Close()
	h := x.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment; filename="+o.OID)
	h.Set("Etag", `"`+o.OID+`"`)
	h.Set("Cache-Control", "private, no-store")
	http.ServeContent(x.w, x.r, "", o.ModTime, o)
	return nil
}

func (x *lfsExchange) upload(oid, size string) error {
	if err := x.open(lfs.Upload); err != nil {
		return err
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return errs.Unprocessable("The object ID or size is invalid.")
	}
	if sent := x.r.ContentLength; sent >= 0 && sent != n {
		return errs.Unprocessable("The object has %d bytes, not %d.", sent, n)
	}
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return errs.Unprocessable("Objects cannot be compressed.")
	}
	if err := x.LFS.Put(x.r.Context(), x.p, lfs.Pointer{OID: oid, Size: n}, x.r.Body); err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", lfsMedia)
	x.w.WriteHeader(http.StatusOK)
	return nil
}

// read decodes the JSON body of a request.
func (x *lfsExchange) read(into any) error {
	media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || media != lfsMedia && media != "application/json" {
		return errs.Unprocessable("Content-Type must be %s.", lfsMedia)
	}
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxLFSBody+1))
	if err != nil {
		return unreadable(err)
	}
	if len(body) > maxLFSBody {
		return errs.TooLarge("The request is too large.")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errs.Unprocessable("The body is not valid JSON for this request.").Because(err)
	}
	return nil
}

func (x *lfsExchange) reply(status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", lfsMedia)
	noCache(h)
	x.w.WriteHeader(status)
	_, _ = x.w.Write(text) // the client may have disconnected
	return nil
}

// refuse responds with an error in the format of the LFS API.
func (x *lfsExchange) refuse(err error) {
	if moved, ok := errors.AsType[*project.Moved](err); ok {
		_, rest, _ := strings.Cut(x.r.URL.EscapedPath(), ".git/")
		at := "/" + moved.Path + ".git/" + rest
		if x.r.URL.RawQuery != "" {
			at += "?" + x.r.URL.RawQuery
		}
		x.w.Header().Set("Location", at)
		x.fail(http.StatusTemporaryRedirect, "The project has moved to "+moved.Path+".")
		return
	}
	if refused, ok := errors.AsType[limit.Refused](err); ok {
		refused.Headers(x.w.Header())
		x.fail(http.StatusTooManyRequests, refused.Error())
		return
	}
	status, text := x.statusOf(err)
	if refused, ok := errs.As(err); ok {
		switch refused.Kind {
		case errs.KindUnprocessable:
			status = http.StatusUnprocessableEntity
		case errs.KindNotAllowed:
			status = http.StatusNotImplemented
		case errs.KindPrecondition:
			status = http.StatusConflict
		case errs.KindNotFound:
			if refused.Text == lfs.Disabled {
				status, text = http.StatusNotFound, "Git LFS is not enabled for this project."
			} else if x.p != nil {
				status, text = http.StatusNotFound, "The object or lock does not exist."
			}
		}
	}
	if status == http.StatusInternalServerError {
		if !errors.Is(err, context.Canceled) {
			x.Log.ErrorContext(x.r.Context(), "LFS request failed", "project", string(x.project), "error", err)
		}
		x.Count(lfsService, "failed")
		x.failure(status, text)
		return
	}
	x.fail(status, text)
}

// fail responds with an error and counts the request as refused.
func (x *lfsExchange) fail(status int, text string) {
	x.Count(lfsService, "refused")
	x.failure(status, text)
}

func (x *lfsExchange) failure(status int, text string) {
	if status == http.StatusUnauthorized {
		realm := `Basic realm="` + strings.NewReplacer(`"`, "", `\`, "").Replace(x.Name) + `", charset="UTF-8"`
		x.w.Header().Set("LFS-Authenticate", realm)
		x.w.Header().Set("WWW-Authenticate", realm)
	}
	_ = x.reply(status, struct { // encoding cannot fail
		Message   string `json:"message"`
		RequestID string `json:"request_id,omitempty"`
	}{text, x.w.Header().Get("X-Request-Id")})
}
