// Package app creates all services of the server and connects them. It is the only
// package that imports all others.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"svc/internal/activity"
	"svc/internal/alert"
	"svc/internal/api"
	"svc/internal/audit"
	"svc/internal/badge"
	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/board"
	"svc/internal/broadcast"
	"svc/internal/catalog"
	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/ci/deployment"
	"svc/internal/ci/joblog"
	"svc/internal/ci/jobtoken"
	"svc/internal/ci/runners"
	"svc/internal/ci/schedule"
	"svc/internal/ci/trigger"
	"svc/internal/ci/variable"
	"svc/internal/codesearch"
	"svc/internal/comment"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/errortrack"
	"svc/internal/featureflag"
	"svc/internal/git"
	"svc/internal/hook"
	"svc/internal/imageproxy"
	"svc/internal/instance"
	"svc/internal/invite"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/merge"
	"svc/internal/mirror"
	"svc/internal/notice"
	"svc/internal/notify"
	"svc/internal/oauth"
	"svc/internal/packages"
	"svc/internal/pages"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/project/serviceaccount"
	"svc/internal/project/topic"
	"svc/internal/queue"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/repo/bucket"
	"svc/internal/repo/pushrule"
	"svc/internal/repo/storagemove"
	"svc/internal/search"
	"svc/internal/secret"
	"svc/internal/securefile"
	"svc/internal/setting"
	"svc/internal/signin"
	"svc/internal/signing"
	"svc/internal/snippet"
	"svc/internal/terraform"
	"svc/internal/todo"
	"svc/internal/transfer"
	"svc/internal/transfer/remote"
	"svc/internal/upload"
	"svc/internal/user"
	"svc/internal/web"
	"svc/internal/wiki"
)

// Compatibility is the GitLab release whose public API this server implements.
const Compatibility = "17.11.0"

// App is a server with all its services, which does not listen yet.
type App struct {
	Config config.Config
	Log    *slog.Logger

	DB      *db.DB
	Blobs   blob.Store
	Keys    *secret.Keyring
	Signing *signing.Service
	Notices *notice.Bus
	Queue   *queue.Queue
	Git     *git.Engine
	Mail    *mail.Sender

	Settings *setting.Service
	Audit    *audit.Service
	Users    *user.Service
	Projects *project.Service
	Activity *activity.Service
	Notify   *notify.Service
	Repos    *repo.Service
	Moves    *storagemove.Service
	Images   *imageproxy.Service
	Markup   *markup.Renderer
	Plan     *plan.Service
	Comments *comment.Service
	Boards   *board.Service
	Uploads  *upload.Service
	Badges   *badge.Service
	Merges   *merge.Service
	LFS      *lfs.Service
	Snippets *snippet.Service
	Wikis    *wiki.Service
	Code     *codesearch.Service
	Search   *search.Service
	Releases *release.Service
	CI       *ci.Service
	Packages *packages.Service
	Catalog  *catalog.Service
	Todos    *todo.Service
	Alerts   *alert.Service
	Errors   *errortrack.Service
	Pages    *pages.Service
	OAuth    *oauth.Service
	SignIn   *signin.Service
	Transfer *transfer.Service
	Mirrors  *mirror.Service
	Hooks    *hook.Service
	Instance *instance.Service

	PushRules   *pushrule.Service
	Topics      *topic.Service
	Terraform   *terraform.Service
	Flags       *featureflag.Service
	Broadcasts  *broadcast.Service
	SecureFiles *securefile.Service
	Invites     *invite.Service

	ServiceAccounts *serviceaccount.Service

	// Answers limits how many large responses are in memory at the same time.
	Answers *limit.Answers

	now        func() time.Time
	pace       Pace
	sshSilence time.Duration
	program    string   // path of the executable file
	claim      *os.File // locks the data directory
	buckets    *buckets
	// listener is open before Listen if the system chooses the port, because the
	// external URL that the services are built with depends on it.
	listener net.Listener
}

