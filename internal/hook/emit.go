package hook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// object is a JSON object of a payload.
type object = map[string]any

// occurrence is an event for hooks.
type occurrence struct {
	projectID int64 // 0: none
	trigger   Trigger
	branch    string // of a push, for the branch filter
	chat      chatFacts
	payload   object
	pending   pending
}

// pending lists the parts of a payload that are read from a repository later, because no
// git process may run in the transaction of the event. Commits are immutable, so they can
// be read at any time.
type pending struct {
	// Push has the range whose commits are added.
	Push *pushRange `json:"push,omitempty"`
	// Commits are commits by the path of the object that they become.
	Commits map[string]string `json:"commits,omitempty"`
	// Titles are commits by the path of the text that becomes their title.
	Titles map[string]string `json:"titles,omitempty"`
	Wiki   *wikiPage         `json:"wiki,omitempty"`
	// Snippet is the file whose content is added to the snippet of a comment.
	Snippet *snippetFile `json:"snippet,omitempty"`
}

type snippetFile struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type pushRange struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

type wikiPage struct {
	ProjectID *int64 `json:"project_id,omitempty"`
	GroupID   *int64 `json:"group_id,omitempty"`
	SHA       string `json:"sha"`
	Slug      string `json:"slug"`
}

// maxPayload is the largest payload.
const maxPayload = 5 << 20

// wanting returns the listeners that want an event.
func wanting(list []listener, o occurrence) []listener {
	var found []listener
	for _, l := range list {
		if l.kind != Webhook && (l.disabled || overridden(list, l) || !l.options.notifies(o)) {
			continue
		}
		if l.wants(o.trigger, o.branch) {
			found = append(found, l)
		}
	}
	return found
}

// overridden reports whether the project, or a group that is nearer to it, has its
// own integration of the kind.
func overridden(list []listener, l listener) bool {
	return slices.ContainsFunc(list, func(other listener) bool { return other.kind == l.kind && other.distance < l.distance })
}

// wants reports whether one of the listeners wants events of one of the triggers.
func wants(list []listener, triggers ...Trigger) bool {
	return slices.ContainsFunc(list, func(l listener) bool {
		return !l.disabled && slices.ContainsFunc(triggers, func(t Trigger) bool { return slices.Contains(l.triggers, t) })
	})
}

// emit stores events for the listeners that want them, in the transaction of the
// events, and adds the background jobs that deliver them.
func (s *Service) emit(ctx context.Context, tx *db.Tx, list []listener, events ...occurrence) error {
	var woken []int64
	for _, o := range events {
		ids, err := s.store(ctx, tx, wanting(list, o), o)
		if err != nil {
			return err
		}
		woken = append(woken, ids...)
	}
	slices.Sort(woken)
	return s.wake(ctx, tx, slices.Compact(woken)...)
}

// store stores an event and its deliveries. It returns the hooks that have new
// deliveries.
func (s *Service) store(ctx context.Context, tx *db.Tx, list []listener, o occurrence) ([]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	payload, err := json.Marshal(o.payload)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", o.trigger, err)
	}
	if len(payload) > maxPayload {
		s.Log.WarnContext(ctx, "webhook payload is too large", "trigger", o.trigger, "bytes", len(payload))
		return nil, nil
	}
	e := &captured{uuid: newUUID(), trigger: o.trigger, header: o.trigger.info().Header, payload: payload, at: s.Now()}
	var before []int64
	if cause := event.Cause(ctx); cause != "" {
		if before, err = findTriggered(ctx, tx, cause, maxChain); err != nil {
			return nil, err
		}
		// A UUID that was never sent to a hook was invented by the caller. It does not count,
		// because callers could use it to hide changes from webhooks.
		if len(before) > 0 {
			e.uuid = cause
		}
	}
	if o.projectID != 0 {
		e.projectID = &o.projectID
	}
	if p, err := json.Marshal(o.pending); err != nil {
		return nil, err
	} else if string(p) != "{}" {
		e.pending = string(p)
	}
	if err := insertEvent(ctx, tx, e); err != nil {
		return nil, fmt.Errorf("store event for hooks: %w", err)
	}
	var woken []int64
	var deliveries []*Delivery
	for _, l := range list {
		d := &Delivery{HookID: l.id, eventID: e.id, waiting: true, Key: newUUID(), CreatedAt: e.at}
		// Only the hooks of the chain are blocked: others would miss events of a caller who
		// sends the UUID of a request that their own hook got.
		if slices.Contains(before, l.id) {
			d.waiting, d.Error = false, "the webhook was triggered by itself and is blocked"
			if err := countLogged(ctx, tx, l.id, 1); err != nil {
				return nil, err
			}
		} else {
			woken = append(woken, l.id)
		}
		deliveries = append(deliveries, d)
	}
	if err := insertDeliveries(ctx, tx, deliveries); err != nil {
		return nil, fmt.Errorf("store deliveries: %w", err)
	}
	return woken, nil
}

