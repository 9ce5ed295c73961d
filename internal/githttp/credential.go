package githttp

import (
	"errors"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/limit"
	"svc/internal/user"
)

// authenticate sets the actor of the request. An invalid credential is an error even
// if the project is public.
func (x *exchange) authenticate() error {
	ip := httpreq.IP(x.r)
	scheme, rest, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	login, password, basic := x.r.BasicAuth()
	switch {
	case scheme == "":
		x.anonymous = true
		x.by = actor.Actor{IP: ip}
		return nil
	case strings.EqualFold(scheme, "Bearer"):
		login, password = tokenLogin, strings.TrimSpace(rest)
	case !basic:
		return errs.Unauthorized("Authentication must be Basic: a username, and a password or token.")
	}
	by, err := x.credential(login, password, ip)
	if err != nil {
		return err
	}
	x.by = by
	x.by.IP = ip
	limit.Identify(x.r.Context(), by.Account())
	if to, ok := x.w.(routed); ok {
		to.SetUser(name(by))
	}
	return nil
}

func name(by actor.Actor) string {
	if by.Deploy != nil {
		return "deploy " + string(by.Deploy.Kind) + " " + by.Deploy.Name
	}
	return by.Username
}

// tokenLogin is the username that clients send with an OAuth token. No user has it.
const tokenLogin = "oauth2"

// credential tries the possible meanings of a password in order of cost: tokens are
// looked up, while hashing an account password is slow. Therefore a valid token is
// accepted even if the same address has sent wrong passwords.
func (x *exchange) credential(login, password, ip string) (actor.Actor, error) {
	if login == x.Name+"-ci-token" || login == "gitlab-ci-token" {
		by, err := x.Jobs.JobActor(x.r.Context(), password, ip)
		if !errs.Is(err, errs.KindUnauthorized) {
			return by, err
		}
		// Release tools send a personal access token with this login.
		if by, err := x.Users.TryToken(x.r.Context(), password, ip); !unknown(err) {
			return by, err
		}
		return actor.Actor{}, errs.Unauthorized("The job token is invalid, or its job is no longer running.").Because(err)
	}
	by, err := x.Users.TryToken(x.r.Context(), password, ip)
	if !unknown(err) {
		return by, err
	}
	by, err = x.Projects.AuthenticateDeployToken(x.r.Context(), login, password)
	if !unknown(err) {
		return by, err
	}
	return x.password(login, password, ip)
}

// unknown reports whether the credential is of another kind. A known credential that
// is refused has an error with a text.
func unknown(err error) bool {
	refused, ok := errors.AsType[*errs.Error](err)
	return ok && refused.Kind == errs.KindUnauthorized && refused.Text == ""
}

// password authenticates with the password of an account. A password that looks like
// a token is not tried, so that a script with an old token does not lock its user
// out.
func (x *exchange) password(login, password, ip string) (actor.Actor, error) {
	if login == "" || login == tokenLogin || password == "" || x.tokenLike(password) {
		return actor.Actor{}, x.Users.FailedGuess(x.r.Context(), login, ip, errs.Unauthorized("The token is invalid or was revoked."))
	}
	by, err := x.Users.CheckPassword(x.r.Context(), user.ForGit, login, password, ip)
	if _, ok := errors.AsType[user.TwoFactorRequired](err); ok {
		return actor.Actor{}, errs.Unauthorized("Two-factor authentication is on for this account: in place of the password give a personal access token with the scope read_repository or write_repository.").Because(err)
	}
	if errs.Is(err, errs.KindUnauthorized) {
		return actor.Actor{}, errs.Unauthorized("The login or password is wrong. A personal access token can be given in place of the password, and must be if two-factor authentication is on.").Because(err)
	}
	x.byPassword = err == nil
	return by, err
}

func (x *exchange) tokenLike(password string) bool {
	for _, start := range []string{x.Tokens, x.Name} {
		for _, kind := range []string{"pat-", "dt-", "oat-"} {
			if start != "" && strings.HasPrefix(password, start+kind) {
				return true
			}
		}
	}
	return false
}