// Options replace external dependencies and time limits, for tests.
type Options struct {
	Now func() time.Time
	// Passwords are the parameters of password hashes, which determine their cost.
	Passwords secret.Params
	// EmailDelay is how long notification emails wait for more events; 0 means the
	// default.
	EmailDelay time.Duration
	// LookupTXT looks up DNS TXT records; nil means the resolver of the system.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
	// Pulse is the interval of the heartbeats of nodes; 0 means the default.
	Pulse time.Duration
	// Moves changes how repositories are moved.
	Moves storagemove.Options
	// Git are the limits of git; zero values mean the defaults.
	Git git.Limits
	// Pace limits how slow HTTP clients may be.
	Pace Pace
	// SSHSilence is how long git waits for a client of a fetch; 0 means the default.
	SSHSilence time.Duration
	// Program is the path of the executable file of svc, for the built-in runner;
	// empty in tests.
	Program string
	// Migrations are added to those of the program; see db.AddMigrations.
	Migrations fs.FS
	// RemoteStall is how long a server that a repository is imported from may send
	// no data; 0 means the default.
	RemoteStall time.Duration
	// AnswerWait is how long a large response waits for a slot; 0 means the default.
	AnswerWait time.Duration
}

// collectAt is the GOGC value: how much the heap grows before a garbage collection,
// in percent. The live heap is small, and with the default of 100 a busy server
// spends a tenth of its CPU time on garbage collection.
const collectAt = 200

// tuneCollector configures the garbage collector, unless the operator has set
// GOGC.
func tuneCollector() {
	if was := debug.SetGCPercent(collectAt); was != 100 {
		debug.SetGCPercent(was)
	}
}

// A request that reads more than smallAnswer bytes from the database needs one of a
// few slots (limit.Answers). A request may read at most largestAnswer bytes, which
// is enough for a page of 100 texts of the maximum size.
const (
	smallAnswer   = 4 << 20
	largestAnswer = 128 << 20
)

