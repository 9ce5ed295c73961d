// Package githttp serves git over HTTP: the smart protocol, versions 0 to 2, and the
// API of Git LFS. It parses requests, authenticates them, and returns errors that
// git shows. Features decide who may fetch or push.
package githttp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the handler.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	LFS      *lfs.Service
	Jobs     Jobs
	Name     string // of the service
	Tokens   string // prefix of tokens
	URL      string // the external URL of the instance
	TempDir  string // for requests that are too large for memory
	Log      *slog.Logger
	// Count is called for each request to a git service ("git-upload-pack") with its
	// outcome: "ok", "refused", "failed", or "gone" if the client disconnected.
	Count func(service, outcome string)
}

// Jobs authenticates and authorizes the tokens of CI/CD jobs.
type Jobs interface {
	// JobActor returns the actor of a job token. Unauthorized if the token does not
	// exist or its job is not running.
	JobActor(ctx context.Context, token, ip string) (actor.Actor, error)
	// JobOpens returns a project and the actor with the rights that a job token has
	// there. NotFound if the token has no access.
	JobOpens(ctx context.Context, by actor.Actor, ref project.Ref) (actor.Actor, *project.Project, error)
}

// Git is the HTTP handler for git requests.
type Git struct {
	Deps
	asks *limit.Share // for fetch requests that are written to files
}

// New returns the handler of git requests.
func New(d Deps) *Git {
	return &Git{d, limit.NewShare("large fetch requests", limit.ShareLimits{
		Total: 32, Reserve: 16, PerUser: 8, PerAddress: 4, Wait: 5 * time.Second,
	})}
}

// The git services.
const (
	uploadPack  = "git-upload-pack"  // a fetch
	receivePack = "git-receive-pack" // a push
)

const infoRefs = "info/refs"

// Serves reports whether a request is from a git client or the go command. The
// project need not exist.
func (g *Git) Serves(r *http.Request) bool {
	_, ok := parse(r)
	return ok || asksGoGet(r)
}

// nowhere is a project path that does not exist.
const nowhere project.Ref = "-/-"

// target is the project and the file that a request is for.
type target struct {
	project string // full path
	file    string // path in the repository: "info/refs", "git-upload-pack"
	alias   bool   // project is an alias
}

// parse parses the path of a request. All paths with ".git/" are git requests.
// Without it, only GET info/refs with a service and POST to a service are.
func parse(r *http.Request) (target, bool) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	name, file, ok := strings.Cut(path, ".git/")
	if !ok {
		for _, end := range []string{infoRefs, uploadPack, receivePack} {
			if name, ok = strings.CutSuffix(path, "/"+end); ok {
				file = end
				break
			}
		}
		ok = ok && (file == infoRefs && r.URL.Query().Has("service") || file != infoRefs && r.Method == http.MethodPost)
	}
	if !ok || name == "" || strings.HasSuffix(name, "/") {
		return target{}, false
	}
	// The path of a project contains a namespace, so it is never a number; the path
	// of a group wiki does not. Any other name without a namespace is an alias.
	alias := !strings.Contains(name, "/") && !strings.HasSuffix(name, ".wiki")
	if alias && (!strings.HasPrefix(path, name+".git/") || strings.Trim(name, "0123456789") == "") {
		return target{}, false
	}
	return target{name, file, alias}, true
}

// ServeHTTP implements http.Handler, for requests that Serves has accepted.
func (g *Git) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := parse(r)
	if !ok && asksGoGet(r) {
		x := &exchange{Git: g, w: w, r: r}
		x.route("/{project}?go-get=1")
		x.goGet()
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	x := &exchange{Git: g, w: w, r: r, project: project.Ref(t.project)}
	if t.alias {
		ref, err := g.Projects.Aliased(r.Context(), t.project)
		if err != nil {
			x.refuse(err)
			return
		}
		x.project = cmp.Or(ref, nowhere)
	}
	if file, ok := strings.CutPrefix(t.file, infoLFS); ok {
		x.lfs(file)
		return
	}
	switch t.file {
	case infoRefs:
		x.route("/{project}.git/info/refs")
		x.infoRefs()
	case uploadPack, receivePack:
		x.route("/{project}.git/" + t.file)
		x.service = t.file
		x.rpc()
	default:
		x.route("/{project}.git/{file}")
		x.other(t.file)
	}
}

// routed is implemented by response writers that record the route and the user for
// metrics and logs.
type routed interface {
	SetRoute(route string)
	SetUser(username string)
}

// exchange is a request and its response.
type exchange struct {
	*Git
	w       http.ResponseWriter
	r       *http.Request
	project project.Ref
	service string
	by      actor.Actor
	// anonymous is true if the request has no credential; then errors ask for one.
	anonymous bool
	// byPassword is true if the credential was the password of the account.
	byPassword bool
	// changes is true if a request to the LFS API changes the project.
	changes bool
}

func (x *exchange) route(pattern string) {
	if to, ok := x.w.(routed); ok {
		to.SetRoute(pattern)
	}
}

