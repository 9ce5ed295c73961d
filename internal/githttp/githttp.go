// Package githttp serves git over HTTP: the smart protocol, versions 0 to 2, and the
// API of Git LFS. It parses requests, authenticates them, and returns errors as git shows them.
// Features decide who may fetch or push.
package githttp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	LFS      *lfs.Service
	Jobs     Jobs
	Name     string // of the service
	Tokens   string // what tokens start with
	URL      string // the external URL of the instance
	TempDir  string // for requests that are too long for memory
	Log      *slog.Logger
	// Count is called for each request for a service of git ("git-upload-pack")
	// with its outcome: "ok", "refused", "failed", or "gone" when the client
	// left.
	Count func(service, outcome string)
}

// Jobs knows the tokens of CI jobs.
type Jobs interface {
	// JobActor returns the actor of a job's token: Unauthorized when there is none,
	// or its job does not run.
	JobActor(ctx context.Context, token, ip string) (actor.Actor, error)
	// JobOpens returns a project and the actor whose rights a job's token has
	// there: NotFound when the token does not open it.
	JobOpens(ctx context.Context, by actor.Actor, ref project.Ref) (actor.Actor, *project.Project, error)
}

// Git serves repositories.
type Git struct{ Deps }

// New returns the handler of git requests.
func New(d Deps) *Git { return &Git{d} }

// The services of git.
const (
	uploadPack  = "git-upload-pack"  // a fetch
	receivePack = "git-receive-pack" // a push
)

const infoRefs = "info/refs"

// Serves reports whether a request is one of a git client. What it asks for
// need not exist.
func (g *Git) Serves(r *http.Request) bool {
	_, ok := parse(r)
	return ok || asksGoGet(r)
}

// nowhere is a path that no project has.
const nowhere project.Ref = "-/-"

// target is what a request asks for.
type target struct {
	project string // its full path
	file    string // below the repository: "info/refs", "git-upload-pack"
	alias   bool   // project is an alias
}

// parse reads the path of a request. Behind ".git" everything belongs to git;
// an address without it is one only where nothing else can be meant.
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
	// A project stands in a namespace, so that its path is never a number; the
	// wiki of a group does not. Another name without a namespace is an alias.
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

// routed is the writer of a server that wants to know what was asked for, for
// its metrics and its log.
type routed interface {
	SetRoute(route string)
	SetUser(username string)
}

// exchange is one request and its answer.
type exchange struct {
	*Git
	w       http.ResponseWriter
	r       *http.Request
	project project.Ref
	service string
	by      actor.Actor
	// anonymous says that the request brought no credential: then a refusal
	// asks for one.
	anonymous bool
	// byPassword says that the credential was the password of the account.
	byPassword bool
	// changes says that a request to the LFS API is to change the project.
	changes bool
}

func (x *exchange) route(pattern string) {
	if to, ok := x.w.(routed); ok {
		to.SetRoute(pattern)
	}
}

// infoRefs answers a client that begins: which refs there are, and what we
// can do.
func (x *exchange) infoRefs() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header().Set("Allow", "GET, HEAD")
		x.say(http.StatusMethodNotAllowed, "Only GET is possible here.")
		return
	}
	// Only a known service becomes a part of the exchange: its name is counted.
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
	held := &holdingWriter{to: out} // an error can be sent as long as the answer is short and incomplete
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

// dumb is for clients that want to read the files of the repository.
const dumb = "This server speaks git's smart HTTP protocol only. Please use git 1.6.6 or later."

// rpc answers one request of a fetch or push.
func (x *exchange) rpc() {
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", "POST")
		x.say(http.StatusMethodNotAllowed, "Only POST is possible here.")
		return
	}
	// A page of someone else can make a browser send forms, but not this.
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
		// The request is short. It is read before git is started, which would
		// wait for a client that does not send it.
		asked, err := x.readAll(in)
		if err != nil {
			x.refuse(err)
			return
		}
		defer asked.Close()
		from = asked
	}
	// Git may answer before it has read everything.
	_ = http.NewResponseController(x.w).EnableFullDuplex() // where that is not possible nothing is lost but some early lines
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

// other refuses what else may stand behind a repository.
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

// conversation is what a repository says to a client that may fetch or push.
type conversation struct {
	advertise func(context.Context, io.Writer, git.ServeOptions) error
	serve     func(context.Context, io.Reader, io.Writer, git.ServeOptions) error
}

// open finds out who asks and opens the repository to them.
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

// maxPath is longer than any path of a project.
const maxPath = 4096

// failed ends an answer that was begun. The client got the error in git's protocol,
// or notices by it that the answer is cut off.
func (x *exchange) failed(out *answerWriter, err error) {
	switch {
	case out.broken || x.r.Context().Err() != nil:
		x.Count(x.service, "gone")
	case !out.wrote:
		x.refuse(err)
	default:
		x.Count(x.service, "failed")
		x.Log.WarnContext(x.r.Context(), "git over http", "service", x.service, "project", string(x.project), "error", err)
	}
}