// Open opens the database and the stores and creates the features. It does not
// change the schema: see Migrate. Close releases all resources.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, o Options) (*App, error) {
	a := &App{Config: cfg, Log: log, now: o.Now, pace: o.Pace.filled(), sshSilence: o.SSHSilence, program: o.Program}
	tuneCollector()
	if a.now == nil {
		a.now = time.Now
	}
	if o.Passwords == (secret.Params{}) {
		o.Passwords = secret.DefaultParams()
	}
	o.EmailDelay = cmp.Or(o.EmailDelay, notify.DefaultDelay)
	if err := a.open(ctx, o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context, o Options) error {
	if _, err := os.Stat(filepath.Join(a.Config.DataDir, restoring)); err == nil {
		return fmt.Errorf("a restore into %s was interrupted: empty the directory, the database and the object store, and restore again", a.Config.DataDir)
	}
	for _, dir := range []string{a.Config.DataDir, a.tempDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	if a.Config.ExternalURL == "" { // the system chooses the port
		if err := a.listen(); err != nil {
			return err
		}
		a.Config.ExternalURL = config.DefaultExternalURL(a.listener.Addr().String())
	}
	var err error
	if a.Keys, err = secret.LoadKeyring(a.KeyFile()); err != nil {
		return err
	}
	if a.DB, err = db.Open(ctx, string(a.Config.DatabaseURL), a.DatabaseFile()); err != nil {
		return err
	}
	a.DB.AddMigrations(o.Migrations)
	limits := db.DefaultReadLimits
	limits.Timeout, limits.Anonymous = a.Config.ReadTimeout, a.Config.AnonymousReadTimeout
	a.DB.LimitReads(limits)
	if a.Blobs, err = blob.Open(ctx, string(a.Config.BlobURL), a.Config.DataDir); err != nil {
		return err
	}
	o.Git.Memory = cmp.Or(o.Git.Memory, a.Config.GitMemory)
	if a.Git, err = git.New(git.Deps{Limits: o.Git, Spool: filepath.Join(a.tempDir(), "spool")}); err != nil {
		return err
	}
	a.Notices = notice.New(notice.Deps{DB: a.DB, Log: a.Log, Now: a.now})
	if a.buckets, err = openBuckets(ctx, &a.Config, a.Blobs, bucket.Deps{DB: a.DB, Git: a.Git, Notices: a.Notices, Log: a.Log, Now: a.now}); err != nil {
		return err
	}
	a.Queue = queue.New(queue.Deps{DB: a.DB, Log: a.Log, Pulse: o.Pulse})
	a.Mail = mail.New(mail.Deps{
		URL: string(a.Config.SMTPURL), Queue: a.Queue, Keys: a.Keys, Log: a.Log, Now: a.now,
		Name: a.Config.ServiceName, Host: cmp.Or(a.host(), "localhost"), Site: a.Config.ExternalURL,
	})
	a.Signing = signing.New(signing.Deps{DB: a.DB, Keys: a.Keys, Now: a.now})
	a.Settings = setting.New(setting.Deps{DB: a.DB, Notices: a.Notices, Now: a.now})
	a.Audit = audit.New(audit.Deps{DB: a.DB})
	a.Users = user.New(user.Deps{
		DB: a.DB, Blobs: a.Blobs, Queue: a.Queue, Notices: a.Notices, Settings: a.Settings, Keys: a.Keys,
		Hasher: secret.NewHasher(o.Passwords, runtime.GOMAXPROCS(0)), Mail: a.Mail, Now: a.now, ServiceName: a.Config.ServiceName, TokenPrefix: a.Config.Tokens(),
		Host: a.host(),
	})
	a.Projects = project.New(project.Deps{
		DB: a.DB, Blobs: a.Blobs, Queue: a.Queue, Notices: a.Notices, Users: a.Users, Audit: a.Audit, Settings: a.Settings, Now: a.now,
		Host: a.host(), Storages: slices.Sorted(maps.Keys(a.Config.Storages)),
	})
	a.Topics = topic.New(topic.Deps{DB: a.DB, Blobs: a.Blobs, Now: a.now})
	a.ServiceAccounts = serviceaccount.New(serviceaccount.Deps{Users: a.Users, Projects: a.Projects, Settings: a.Settings})
	a.Activity = activity.New(activity.Deps{DB: a.DB, Queue: a.Queue, Users: a.Users, Projects: a.Projects, Now: a.now})
	a.Notify = notify.New(notify.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Mail: a.Mail, Users: a.Users, Projects: a.Projects, Log: a.Log, Now: a.now,
		Delay: o.EmailDelay, Name: a.Config.ServiceName,
	})
	a.Repos = repo.New(repo.Deps{
		DB: a.DB, Queue: a.Queue, Git: a.Git, Users: a.Users, Projects: a.Projects, Activity: a.Activity, Settings: a.Settings,
		Storages: a.Config.Storages, Log: a.Log, Now: a.now,
	})
	a.PushRules = pushrule.New(pushrule.Deps{DB: a.DB, Projects: a.Projects, Now: a.now})
	a.Moves = storagemove.New(storagemove.Deps{Repos: a.Repos, Notices: a.Notices, Log: a.Log, Options: o.Moves})
	a.Images = imageproxy.New(imageproxy.Deps{
		Store: a.Blobs, Key: a.Keys.Derive("image proxy"), Site: a.Config.ExternalURL, Limits: limit.New(limit.Deps{Now: a.now}), Log: a.Log, Now: a.now,
		Policy: func(ctx context.Context) (imageproxy.Policy, error) {
			s, err := a.Settings.Current(ctx)
			return imageproxy.Policy{Enabled: s.ImageProxy, Local: s.AllowLocalRequests, Allowed: s.ImageAllowlist}, err
		},
	})
	removal.Handle(a.Queue, a.Blobs)
	for _, s := range a.buckets.storages {
		a.Queue.Every("bucket_sweep_"+s.Name, bucket.SweepEvery, s.Sweep)
	}
	a.Queue.Every("post_migrations", time.Minute, a.migratePost)
	a.Queue.Every("image_proxy_sweep", time.Hour, a.Images.Sweep)
	a.Markup = markup.New(markup.Deps{Log: a.Log, Images: a.Images.Rewriter})
	a.Answers = limit.NewAnswers(smallAnswer, largestAnswer, limit.ShareLimits{
		Total: 4, Reserve: 2, PerUser: 2, PerAddress: 1, Queue: 16, Wait: cmp.Or(o.AnswerWait, 5*time.Second),
	})
	a.Uploads = upload.New(upload.Deps{DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Projects: a.Projects, Now: a.now})
	a.Badges = badge.New(badge.Deps{DB: a.DB, Projects: a.Projects, Now: a.now})
	a.Plan = plan.New(plan.Deps{
		DB: a.DB, Queue: a.Queue, Users: a.Users, Projects: a.Projects, Activity: a.Activity, Repos: a.Repos,
		Notify: a.Notify, Markup: a.Markup, Now: a.now,
	})
	a.Comments = comment.New(comment.Deps{
		DB: a.DB, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Notify: a.Notify, Now: a.now,
	})
	a.Boards = board.New(board.Deps{DB: a.DB, Users: a.Users, Projects: a.Projects, Plan: a.Plan, Now: a.now})
	a.Merges = merge.New(merge.Deps{
		DB: a.DB, Queue: a.Queue, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Notify: a.Notify,
		URL: a.Config.ExternalURL, Now: a.now,
	})
	a.LFS = lfs.New(lfs.Deps{
		DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Keys: a.Keys, Settings: a.Settings, Projects: a.Projects, Repos: a.Repos,
		Log: a.Log, Now: a.now,
	})
	a.Snippets = snippet.New(snippet.Deps{
		DB: a.DB, Queue: a.Queue, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Now: a.now,
	})
	a.Wikis = wiki.New(wiki.Deps{DB: a.DB, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Now: a.now})
	a.Code = codesearch.New(codesearch.Deps{
		DB: a.DB, Queue: a.Queue, Projects: a.Projects, Repos: a.Repos, Log: a.Log, Now: a.now, Dir: codeDir(a.Config), Store: codeStore(a.Config, a.Blobs),
		Limits: codesearch.Limits{File: a.Config.CodeIndexFile, Project: a.Config.CodeIndexProject},
	})
	a.Search = search.New(search.Deps{
		DB: a.DB, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Merges: a.Merges, Snippets: a.Snippets, Wikis: a.Wikis,
		Code: a.Code,
	})
	a.Releases = release.New(release.Deps{DB: a.DB, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Plan: a.Plan, Notify: a.Notify, Now: a.now})
	runnerService := runners.New(runners.Deps{
		DB: a.DB, Keys: a.Keys, Notices: a.Notices, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Now: a.now,
	})
	artifacts := artifact.New(artifact.Deps{
		DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Settings: a.Settings, Projects: a.Projects, Now: a.now,
		Logs: joblog.New(joblog.Deps{
			DB: a.DB, Blobs: a.Blobs, Notices: a.Notices, Settings: a.Settings, Dir: filepath.Join(a.Config.DataDir, logFiles), Now: a.now,
		}),
	})
	variables := variable.New(variable.Deps{DB: a.DB, Keys: a.Keys, Settings: a.Settings, Projects: a.Projects, Now: a.now})
	schedules := schedule.New(schedule.Deps{
		DB: a.DB, Queue: a.Queue, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Variables: variables, Now: a.now,
	})
	triggers := trigger.New(trigger.Deps{
		DB: a.DB, Keys: a.Keys, Users: a.Users, Projects: a.Projects, Prefix: a.Config.Tokens(), Now: a.now,
	})
	jobTokens := jobtoken.New(jobtoken.Deps{DB: a.DB, Users: a.Users, Projects: a.Projects, Signing: a.Signing, Now: a.now})
	deployments := deployment.New(deployment.Deps{
		DB: a.DB, Users: a.Users, Projects: a.Projects, Repos: a.Repos, Now: a.now,
	})
	a.CI = ci.New(ci.Deps{
		DB: a.DB, Queue: a.Queue, Notices: a.Notices, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Repos: a.Repos,
		Merges: a.Merges, Releases: a.Releases, Notify: a.Notify, Now: a.now,
		Parts: ci.Parts{
			Artifacts: artifacts, Runners: runnerService, Deployments: deployments, Variables: variables, Schedules: schedules,
			Triggers: triggers, JobTokens: jobTokens,
		},
		Site: ci.Site{
			URL: a.Config.ExternalURL, Name: a.Config.ServiceName, Tokens: a.Config.Tokens(), Version: Compatibility, Revision: config.Revision(), SSHPort: a.sshPort(),
			TemplateDir: filepath.Join(a.Config.DataDir, "ci_templates"), Features: licensedFeatures(a.Config.Tier),
		},
	})
	a.Packages = packages.New(packages.Deps{
		DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Settings: a.Settings, Projects: a.Projects, CI: a.CI, Now: a.now,
	})
	a.Catalog = catalog.New(catalog.Deps{DB: a.DB, Queue: a.Queue, Projects: a.Projects, Repos: a.Repos, Releases: a.Releases, Now: a.now})
	a.Todos = todo.New(todo.Deps{
		DB: a.DB, Queue: a.Queue, Notices: a.Notices, Users: a.Users, Projects: a.Projects, Notify: a.Notify, Plan: a.Plan, Merges: a.Merges, Now: a.now,
	})
	a.Terraform = terraform.New(terraform.Deps{
		DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Keys: a.Keys, Settings: a.Settings, CI: a.CI, Now: a.now,
	})
	a.Broadcasts = broadcast.New(broadcast.Deps{DB: a.DB, Notices: a.Notices, Now: a.now})
	a.SecureFiles = securefile.New(securefile.Deps{DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Keys: a.Keys, CI: a.CI, Now: a.now})
	a.Invites = invite.New(invite.Deps{DB: a.DB, Mail: a.Mail, Users: a.Users, Projects: a.Projects, Now: a.now})
	a.Flags = featureflag.New(featureflag.Deps{DB: a.DB, Keys: a.Keys, Projects: a.Projects, Now: a.now, Prefix: a.Config.Tokens()})
	a.Pages = pages.New(pages.Deps{
		DB: a.DB, Queue: a.Queue, Blobs: a.Blobs, Keys: a.Keys, Notices: a.Notices, Settings: a.Settings, Projects: a.Projects, CI: a.CI,
		Log: a.Log, Now: a.now, Place: a.pagesPlace(), ACME: a.pagesACME(), Name: a.Config.ServiceName, CacheDir: a.pagesCache(), LookupTXT: o.LookupTXT,
	})
	a.Alerts = alert.New(alert.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Blobs: a.Blobs, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Plan: a.Plan, Notify: a.Notify, Now: a.now,
		Site: alert.Site{URL: a.Config.ExternalURL, Name: a.Config.ServiceName, Premium: a.Config.Tier != "free"},
	})
	a.Errors = errortrack.New(errortrack.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Settings: a.Settings, Projects: a.Projects, Now: a.now,
		URL: a.Config.ExternalURL, Name: a.Config.ServiceName,
	})
	a.OAuth = oauth.New(oauth.Deps{
		DB: a.DB, Queue: a.Queue, Signing: a.Signing, Users: a.Users, Projects: a.Projects, Now: a.now,
		URL: a.Config.ExternalURL, ServiceName: a.Config.ServiceName, TokenPrefix: a.Config.Tokens(),
	})
	if a.SignIn, err = signin.New(signin.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Log: a.Log, Now: a.now,
		Providers: a.providers(), URL: a.Config.ExternalURL,
	}); err != nil {
		return err
	}
	a.Transfer = transfer.New(transfer.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Blobs: a.Blobs, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Plan: a.Plan, Boards: a.Boards, Badges: a.Badges, Wikis: a.Wikis,
		Content: transfer.Content{Repos: a.Repos, PushRules: a.PushRules, Uploads: a.Uploads, LFS: a.LFS, Code: a.Code},
		Mail:    a.Mail, Log: a.Log, Now: a.now, TempDir: a.tempDir(),
		Limits: remote.Limits{Stall: o.RemoteStall},
	})
	a.Mirrors = mirror.New(mirror.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Settings: a.Settings, Users: a.Users, Projects: a.Projects, Repos: a.Repos, LFS: a.LFS,
		Log: a.Log, Now: a.now, Stall: o.RemoteStall,
	})
	a.Hooks = hook.New(hook.Deps{
		DB: a.DB, Queue: a.Queue, Keys: a.Keys, Notices: a.Notices, Settings: a.Settings, Projects: a.Projects, Repos: a.Repos, Wikis: a.Wikis, Mail: a.Mail, Log: a.Log, Now: a.now,
		Site: hook.Site{URL: a.Config.ExternalURL, Name: a.Config.ServiceName, Host: a.host(), SSHPort: a.sshPort(), Version: Compatibility},
	})
	a.Instance = instance.New(instance.Deps{
		DB: a.DB, Queue: a.Queue, Settings: a.Settings, Mail: a.Mail, Blobs: a.Blobs, Storages: a.Config.Storages,
		ExternalURL: a.Config.ExternalURL, Now: a.now,
	})
	a.subscribe()
	a.provide()
	return nil
}