// infoRefs responds to the first request of a fetch or push: the refs and the
// capabilities of the server.
func (x *exchange) infoRefs() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header().Set("Allow", "GET, HEAD")
		x.say(http.StatusMethodNotAllowed, "Only GET is possible here.")
		return
	}
	// Only a known service is set, because its name becomes a label of a metric.
	switch service := x.r.URL.Query().Get("service"); service {
	case uploadPack, receivePack:
		x.service = service
	case "":
		x.say(http.StatusForbidden, dumb)
		return
	default:
		x.say(http.StatusForbidden, "Unknown git service.")
		return
	}
	c, err := x.open()
	if err != nil {
		x.refuse(err)
		return
	}
	x.w.Header().Set("Content-Type", "application/x-"+x.service+"-advertisement")
	noCache(x.w.Header())
	out := x.answer()
	held := &holdingWriter{to: out} // an error can replace the response while it is short and incomplete
	if err := c.advertise(x.r.Context(), held, x.options()); err != nil {
		x.failed(out, err)
		return
	}
	if err := held.release(); err != nil {
		x.failed(out, err)
		return
	}
	x.Count(x.service, "ok")
}

// dumb is the error for clients that use the dumb HTTP protocol, which reads the
// files of the repository.
const dumb = "This server speaks git's smart HTTP protocol only. Please use git 1.6.6 or later."

// rpc handles one request of a fetch or push.
func (x *exchange) rpc() {
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", "POST")
		x.say(http.StatusMethodNotAllowed, "Only POST is possible here.")
		return
	}
	// Pages of other sites can submit forms, but not with this content type.
	if want := "application/x-" + x.service + "-request"; x.r.Header.Get("Content-Type") != want {
		x.say(http.StatusUnsupportedMediaType, "Content-Type must be "+want+".")
		return
	}
	c, err := x.open()
	if err != nil {
		x.refuse(err)
		return
	}
	in, err := x.body()
	if err != nil {
		x.refuse(err)
		return
	}
	var from io.Reader = in
	if x.service == uploadPack {
		// The request is short. It is read before git is started, so that git does
		// not wait for a slow client.
		asked, err := x.readAll(in)
		if err != nil {
			x.refuse(err)
			return
		}
		defer asked.Close()
		from = asked
	}
	// Git may respond before it has read the whole request.
	_ = http.NewResponseController(x.w).EnableFullDuplex() // without full duplex only some early lines are lost
	x.w.Header().Set("Content-Type", "application/x-"+x.service+"-result")
	noCache(x.w.Header())
	out := x.answer()
	out.unless = &in.over
	options := x.options()
	options.Flows = in.flows
	err = c.serve(x.r.Context(), from, out, options)
	in.end()
	if over := in.over.Load(); over != nil && !out.wrote {
		x.refuse(over)
		return
	}
	if err != nil {
		x.failed(out, err)
		return
	}
	x.Count(x.service, "ok")
}

// other responds to requests for other paths of a repository.
func (x *exchange) other(file string) {
	if file == "HEAD" || strings.HasPrefix(file, "objects/") {
		x.say(http.StatusForbidden, dumb)
		return
	}
	x.say(http.StatusNotFound, "There is nothing here. Repositories are served to git clients only.")
}

func (x *exchange) options() git.ServeOptions {
	return git.ServeOptions{Protocol: x.r.Header.Get("Git-Protocol"), Stateless: true}
}

// conversation has the functions that serve a fetch or push of a repository.
type conversation struct {
	advertise func(context.Context, io.Writer, git.ServeOptions) error
	serve     func(context.Context, io.Reader, io.Writer, git.ServeOptions) error
}

// open authenticates the request and opens the repository.
func (x *exchange) open() (conversation, error) {
	if err := x.authenticate(); err != nil {
		return conversation{}, err
	}
	if path := string(x.project); len(path) > maxPath || !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return conversation{}, errNoProject
	}
	by := x.by
	if by.Job != nil {
		as, _, err := x.Jobs.JobOpens(x.r.Context(), by, x.project)
		if err != nil {
			return conversation{}, err
		}
		by = as
	}
	if x.service == receivePack {
		p, err := x.Repos.Push(x.r.Context(), by, x.project)
		if err != nil {
			return conversation{}, err
		}
		return conversation{p.Advertise, p.ReceivePack}, nil
	}
	f, err := x.Repos.Fetch(x.r.Context(), by, x.project)
	if err != nil {
		return conversation{}, err
	}
	return conversation{f.Advertise, f.UploadPack}, nil
}

// maxPath is longer than any project path.
const maxPath = 4096

// failed handles an error of a service. If the response was begun, the client got
// the error in the git protocol or sees that the response is incomplete.
func (x *exchange) failed(out *answerWriter, err error) {
	switch {
	case out.broken || x.r.Context().Err() != nil:
		x.Count(x.service, "gone")
	case !out.wrote:
		x.refuse(err)
	default:
		x.Count(x.service, "failed")
		x.Log.WarnContext(x.r.Context(), "git request over HTTP failed", "service", x.service, "project", string(x.project), "error", err)
	}
}
