package user

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/picture"
	"svc/internal/secret"
	"svc/internal/setting"
)

// NewUser has the fields of a new account.
type NewUser struct {
	Email    string
	Name     string
	Username string

	// Exactly one of these sets the password; the flags take precedence over Password.
	Password            string
	ResetPassword       bool // a random password; the user gets an email to set their own
	ForceRandomPassword bool

	SkipConfirmation bool
	Fields
}

// Fields are attributes that can be set when an account is created or changed. A
// nil field keeps the current value or the default.
type Fields struct {
	Admin, Auditor, External *bool

	Bio, Location, PublicEmail, CommitEmail       *string
	Skype, LinkedIn, Twitter, Discord, WebsiteURL *string
	Organization, JobTitle, Pronouns, Note        *string

	CanCreateGroup, PrivateProfile, ViewDiffsFileByFile *bool
	ProjectsLimit, ThemeID, ColorSchemeID               *int64

	// A pointer to nil removes the limit.
	CIMinutesLimit, ExtraCIMinutesLimit **int64

	Provider, ExternUID string // identity to add; both or neither
	SAMLProviderID      *int64 // for an identity of the provider of a group

	Avatar       *picture.File
	RemoveAvatar bool // only if Avatar is nil
}

// Create creates an account. Requires an administrator. Conflict if the email or
// username is taken.
func (s *Service) Create(ctx context.Context, by actor.Actor, n NewUser) (*User, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.check(settings); err != nil {
		return nil, err
	}
	if err := n.Avatar.Check(); err != nil {
		return nil, err
	}
	if n.ResetPassword || n.ForceRandomPassword {
		n.Password = secret.Token("")
	}
	hash, err := s.Hasher.Hash(ctx, n.Password)
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	u := s.newUser(by, n, settings)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.insert(ctx, tx, by, u, hash, n) })
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	if n.Avatar != nil {
		if err := s.storeAvatar(ctx, by, u.ID, n.Avatar); err != nil {
			return nil, err
		}
	}
	return s.profile(ctx, by, u.ID)
}

// newUser returns the account to insert.
func (s *Service) newUser(by actor.Actor, n NewUser, settings setting.Settings) *User {
	now := s.Now()
	u := &User{
		Kind: Human, State: Active, Username: n.Username, Name: n.Name, Email: n.Email,
		External: settings.DefaultExternal, PrivateProfile: settings.DefaultToPrivateProfile,
		ProjectsLimit: int64(settings.DefaultProjectsLimit), CanCreateGroup: settings.CanCreateGroup,
		Profile:            Profile{Timezone: "UTC"},
		Preferences:        Preferences{ThemeID: 1, ColorSchemeID: 1, ShowWhitespaceInDiffs: true},
		Status:             Status{Availability: NotSet},
		MustChangePassword: n.ResetPassword,
		CreatedAt:          now, UpdatedAt: now,
	}
	if by.ID > 0 {
		u.CreatedBy = &by.ID
	}
	if n.SkipConfirmation {
		u.ConfirmedAt = &now
	}
	return u
}

func (s *Service) insert(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, hash string, n NewUser) error {
	if err := freeAddress(ctx, tx, u.Email, s.Now().Add(-reservedFor)); err != nil {
		return err
	}
	// If both are taken, clients expect the error about the email. The unique indexes
	// enforce both rules.
	if _, _, _, err := findAddress(ctx, tx, u.Email); err == nil {
		return emailTaken()
	} else if !errors.Is(err, db.ErrNoRows) {
		return err
	}
	if err := insertUser(ctx, tx, u, hash); err != nil {
		return err
	}
	token, digest := "", ""
	if u.ConfirmedAt == nil {
		token = secret.Token("")
		digest = secret.Digest(token)
	}
	if _, err := insertEmail(ctx, tx, u.ID, u.Email, u.ConfirmedAt, digest, u.CreatedAt); err != nil {
		return taken(err)
	}
	if err := s.welcome(ctx, tx, u, token, n.ResetPassword); err != nil {
		return err
	}
	if err := s.apply(ctx, tx, u, n.Fields); err != nil {
		return err
	}
	if err := saveUser(ctx, tx, u); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "user_created", audit.Details{Add: "user", Message: "User " + u.Username + " created"})
}

