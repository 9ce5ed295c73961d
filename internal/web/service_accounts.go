package web

import (
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// serviceAccountPages are the pages of the service accounts of a group, in its
// settings, and of the instance, in the Admin area.
func (w *Web) serviceAccountPages() {
	for pattern, do := range map[string]func(*visit, accountOwner) error{
		"GET service_accounts":                                w.serviceAccounts,
		"POST service_accounts":                               w.createServiceAccount,
		"GET service_accounts/{id}":                           w.serviceAccount,
		"POST service_accounts/{id}":                          w.updateServiceAccount,
		"POST service_accounts/{id}/delete":                   w.deleteServiceAccount,
		"POST service_accounts/{id}/tokens":                   w.createServiceAccountToken,
		"POST service_accounts/{id}/tokens/{token_id}/rotate": w.rotateServiceAccountToken,
		"POST service_accounts/{id}/tokens/{token_id}/revoke": w.revokeServiceAccountToken,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		w.groupPage(method+" settings/"+path, signedIn, func(v *visit, ref project.Ref) error { return do(v, accountOwner{group: ref}) })
		w.page(method+" /admin/"+path, admins, func(v *visit) error { return do(v, accountOwner{}) })
	}
}

// accountOwner is the group whose service accounts a page manages. It is empty
// for the instance.
type accountOwner struct{ group project.Ref }

func (o accountOwner) place() project.Place { return project.Place{Ref: o.group, Group: true} }

// at is the address of the list.
func (o accountOwner) at() string {
	if o.group == "" {
		return "/admin/service_accounts"
	}
	return settingsOf(o.place(), "service_accounts")
}

// of is the address of an account.
func (o accountOwner) of(id int64) string { return o.at() + "/" + strconv.FormatInt(id, 10) }

// accountHead has the common data of both pages. A page of the Admin area has
// no group.
type accountHead struct {
	setup
	Admin bool
	At    string // the address of the list
}

func (w *Web) accountHead(v *visit, o accountOwner) (accountHead, error) {
	if o.group == "" {
		return accountHead{Admin: true, At: o.at()}, nil
	}
	s, err := w.setup(v, o.place(), "service_accounts")
	return accountHead{setup: s, At: o.at()}, err
}

// owner is the name in titles.
func (h accountHead) owner() string {
	if h.Admin {
		return "Admin area"
	}
	return h.Name()
}

type serviceAccountsPage struct {
	accountHead
	Form     form
	Accounts []*user.User
	Refused  string // why the visitor cannot add accounts; empty if they can
	Pager    pager
}

func (serviceAccountsPage) view() string    { return "shared/service_accounts" }
func (p serviceAccountsPage) title() string { return "Service accounts · " + p.owner() }

func (w *Web) serviceAccounts(v *visit, o accountOwner) error {
	return w.showServiceAccounts(v, o, filled())
}

func (w *Web) showServiceAccounts(v *visit, o accountOwner, f form) error {
	h, err := w.accountHead(v, o)
	if err != nil {
		return err
	}
	var page db.Page[*user.User]
	order := user.Sort{By: "username"}
	if h.Admin {
		page, err = w.Users.ServiceAccounts(v, v.actor, order, v.paging())
	} else {
		page, err = w.ServiceAccounts.List(v, v.actor, o.group, order, v.paging())
	}
	if err != nil {
		return err
	}
	f.only("name", "username", "email")
	p := serviceAccountsPage{accountHead: h, Form: f, Accounts: page.Items, Pager: v.pager(page.More)}
	if !h.Admin {
		if p.Refused, err = refusal(w.ServiceAccounts.MayCreate(v, v.actor, h.G.Group)); err != nil {
			return err
		}
	}
	return v.showForm(p, f)
}

func (w *Web) createServiceAccount(v *visit, o accountOwner) error {
	n := user.NewServiceAccount{Name: v.text("name"), Username: v.text("username"), Email: v.text("email")}
	var made *user.User
	var err error
	if o.group == "" {
		made, err = w.Users.CreateServiceAccount(v, v.actor, n)
	} else {
		made, err = w.ServiceAccounts.Create(v, v.actor, o.group, n)
	}
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showServiceAccounts(v, o, f)
	}
	return v.done("Service account "+made.Name+" was created. Add a token, so that a program can use it.", o.of(made.ID))
}

type serviceAccountPage struct {
	accountHead
	User    *user.User
	Account form // name, username and email
	Form    form // of a new token
	Tokens  []user.Token
	Scopes  []scope
	Made    *user.Token // with its secret if it was just created
	Days    tokenSpan
	Pager   pager
}

func (serviceAccountPage) view() string { return "shared/service_account" }
func (p serviceAccountPage) title() string {
	return p.User.Name + " · Service accounts · " + p.owner()
}

// Here is the address of the account.
func (p serviceAccountPage) Here() string { return p.At + "/" + strconv.FormatInt(p.User.ID, 10) }

