package web

import (
	"svc/internal/instance"
)

const setupAt = "/admin/setup"

// setupPage is the setup checklist of the instance.
type setupPage struct{ Checks []instance.Check }

func (setupPage) view() string  { return "admin/setup" }
func (setupPage) title() string { return "Setup · Admin area" }

// Left is the number of items that are not done.
func (p setupPage) Left() (n int) {
	for _, c := range p.Checks {
		if c.State != instance.Done {
			n++
		}
	}
	return n
}

func (w *Web) adminSetup(v *visit) error {
	var p setupPage
	var err error
	if p.Checks, err = w.Instance.Setup(v, v.actor, v.r.Host); err != nil {
		return err
	}
	return v.show(p)
}

func (w *Web) sendTestEmail(v *visit) error {
	return v.redirectWithFlash(w.Instance.SendTestEmail(v, v.actor), "Test email sent to "+v.actor.Email+".", setupAt)
}