// maxChain is the maximum number of hooks in a chain, in which each was triggered by a
// request of the receiver of the one before.
const maxChain = 100

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// fillTime bounds the time in which a payload is completed.
const fillTime = time.Minute

// complete reads the missing parts of the payload of a delivery, and stores them for
// the other deliveries of the event.
func (s *Service) complete(ctx context.Context, d *Delivery) error {
	e, err := findEvent(ctx, s.DB, d.eventID)
	if err != nil {
		return err
	}
	d.payload = string(e.payload)
	if e.pending == "" {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	if err := s.fill(within, e); err != nil {
		return fmt.Errorf("complete event %d: %w", e.id, err)
	}
	d.payload = string(e.payload)
	return completeEvent(ctx, s.DB, e)
}

// fill reads commits into a payload. It leaves out commits that no longer exist, and
// those that would make the payload too large.
func (s *Service) fill(ctx context.Context, e *captured) error {
	var p pending
	if err := json.Unmarshal([]byte(e.pending), &p); err != nil {
		return err
	}
	payload := object{}
	if err := json.Unmarshal(e.payload, &payload); err != nil {
		return err
	}
	if w := p.Wiki; w != nil {
		text, message, err := s.Wikis.PageAt(ctx, w.ProjectID, w.GroupID, w.SHA, w.Slug)
		if err != nil && !errs.IsRefusal(err) {
			return err
		}
		setPath(payload, "object_attributes.content", clip(text, maxWiki))
		setPath(payload, "object_attributes.message", clip(message, maxMessage))
	}
	if f := p.Snippet; f != nil {
		text, err := s.snippetText(ctx, *f)
		if err != nil {
			return err
		}
		setPath(payload, "snippet.content", storable(text))
	}
	if e.projectID != nil && (p.Push != nil || p.Commits != nil || p.Titles != nil) {
		in, err := s.Projects.Require(ctx, actor.System(), project.RefTo(*e.projectID), project.NoAccess)
		switch {
		case errs.IsRefusal(err): // it was deleted
		case err != nil:
			return err
		default:
			if err := s.fillCommits(ctx, in, payload, p); err != nil {
				return err
			}
		}
	}
	full, err := json.Marshal(payload)
	if err == nil && len(full) > maxPayload {
		payload["commits"] = []any{}
		setPath(payload, "object_attributes.content", "")
		setPath(payload, "snippet.content", "")
		full, err = json.Marshal(payload)
	}
	e.payload, e.pending = full, ""
	return err
}

// snippetText returns the content of a file of a snippet, up to a limit; empty if it does not
// exist any more.
func (s *Service) snippetText(ctx context.Context, f snippetFile) (string, error) {
	a, err := s.Repos.SnippetAuxRepo(ctx, f.ID)
	if err != nil || a == nil {
		return "", err
	}
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		return "", err
	}
	entry, err := r.Entry(ctx, "HEAD", f.Name)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrNoRepository) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	content, err := r.Open(ctx, entry.OID)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(content, maxSnippet))
	return string(text), errors.Join(err, content.Close())
}

func (s *Service) fillCommits(ctx context.Context, in *project.Project, payload object, p pending) error {
	for at, sha := range p.Commits {
		c, err := s.commit(ctx, in, sha)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		switch kind, _ := payload["object_kind"].(string); {
		case at == "commit" && kind == "build":
			s.fillJobCommit(payload, c)
		default:
			setPath(payload, at, s.commitObject(in, c))
		}
	}
	for at, sha := range p.Titles {
		c, err := s.commit(ctx, in, sha)
		if err != nil {
			return err
		}
		if c != nil {
			setPath(payload, at, clip(c.Title, maxLine))
		}
	}
	if p.Push == nil {
		return nil
	}
	return s.fillPush(ctx, in, payload, *p.Push)
}

// setPath sets a value in nested objects: "object_attributes.last_commit".
func setPath(o object, at string, value any) {
	names := strings.Split(at, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := o[name].(map[string]any)
		if !ok {
			return
		}
		o = next
	}
	o[names[len(names)-1]] = value
}