func (w *Web) serviceAccount(v *visit, o accountOwner) error {
	return w.showServiceAccount(v, o, nil, w.newTokenForm(), nil)
}

// showServiceAccount shows an account. account is the submitted form if it was
// refused.
func (w *Web) showServiceAccount(v *visit, o accountOwner, account *form, f form, made *user.Token) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.accountHead(v, o)
	if err != nil {
		return err
	}
	p := serviceAccountPage{accountHead: h, Form: f, Made: made}
	var page db.Page[user.Token]
	filter := user.TokenFilter{UserID: id, State: "active"}
	if h.Admin {
		if p.User, err = w.Users.ServiceAccount(v, v.actor, id); err == nil {
			page, err = w.Users.Tokens(v, v.actor, filter, v.paging())
		}
	} else {
		if p.User, err = w.ServiceAccounts.Get(v, v.actor, o.group, id); err == nil {
			page, err = w.ServiceAccounts.Tokens(v, v.actor, o.group, id, filter, v.paging())
		}
	}
	if err != nil {
		return err
	}
	p.Tokens, p.Pager = page.Items, v.pager(page.More)
	if p.Days, err = w.tokenDays(v); err != nil {
		return err
	}
	p.Scopes = botScopes()
	p.Form.only("expires_at", "scopes")
	p.Account = filled("name", p.User.Name, "username", p.User.Username, "email", p.User.Email)
	if account != nil {
		p.Account = *account
		p.Account.only("name", "username", "email")
		return v.again(p)
	}
	return v.showForm(p, f)
}

func (w *Web) updateServiceAccount(v *visit, o accountOwner) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	name, username := v.text("name"), v.text("username")
	c := user.ServiceAccountChange{Name: &name, Username: &username}
	if email := v.text("email"); email != "" {
		c.Email = &email
	}
	if o.group == "" {
		_, err = w.Users.UpdateServiceAccount(v, v.actor, id, c)
	} else {
		_, err = w.ServiceAccounts.Update(v, v.actor, o.group, id, c)
	}
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showServiceAccount(v, o, &f, w.newTokenForm(), nil)
	}
	return v.done("The service account was saved.", o.of(id))
}

func (w *Web) deleteServiceAccount(v *visit, o accountOwner) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if o.group != "" {
		err = w.ServiceAccounts.Delete(v, v.actor, o.group, id, false)
	} else if _, err = w.Users.ServiceAccount(v, v.actor, id); err == nil {
		err = w.Users.Delete(v, v.actor, id, false, nil)
	}
	return v.redirectWithFlash(err, "The service account was deleted.", o.at())
}

func (w *Web) createServiceAccountToken(v *visit, o accountOwner) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	n := user.NewToken{Name: v.text("token_name"), Scopes: v.r.PostForm["scopes"], ExpiresAt: v.text("expires_at")}
	var made *user.Token
	if o.group != "" {
		made, err = w.ServiceAccounts.CreateToken(v, v.actor, o.group, id, n)
	} else if _, err = w.Users.ServiceAccount(v, v.actor, id); err == nil {
		made, err = w.Users.CreateToken(v, v.actor, id, n)
	}
	return w.showNewAccountToken(v, o, made, err)
}

func (w *Web) rotateServiceAccountToken(v *visit, o accountOwner) error {
	id, token, err := v.accountToken()
	if err != nil {
		return err
	}
	var made *user.Token
	if o.group != "" {
		made, err = w.ServiceAccounts.RotateToken(v, v.actor, o.group, id, token, "")
	} else if _, err = w.Users.ServiceAccount(v, v.actor, id); err == nil {
		made, err = w.Users.RotateToken(v, v.actor, token, "")
	}
	return w.showNewAccountToken(v, o, made, err)
}

// showNewAccountToken shows a new token once, or the errors of its form.
func (w *Web) showNewAccountToken(v *visit, o accountOwner, made *user.Token, err error) error {
	if err == nil {
		return w.showServiceAccount(v, o, nil, w.newTokenForm(), made)
	}
	f := v.sent()
	if err := f.refused(err); err != nil {
		return err
	}
	f.move("name", "token_name")
	return w.showServiceAccount(v, o, nil, f, nil)
}

func (w *Web) revokeServiceAccountToken(v *visit, o accountOwner) error {
	id, token, err := v.accountToken()
	if err != nil {
		return err
	}
	if o.group != "" {
		err = w.ServiceAccounts.RevokeToken(v, v.actor, o.group, id, token, nil)
	} else {
		err = w.Users.RevokeToken(v, v.actor, token, nil)
	}
	return v.redirectWithFlash(err, "The token was revoked.", o.of(id))
}

// accountToken reads the account and the token of the address.
func (v *visit) accountToken() (id, token int64, err error) {
	if id, err = v.number("id"); err != nil {
		return 0, 0, err
	}
	token, err = v.number("token_id")
	return id, token, err
}