// licensedFeatures returns the features of a tier for the CI/CD variable
// GITLAB_FEATURES.
func licensedFeatures(tier string) []string {
	if tier == "free" {
		return nil
	}
	return []string{
		"audit_events", "code_owner_approval_required", "code_owners", "commit_committer_check", "group_wikis", "issuable_default_templates",
		"merge_request_approvers", "multiple_approval_rules", "multiple_issue_assignees", "multiple_issue_boards", "multiple_merge_request_assignees",
		"multiple_merge_request_reviewers", "protected_refs_for_users", "push_rules", "reject_unsigned_commits",
	}
}

// host returns the host name of the external URL.
func (a *App) host() string {
	u, err := url.Parse(a.Config.ExternalURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// sshPort returns the port of Git over SSH for the URLs of repositories.
func (a *App) sshPort() string {
	_, port, err := net.SplitHostPort(a.Config.SSHAddr)
	if err != nil {
		return "" // the SSH server is disabled
	}
	if a.Config.SSHPort != 0 {
		return strconv.Itoa(a.Config.SSHPort)
	}
	return port
}

// KeyFile is the path of the instance key.
func (a *App) KeyFile() string { return filepath.Join(a.Config.DataDir, "secret.key") }

// DatabaseFile returns the path of the SQLite database.
func (a *App) DatabaseFile() string { return filepath.Join(a.Config.DataDir, "svc.db") }

// codeIndex is the directory of the code search index in the default storage, which
// all nodes share.
const codeIndex = "code_index"

// tempDir returns the directory for temporary files. It is on the file system of the
// data directory, so that a large upload does not fill another disk.
func (a *App) tempDir() string { return filepath.Join(a.Config.DataDir, "tmp") }

// Close releases all resources that Open acquired.
func (a *App) Close() error {
	var faults []error
	if a.Git != nil {
		a.Git.Close()
	}
	if a.Code != nil {
		a.Code.Close()
	}
	if a.buckets != nil {
		faults = append(faults, a.buckets.close())
	}
	if a.Blobs != nil {
		faults = append(faults, a.Blobs.Close())
	}
	if a.DB != nil {
		faults = append(faults, a.DB.Close())
	}
	if a.claim != nil {
		faults = append(faults, a.giveUpData())
	}
	if a.listener != nil {
		faults = append(faults, a.listener.Close())
	}
	return errors.Join(faults...)
}

// interfaces creates the API and the web pages. health returns the samples of this
// node for the pages.
func (a *App) interfaces(health func() []web.Sample) (*api.API, *web.Web) {
	tiers := map[string]api.Tier{"free": api.Free, "premium": api.Premium, "ultimate": api.Ultimate}
	rest := api.New(api.Deps{
		Users: a.Users, Audit: a.Audit, Settings: a.Settings, Projects: a.Projects, Activity: a.Activity, Notify: a.Notify, Repos: a.Repos, PushRules: a.PushRules, Topics: a.Topics, ServiceAccounts: a.ServiceAccounts, Moves: a.Moves, Plan: a.Plan, Comments: a.Comments, Boards: a.Boards, Uploads: a.Uploads, Badges: a.Badges, Merges: a.Merges, LFS: a.LFS,
		Snippets: a.Snippets, Wikis: a.Wikis, Search: a.Search, Releases: a.Releases, CI: a.CI, Packages: a.Packages, Pages: a.Pages, Alerts: a.Alerts, Errors: a.Errors, Todos: a.Todos,
		Signing: a.Signing, OAuth: a.OAuth, SignIn: a.SignIn, Transfer: a.Transfer, Mirrors: a.Mirrors, Hooks: a.Hooks,
		Terraform: a.Terraform, Flags: a.Flags, Catalog: a.Catalog, Broadcasts: a.Broadcasts, SecureFiles: a.SecureFiles, Invites: a.Invites, Instance: a.Instance,
		Limits: limit.New(limit.Deps{Now: a.now}), Answers: a.Answers, Spool: a.Git.Spool,
		Site: api.Site{
			URL: a.Config.ExternalURL, Name: a.Config.ServiceName, Tokens: a.Config.Tokens(), Cookies: a.Config.Cookies(), Tier: tiers[a.Config.Tier], Hosted: a.Config.Hosted,
			Backend: a.Config.ErrorBackendName, SSHPort: a.sshPort(),
			Version: Compatibility, Revision: config.Revision(),
		},
		Log: a.Log, Now: a.now, TempDir: a.tempDir(),
	})
	pages := web.New(web.Deps{
		Users: a.Users, Projects: a.Projects, Activity: a.Activity, Repos: a.Repos, PushRules: a.PushRules, Topics: a.Topics, ServiceAccounts: a.ServiceAccounts, Moves: a.Moves, Plan: a.Plan, Comments: a.Comments, Boards: a.Boards, Uploads: a.Uploads, Badges: a.Badges, Merges: a.Merges, LFS: a.LFS, Notify: a.Notify, Settings: a.Settings, OAuth: a.OAuth, SignIn: a.SignIn, Mail: a.Mail, Keys: a.Keys,
		Snippets: a.Snippets, Wikis: a.Wikis, Search: a.Search, Releases: a.Releases, Transfer: a.Transfer, Mirrors: a.Mirrors, Hooks: a.Hooks, Markup: a.Markup, Images: a.Images,
		CI: a.CI, Packages: a.Packages, Todos: a.Todos, Pages: a.Pages, Alerts: a.Alerts, Errors: a.Errors, Audit: a.Audit, Instance: a.Instance, Health: health,
		Terraform: a.Terraform, Flags: a.Flags, Catalog: a.Catalog, Broadcasts: a.Broadcasts, SecureFiles: a.SecureFiles, Invites: a.Invites,
		Limits: limit.New(limit.Deps{Now: a.now}), Answers: a.Answers, Spool: a.Git.Spool, Log: a.Log, Now: a.now,
		Site: web.Site{
			URL: a.Config.ExternalURL, Name: a.Config.ServiceName, Cookies: a.Config.Cookies(), SSHHost: a.host(), SSHPort: a.sshPort(), Version: config.Version(),
		},
	})
	return rest, pages
}
