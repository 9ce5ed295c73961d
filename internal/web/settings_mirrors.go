package web

import (
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/mirror"
	"svc/internal/project"
)

func (w *Web) mirrorPages() {
	for pattern, do := range map[string]func(*visit, project.Place) error{
		"GET settings/mirrors": w.mirrors, "POST settings/mirrors": w.createMirror, "POST settings/mirrors/detect": w.detectHostKeys,
		"POST settings/mirrors/{id}/sync": w.syncMirror, "POST settings/mirrors/{id}/enable": w.enableMirror, "POST settings/mirrors/{id}/delete": w.deleteMirror,
		"POST settings/mirrors/{id}/host_keys": w.saveHostKeys,
	} {
		w.projectPage(pattern, signedIn, ofProject(do))
	}
}

// mirrorsPage has the mirrors of a project.
type mirrorsPage struct {
	setup
	Form       form
	Mirrors    []mirrorRow
	CanAdd     bool
	Methods    []option
	Directions []option
}

// mirrorRow is a mirror in the list.
type mirrorRow struct{ *mirror.Mirror }

// Key identifies the mirror in URLs: a project has one pull mirror.
func (r mirrorRow) Key() string {
	if r.Direction == mirror.Pull {
		return string(mirror.Pull)
	}
	return strconv.FormatInt(r.ID, 10)
}

func (mirrorsPage) view() string    { return "project/settings_mirrors" }
func (p mirrorsPage) title() string { return "Mirroring repositories · " + p.Name() }

func (w *Web) mirrors(v *visit, in project.Place) error {
	return w.showMirrors(v, in, filled("auth_method", string(mirror.ByPassword), "direction", string(mirror.Push)))
}

func (w *Web) showMirrors(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "mirrors")
	if err != nil {
		return err
	}
	p := mirrorsPage{
		setup: s, Form: f, Methods: []option{{string(mirror.ByPassword), "Username and password"}, {string(mirror.BySSHKey), "SSH public key"}},
		Directions: []option{{string(mirror.Push), "Push"}, {string(mirror.Pull), "Pull"}},
	}
	pull, err := w.Mirrors.PullMirror(v, v.actor, in.Ref)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return err
	}
	if err == nil {
		p.Mirrors = append(p.Mirrors, mirrorRow{pull})
	}
	page, err := w.Mirrors.PushMirrors(v, v.actor, in.Ref, allOf())
	if err != nil {
		return err
	}
	for _, m := range page.Items {
		p.Mirrors = append(p.Mirrors, mirrorRow{m})
	}
	if p.CanAdd, err = w.Mirrors.CanAdd(v, v.actor); err != nil {
		return err
	}
	p.Form.only("url", "user", "password", "auth_method", "host_keys", "mirror_branch_regex", "base")
	return v.showForm(p, f)
}

// sentMirror reads the fields of a mirror.
func (v *visit) sentMirror() mirror.Fields {
	enabled := true
	address, method, pattern := v.text("url"), v.text("auth_method"), v.text("mirror_branch_regex")
	protected, keep := v.ticked("only_protected_branches"), v.ticked("keep_divergent_refs")
	keys := strings.Split(v.text("host_keys"), "\n")
	f := mirror.Fields{
		URL: &address, Enabled: &enabled, AuthMethod: &method, HostKeys: &keys, OnlyProtected: &protected, KeepDiverged: &keep, BranchRegex: &pattern,
	}
	if user := v.text("user"); user != "" {
		f.User = &user
	}
	if password := v.r.PostForm.Get("password"); password != "" {
		f.Password = &password
	}
	return f
}

// refusedMirror shows the form again. The password is not repeated.
func (w *Web) refusedMirror(v *visit, in project.Place, err error) error {
	f := v.sent()
	f.Values.Del("password")
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showMirrors(v, in, f)
}