// welcome sends a new user an email with a link to set their password, which also
// confirms the address, or to confirm the address.
func (s *Service) welcome(ctx context.Context, tx *db.Tx, u *User, token string, reset bool) error {
	switch {
	case reset:
		return s.postReset(ctx, tx, u, "Set your password", "An administrator created an account for you. Your username is "+u.Username+".",
			"If the link has expired, request another one on the sign-in page.")
	case token != "":
		return s.postConfirmation(ctx, tx, u.Name, u.Email, token)
	}
	return nil
}

// apply sets and validates the given fields.
func (s *Service) apply(ctx context.Context, tx *db.Tx, u *User, f Fields) error {
	patch.Set(&u.Admin, f.Admin)
	patch.Set(&u.Auditor, f.Auditor)
	patch.Set(&u.External, f.External)
	patch.Set(&u.Bio, f.Bio)
	patch.Set(&u.Location, f.Location)
	patch.Set(&u.Skype, f.Skype)
	patch.Set(&u.LinkedIn, f.LinkedIn)
	patch.Set(&u.Twitter, f.Twitter)
	patch.Set(&u.Discord, f.Discord)
	patch.Set(&u.WebsiteURL, f.WebsiteURL)
	patch.Set(&u.Organization, f.Organization)
	patch.Set(&u.JobTitle, f.JobTitle)
	patch.Set(&u.Pronouns, f.Pronouns)
	patch.Set(&u.Note, f.Note)
	patch.Set(&u.CanCreateGroup, f.CanCreateGroup)
	patch.Set(&u.PrivateProfile, f.PrivateProfile)
	patch.Set(&u.ViewDiffsFileByFile, f.ViewDiffsFileByFile)
	patch.Set(&u.ProjectsLimit, f.ProjectsLimit)
	patch.Set(&u.ThemeID, f.ThemeID)
	patch.Set(&u.ColorSchemeID, f.ColorSchemeID)
	patch.Set(&u.CIMinutesLimit, f.CIMinutesLimit)
	patch.Set(&u.ExtraCIMinutesLimit, f.ExtraCIMinutesLimit)
	if err := u.check(); err != nil {
		return err
	}
	if f.PublicEmail != nil {
		if err := s.requireVerified(ctx, tx, u, "public_email", *f.PublicEmail); err != nil {
			return err
		}
		u.PublicEmail = *f.PublicEmail
	}
	if f.CommitEmail != nil {
		if *f.CommitEmail != PrivateCommitEmail {
			if err := s.requireVerified(ctx, tx, u, "commit_email", *f.CommitEmail); err != nil {
				return err
			}
		}
		u.CommitEmail = *f.CommitEmail
	}
	if f.ExternUID != "" && f.Provider != "" {
		return setIdentity(ctx, tx, u.ID, Identity{Provider: f.Provider, ExternUID: f.ExternUID, SAMLProviderID: f.SAMLProviderID})
	}
	return nil
}

// PrivateCommitEmail is a value of the commit email: commits get an address that
// does not reveal the real one.
const PrivateCommitEmail = "_private"

// CommitAddress returns the email address for commits made on the web.
func (u *User) CommitAddress(host string) string {
	switch u.CommitEmail {
	case "":
		return u.Email
	case PrivateCommitEmail:
		return fmt.Sprintf("%d-%s@users.noreply.%s", u.ID, u.Username, host)
	}
	return u.CommitEmail
}

// requireVerified returns an error unless the address is empty or confirmed by the
// user.
func (s *Service) requireVerified(ctx context.Context, tx *db.Tx, u *User, field, address string) error {
	if address == "" {
		return nil
	}
	ok, err := hasConfirmed(ctx, tx, u.ID, address)
	if err != nil {
		return err
	}
	if !ok {
		return errs.InvalidField(field, "is not an email you own")
	}
	return nil
}

