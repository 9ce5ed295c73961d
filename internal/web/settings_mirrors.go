package web

import (
	"context"
	"strings"

	"svc/internal/actor"
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
	Form    form
	Mirrors []*mirror.Mirror
	CanAdd  bool
	Methods []option
}

func (mirrorsPage) view() string    { return "project/settings_mirrors" }
func (p mirrorsPage) title() string { return "Mirroring repositories · " + p.Name() }

func (w *Web) mirrors(v *visit, in project.Place) error {
	return w.showMirrors(v, in, filled("auth_method", string(mirror.ByPassword)))
}

func (w *Web) showMirrors(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "mirrors")
	if err != nil {
		return err
	}
	p := mirrorsPage{setup: s, Form: f, Methods: []option{{string(mirror.ByPassword), "User name and password"}, {string(mirror.BySSHKey), "SSH public key"}}}
	page, err := w.Mirrors.PushMirrors(v, v.actor, in.Ref, allOf())
	if err != nil {
		return err
	}
	p.Mirrors = page.Items
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
	if _, err := w.Mirrors.CreatePushMirror(v, v.actor, in.Ref, v.sentMirror()); err != nil {
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

// saveHostKeys pins the host keys that the server of a mirror has now.
func (w *Web) saveHostKeys(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	m, err := w.Mirrors.PushMirror(v, v.actor, in.Ref, id)
	if err != nil {
		return err
	}
	keys, err := w.Mirrors.DetectHostKeys(v, v.actor, in.Ref, m.URL)
	if err == nil {
		_, err = w.Mirrors.UpdatePushMirror(v, v.actor, in.Ref, id, mirror.Fields{HostKeys: &keys})
	}
	return v.redirectWithFlash(err, "The host keys were saved. Compare their fingerprints with those of the server.", settingsOf(in, "mirrors"))
}

func (w *Web) syncMirror(v *visit, in project.Place) error {
	return w.actOnMirror(v, in, "The mirror is being updated.", w.Mirrors.SyncPushMirror)
}

func (w *Web) deleteMirror(v *visit, in project.Place) error {
	return w.actOnMirror(v, in, "The mirror was removed.", w.Mirrors.DeletePushMirror)
}

func (w *Web) enableMirror(v *visit, in project.Place) error {
	enabled, done := v.ticked("enabled"), "The mirror was disabled."
	if enabled {
		done = "The mirror was enabled."
	}
	return w.actOnMirror(v, in, done, func(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
		_, err := w.Mirrors.UpdatePushMirror(ctx, by, ref, id, mirror.Fields{Enabled: &enabled})
		return err
	})
}

func (w *Web) actOnMirror(v *visit, in project.Place, done string, act func(context.Context, actor.Actor, project.Ref, int64) error) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(act(v, v.actor, in.Ref, id), done, settingsOf(in, "mirrors"))
}
