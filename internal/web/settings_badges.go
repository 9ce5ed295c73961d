package web

import (
	"svc/internal/badge"
	"svc/internal/project"
)

func (w *Web) badgePages() {
	w.settingsPage("GET settings/badges", w.badges)
	w.settingsPage("POST settings/badges", w.createBadge)
	w.settingsPage("GET settings/badges/{id}/edit", w.editBadge)
	w.settingsPage("POST settings/badges/{id}", w.updateBadge)
	w.settingsPage("POST settings/badges/{id}/delete", w.deleteBadge)
}

type badgesPage struct {
	setup
	ID     int64 // the one that is changed; 0 for a new one
	Form   form
	Badges []badgeView
}

// badgeView is a badge as it is shown. Images of other sites are loaded through the
// image proxy, so that these sites do not learn who views the page.
type badgeView struct {
	*badge.Badge
	Picture string // URL of the image; empty if it is not shown
	Own     bool   // not inherited
}

// Text is the alternative text of the image.
func (b badgeView) Text() string {
	if b.Name != "" {
		return b.Name
	}
	return "Badge"
}

func (badgesPage) view() string    { return "shared/settings_badges" }
func (p badgesPage) title() string { return "Badges · " + p.Name() }

func (w *Web) badgeViews(v *visit, list []*badge.Badge, group bool) ([]badgeView, error) {
	lead, err := w.Images.Rewriter(v)
	if err != nil {
		return nil, err
	}
	var views []badgeView
	for _, b := range list {
		views = append(views, badgeView{b, lead(b.RenderedImage), group == (b.GroupID != nil)})
	}
	return views, nil
}

// maxBadges is the maximum number of badges on the page of a project.
const maxBadges = 20

func (w *Web) badges(v *visit, in project.Place) error { return w.showBadges(v, in, 0, filled()) }

func (w *Web) showBadges(v *visit, in project.Place, id int64, f form) error {
	s, err := w.setup(v, in, "badges")
	if err != nil {
		return err
	}
	page, err := w.Badges.List(v, v.actor, in, "", allOf())
	if err != nil {
		return err
	}
	f.only("name", "link_url", "image_url")
	views, err := w.badgeViews(v, page.Items, in.Group)
	if err != nil {
		return err
	}
	return v.showForm(badgesPage{s, id, f, views}, f)
}

func (w *Web) editBadge(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	b, err := w.Badges.Get(v, v.actor, in, id)
	if err != nil {
		return err
	}
	return w.showBadges(v, in, id, filled("name", b.Name, "link_url", b.LinkURL, "image_url", b.ImageURL))
}

// saveBadge creates or changes a badge, and shows the form again if it is
// refused.
func (w *Web) saveBadge(v *visit, in project.Place, id int64, done string, save func(badge.Fields) (*badge.Badge, error)) error {
	name, link, image := v.text("name"), v.text("link_url"), v.text("image_url")
	if _, err := save(badge.Fields{Name: &name, LinkURL: &link, ImageURL: &image}); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showBadges(v, in, id, f)
	}
	return v.done(done, settingsOf(in, "badges"))
}

func (w *Web) createBadge(v *visit, in project.Place) error {
	return w.saveBadge(v, in, 0, "The badge was added.", func(f badge.Fields) (*badge.Badge, error) {
		return w.Badges.Create(v, v.actor, in, f)
	})
}

func (w *Web) updateBadge(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return w.saveBadge(v, in, id, "The badge was updated.", func(f badge.Fields) (*badge.Badge, error) {
		return w.Badges.Update(v, v.actor, in, id, f)
	})
}

func (w *Web) deleteBadge(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Badges.Delete(v, v.actor, in, id), "The badge was deleted.", settingsOf(in, "badges"))
}