func (n *NewUser) check(settings setting.Settings) error {
	wrong := errs.Fields{}
	checkUsername(wrong, n.Username)
	checkName(wrong, n.Name)
	if !validEmail(n.Email) {
		wrong.Set("email", "is invalid")
	}
	if !n.ResetPassword && !n.ForceRandomPassword {
		checkPassword(wrong, n.Password, settings.MinimumPasswordLength)
	}
	return wrong.Err()
}

// usernamePattern matches a username, which is part of URLs and file names.
var usernamePattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

func checkUsername(wrong errs.Fields, username string) {
	lower := strings.ToLower(username)
	switch {
	case username == "":
		wrong.Set("username", "can't be blank")
	case len(username) < 2:
		wrong.Set("username", "is too short (minimum is 2 characters)")
	case len(username) > 255:
		wrong.Set("username", "is too long (maximum is 255 characters)")
	case !usernamePattern.MatchString(username), strings.HasSuffix(username, "."), strings.HasSuffix(lower, ".git"), strings.HasSuffix(lower, ".atom"):
		wrong.Set("username", "can contain only letters, digits, '_', '-' and '.'. It must not start with '-' or end in '.', '.git' or '.atom'.")
	case allDigits(username):
		// A number would be parsed as an ID.
		wrong.Set("username", "must contain something other than digits")
	case reservedNames[lower]:
		wrong.Set("username", username+" is a reserved name")
	}
}

// reservedNames are the first path segments of our own URLs.
var reservedNames = map[string]bool{
	"-": true, ".": true, "..": true, ".well-known": true, "admin": true, "api": true, "assets": true, "avatar": true,
	"dashboard": true, "explore": true, "favicon.ico": true, "files": true, "groups": true, "health_check": true,
	"help": true, "import": true, "jwt": true, "login": true, "oauth": true, "profile": true, "projects": true,
	"public": true, "robots.txt": true, "s": true, "search": true, "sitemap": true, "snippets": true, "static": true,
	"unsubscribes": true, "uploads": true, "users": true, "v2": true,
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

func checkName(wrong errs.Fields, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		wrong.Set("name", "can't be blank")
	case utf8.RuneCountInString(name) > 255:
		wrong.Set("name", "is too long (maximum is 255 characters)")
	}
}

func checkPassword(wrong errs.Fields, password string, shortest int) {
	switch n := utf8.RuneCountInString(password); {
	case password == "":
		wrong.Set("password", "can't be blank")
	case n < shortest:
		wrong.Set("password", "is too short (minimum is %d characters)", shortest)
	case n > 128:
		wrong.Set("password", "is too long (maximum is 128 characters)")
	}
}

// check validates the fields of an account.
func (u *User) check() error {
	wrong := errs.Fields{}
	for name, text := range map[string]string{
		"bio": u.Bio, "location": u.Location, "skype": u.Skype, "linkedin": u.LinkedIn, "twitter": u.Twitter, "discord": u.Discord,
		"website_url": u.WebsiteURL, "organization": u.Organization, "job_title": u.JobTitle,
	} {
		if utf8.RuneCountInString(text) > 500 {
			wrong.Set(name, "is too long (maximum is 500 characters)")
		}
	}
	if utf8.RuneCountInString(u.Pronouns) > 50 {
		wrong.Set("pronouns", "is too long (maximum is 50 characters)")
	}
	if w := u.WebsiteURL; w != "" && !strings.HasPrefix(w, "http://") && !strings.HasPrefix(w, "https://") {
		wrong.Set("website_url", "is not a valid URL")
	}
	if u.ThemeID < 1 || u.ThemeID > 11 {
		wrong.Set("theme_id", "is not included in the list")
	}
	if u.ColorSchemeID < 1 || u.ColorSchemeID > 6 {
		wrong.Set("color_scheme_id", "is not included in the list")
	}
	if u.ProjectsLimit < 0 {
		wrong.Set("projects_limit", "must be greater than or equal to 0")
	}
	return wrong.Err()
}

// Reserved reports whether a name is the first path segment of one of our own
// URLs.
func Reserved(name string) bool { return reservedNames[strings.ToLower(name)] }