func (w *Web) createMirror(v *visit, in project.Place) error {
	f := v.sentMirror()
	var err error
	if v.text("direction") == string(mirror.Pull) {
		keep, trigger := !v.ticked("mirror_overwrites_diverged_branches"), v.ticked("mirror_trigger_builds")
		f.KeepDiverged, f.TriggerPipelines = &keep, &trigger
		_, err = w.Mirrors.SavePullMirror(v, v.actor, in.Ref, f)
	} else {
		_, err = w.Mirrors.CreatePushMirror(v, v.actor, in.Ref, f)
	}
	if err != nil {
		return w.refusedMirror(v, in, err)
	}
	return v.done("The mirror was added.", settingsOf(in, "mirrors"))
}

// detectHostKeys fills the host keys into the form of a new mirror.
func (w *Web) detectHostKeys(v *visit, in project.Place) error {
	keys, err := w.Mirrors.DetectHostKeys(v, v.actor, in.Ref, v.text("url"))
	if err == nil {
		v.r.PostForm.Set("host_keys", strings.Join(keys, "\n"))
	}
	return w.refusedMirror(v, in, err)
}

// mirrorAt returns the mirror that the URL names.
type mirrorAt struct {
	id   int64
	pull bool
}

func (w *Web) mirrorAt(v *visit) (mirrorAt, error) {
	if chi.URLParam(v.r, "id") == string(mirror.Pull) {
		return mirrorAt{pull: true}, nil
	}
	id, err := v.number("id")
	return mirrorAt{id: id}, err
}

// changeMirror changes a mirror.
func (w *Web) changeMirror(v *visit, in project.Place, at mirrorAt, f mirror.Fields) error {
	var err error
	if at.pull {
		_, err = w.Mirrors.SavePullMirror(v, v.actor, in.Ref, f)
	} else {
		_, err = w.Mirrors.UpdatePushMirror(v, v.actor, in.Ref, at.id, f)
	}
	return err
}

// saveHostKeys pins the host keys that the server of a mirror has now.
func (w *Web) saveHostKeys(v *visit, in project.Place) error {
	at, err := w.mirrorAt(v)
	if err != nil {
		return err
	}
	var m *mirror.Mirror
	if at.pull {
		m, err = w.Mirrors.PullMirror(v, v.actor, in.Ref)
	} else {
		m, err = w.Mirrors.PushMirror(v, v.actor, in.Ref, at.id)
	}
	if err != nil {
		return err
	}
	keys, err := w.Mirrors.DetectHostKeys(v, v.actor, in.Ref, m.URL)
	if err == nil {
		err = w.changeMirror(v, in, at, mirror.Fields{HostKeys: &keys})
	}
	return v.redirectWithFlash(err, "The host keys were saved. Compare their fingerprints with those of the server.", settingsOf(in, "mirrors"))
}

func (w *Web) syncMirror(v *visit, in project.Place) error {
	at, err := w.mirrorAt(v)
	switch {
	case err != nil:
		return err
	case at.pull:
		err = w.Mirrors.StartPull(v, v.actor, in.Ref)
	default:
		err = w.Mirrors.SyncPushMirror(v, v.actor, in.Ref, at.id)
	}
	return v.redirectWithFlash(err, "The mirror is being updated.", settingsOf(in, "mirrors"))
}

func (w *Web) deleteMirror(v *visit, in project.Place) error {
	at, err := w.mirrorAt(v)
	switch {
	case err != nil:
		return err
	case at.pull:
		err = w.Mirrors.DeletePullMirror(v, v.actor, in.Ref)
	default:
		err = w.Mirrors.DeletePushMirror(v, v.actor, in.Ref, at.id)
	}
	return v.redirectWithFlash(err, "The mirror was removed.", settingsOf(in, "mirrors"))
}

func (w *Web) enableMirror(v *visit, in project.Place) error {
	at, err := w.mirrorAt(v)
	if err != nil {
		return err
	}
	enabled, done := v.ticked("enabled"), "The mirror was disabled."
	if enabled {
		done = "The mirror was enabled."
	}
	return v.redirectWithFlash(w.changeMirror(v, in, at, mirror.Fields{Enabled: &enabled}), done, settingsOf(in, "mirrors"))
}