// commit returns a commit of a project; nil if it does not exist any more.
func (s *Service) commit(ctx context.Context, in *project.Project, sha string) (*git.Commit, error) {
	_, c, err := s.Repos.Commit(ctx, actor.System(), project.RefTo(in.ID), sha, false)
	if errs.IsRefusal(err) || errors.Is(err, git.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.Commit, nil
}

// Limits of repository data in payloads.
const (
	maxCommits = 20
	maxFiles   = 1000     // of each list of a commit
	maxNames   = 1 << 20  // bytes of the files of all commits
	maxMessage = 64 << 10 // bytes of a commit message
	maxLine    = 1 << 10  // bytes of a title or name
	maxWiki    = 1 << 20  // bytes of a wiki page
	maxSnippet = 1 << 20  // bytes of a file of a snippet
)

// fillPush adds the commits of a push.
func (s *Service) fillPush(ctx context.Context, in *project.Project, payload object, r pushRange) error {
	name, isBranch := cutRef(r.Ref)
	if isBranch {
		protected, err := repo.BranchProtected(ctx, s.DB, in.ID, name)
		if err != nil {
			return err
		}
		payload["ref_protected"] = protected
	}
	if r.New == string(git.ZeroOID) {
		return nil
	}
	list, total, err := s.pushed(ctx, in, r, name, isBranch)
	if err != nil {
		return err
	}
	commits, left := []any{}, maxNames
	for _, c := range slices.Backward(list) { // oldest first
		o := s.commitObject(in, c)
		if o["added"], o["modified"], o["removed"], err = s.files(ctx, in, c, &left); err != nil {
			return err
		}
		commits = append(commits, o)
	}
	payload["commits"], payload["total_commits_count"] = commits, total
	if !isBranch {
		if _, tag, err := s.Repos.Tag(ctx, actor.System(), project.RefTo(in.ID), name); err == nil && tag.Message != "" {
			payload["message"] = clip(tag.Message, maxMessage)
		}
	}
	return nil
}

// pushed returns the newest commits of a push, newest first, and their number. For a new
// branch these are the commits that the default branch lacks; for a tag, the commit that
// it points to.
func (s *Service) pushed(ctx context.Context, in *project.Project, r pushRange, name string, isBranch bool) ([]*git.Commit, int, error) {
	if !isBranch {
		c, err := s.commit(ctx, in, r.New)
		if err != nil || c == nil {
			return nil, 0, err
		}
		return []*git.Commit{c}, 1, nil
	}
	base := git.OID(r.Old)
	if base == git.ZeroOID {
		if base = ""; name != in.DefaultBranch && in.DefaultBranch != "" {
			base = git.OID(git.Heads + in.DefaultBranch)
			if c, err := s.commit(ctx, in, string(base)); err != nil {
				return nil, 0, err
			} else if c != nil {
				base = c.ID
			} else {
				base = ""
			}
		}
	}
	page, err := s.Repos.CommitsOf(ctx, in, base, git.OID(r.New), db.Paging{Limit: maxCommits, Totals: true})
	if errs.IsRefusal(err) { // a commit was removed since
		return nil, 0, nil
	}
	return page.Items, page.Total, err
}

// files returns the paths that a commit added, changed and removed. left is the number
// of bytes that remain for paths in the payload.
func (s *Service) files(ctx context.Context, in *project.Project, c *git.Commit, left *int) (added, modified, removed []string, err error) {
	added, modified, removed = []string{}, []string{}, []string{}
	var parent git.OID
	if len(c.ParentIDs) > 0 {
		parent = c.ParentIDs[0]
	}
	d, err := s.Repos.DiffOf(ctx, in, parent, c.ID, git.DiffOptions{MaxFiles: 1, MaxLines: 1})
	if errs.IsRefusal(err) {
		return added, modified, removed, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	put := func(list *[]string, name string) {
		if len(*list) < maxFiles && *left >= len(name) {
			*left -= len(name)
			*list = append(*list, name)
		}
	}
	for _, f := range d.Files {
		switch {
		case f.New:
			put(&added, f.NewPath)
		case f.Deleted:
			put(&removed, f.OldPath)
		case f.Renamed:
			put(&added, f.NewPath)
			put(&removed, f.OldPath)
		default:
			put(&modified, f.NewPath)
		}
	}
	return added, modified, removed, nil
}
