package cli

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

func (c *command) admin() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Manage accounts, keys and storages on the machine",
		Long: `Manage accounts, keys and storages on the machine, without a token. Every user who
can read the data directory can use it. The server may be running. Changes are
recorded as audit events of the system.`,
	}
	cmd.AddCommand(c.listUsers(), c.createUser(), c.resetPassword(), c.createToken(), c.block(), c.unblock(),
		c.enrollTwoFactor(), c.disableTwoFactor(), c.enablePasswords(), c.rotateKey(), c.moveRepositories())
	return cmd
}

// ready is installed for commands that need the current schema.
func (c *command) ready(run func(cmd *cobra.Command, a *app.App, args []string) error) func(*cobra.Command, []string) error {
	return c.installed(func(cmd *cobra.Command, a *app.App, args []string) error {
		if err := a.DB.Migrate(cmd.Context()); err != nil {
			return err
		}
		return run(cmd, a, args)
	})
}

func (c *command) listUsers() *cobra.Command {
	var search string
	cmd := &cobra.Command{
		Use:   "list-users",
		Short: "List accounts",
		Args:  cobra.NoArgs,
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, _ []string) error {
			w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tUSERNAME\tNAME\tEMAIL\tSTATE\tADMIN\tTWO-FACTOR")
			var after []any
			for {
				page, err := a.Users.List(cmd.Context(), actor.System(), user.Filter{Search: search}, user.Sort{By: "id"},
					db.Paging{Limit: 100, Keyset: true, After: after})
				if err != nil {
					return err
				}
				for _, u := range page.Items {
					fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%t\t%t\n", u.ID, u.Username, u.Name, u.Email, u.State, u.Admin, u.TwoFactorEnabled)
				}
				if !page.More {
					return w.Flush()
				}
				after = page.Last
			}
		}),
	}
	cmd.Flags().StringVar(&search, "search", "", "only accounts with this text in the name or username, or with this email address")
	return cmd
}

func (c *command) createUser() *cobra.Command {
	var n user.NewUser
	var admin, stdin bool
	cmd := &cobra.Command{
		Use:   "create-user USERNAME --email ADDRESS",
		Short: "Create an account",
		Long: `Create an account. Its password is read from standard input with
--password-stdin; otherwise a random one is generated and printed.`,
		Example: "  svc admin create-user alice --email alice@example.org --name 'Alice Doe'",
		Args:    cobra.ExactArgs(1),
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			n.Username, n.Admin, n.SkipConfirmation = args[0], &admin, true
			if n.Name == "" {
				n.Name = args[0]
			}
			password, made, err := c.password(stdin)
			if err != nil {
				return err
			}
			n.Password = password
			u, err := a.Users.Create(cmd.Context(), actor.System(), n)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "Created %s with ID %d.\n", u.Username, u.ID)
			c.printCredentials(made, password)
			return nil
		}),
	}
	cmd.Flags().StringVar(&n.Email, "email", "", "email address (required)")
	cmd.Flags().StringVar(&n.Name, "name", "", "full name (default: the username)")
	cmd.Flags().BoolVar(&admin, "admin", false, "create an administrator")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}

func (c *command) resetPassword() *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "reset-password USERNAME",
		Short: "Reset the password of an account",
		Long: `Reset the password of an account. The user must change it at the next sign-in.
It is read from standard input with --password-stdin; otherwise a random one is
generated and printed. All sessions of the account end.`,
		Args: cobra.ExactArgs(1),
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			password, made, err := c.password(stdin)
			if err != nil {
				return err
			}
			u, err := a.Users.ResetPassword(cmd.Context(), actor.System(), user.Ref(args[0]), password)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s has a new password.\n", u.Username)
			c.printCredentials(made, password)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

// password reads a password from standard input, or generates one.
func (c *command) password(stdin bool) (password string, made bool, err error) {
	if !stdin {
		return secret.Token(""), true, nil
	}
	line, err := bufio.NewReader(io.LimitReader(c.in, 1<<10)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", false, fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), false, nil
}

func (c *command) printCredentials(made bool, password string) {
	if made {
		fmt.Fprintf(c.out, "The password, shown only once: %s\n", password)
	}
}

func (c *command) createToken() *cobra.Command {
	n := user.NewToken{Name: "svc admin", Scopes: []string{"api"}}
	cmd := &cobra.Command{
		Use:   "create-token USERNAME",
		Short: "Create a personal access token and print it",
		Long: `Create a personal access token and print it. Nothing else is printed to standard
output, so a script can use it.

Scopes: ` + strings.Join(user.Scopes(), ", ") + ".",
		Example: "  TOKEN=$(svc admin create-token root --scopes api,sudo --name deploy)",
		Args:    cobra.ExactArgs(1),
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			u, err := a.Users.Find(cmd.Context(), actor.System(), user.Ref(args[0]))
			if err != nil {
				return err
			}
			t, err := a.Users.CreateToken(cmd.Context(), actor.System(), u.ID, n)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.errOut, "Token %d of %s, shown only once; it expires on %s.\n", t.ID, u.Username, t.ExpiresAt)
			fmt.Fprintln(c.out, t.Secret)
			return nil
		}),
	}
	cmd.Flags().StringVar(&n.Name, "name", n.Name, "name of the token")
	cmd.Flags().StringSliceVar(&n.Scopes, "scopes", n.Scopes, "scopes of the token")
	cmd.Flags().StringVar(&n.ExpiresAt, "expires-at", "", "expiration date, "+time.DateOnly+" (default: the latest that is allowed)")
	return cmd
}

func (c *command) block() *cobra.Command {
	return c.onUser("block-user", "Block an account", "%s is blocked.\n", func(cmd *cobra.Command, a *app.App, u *user.User) error {
		_, err := a.Users.Block(cmd.Context(), actor.System(), u.ID)
		return err
	})
}

func (c *command) unblock() *cobra.Command {
	return c.onUser("unblock-user", "Unblock an account", "%s is unblocked.\n", func(cmd *cobra.Command, a *app.App, u *user.User) error {
		return a.Users.Unblock(cmd.Context(), actor.System(), u.ID)
	})
}

func (c *command) enrollTwoFactor() *cobra.Command {
	return c.onUser("enroll-two-factor", "Enable two-factor authentication and print the secret", "", func(cmd *cobra.Command, a *app.App, u *user.User) error {
		e, err := a.Users.EnrollTwoFactor(cmd.Context(), actor.System(), u.ID, issuer(a))
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "Two-factor authentication is on for %s. This is shown only once.\n\n  secret: %s\n  URL:    %s\n\nRecovery codes, each works once:\n",
			u.Username, e.Secret, e.URL)
		for _, code := range e.Codes {
			fmt.Fprintf(c.out, "  %s\n", code)
		}
		return nil
	})
}

// issuer returns the name under which an authenticator app shows the account.
func issuer(a *app.App) string {
	if u, err := url.Parse(a.Config.ExternalURL); err == nil && u.Host != "" {
		return u.Host
	}
	return a.Config.ServiceName
}

func (c *command) disableTwoFactor() *cobra.Command {
	return c.onUser("disable-two-factor", "Disable two-factor authentication", "Two-factor authentication is off for %s.\n", func(cmd *cobra.Command, a *app.App, u *user.User) error {
		return a.Users.DisableTwoFactor(cmd.Context(), actor.System(), u.ID)
	})
}

func (c *command) enablePasswords() *cobra.Command {
	return &cobra.Command{
		Use:   "enable-passwords",
		Short: "Enable password authentication for the web interface and Git",
		Long: `Enable password authentication for the web interface and Git, if it was disabled
in the application settings and no administrator can sign in with an identity
provider. Use reset-password to set the password of an administrator.`,
		Args: cobra.NoArgs,
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, _ []string) error {
			_, err := a.Settings.Update(cmd.Context(), actor.System(), func(s *setting.Settings) { s.PasswordForWeb, s.PasswordForGit = true, true })
			if err != nil {
				return err
			}
			fmt.Fprintln(c.out, "Password authentication is enabled for the web interface and Git.")
			return nil
		}),
	}
}

// onUser returns a command for one account.
func (c *command) onUser(use, short, done string, run func(cmd *cobra.Command, a *app.App, u *user.User) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " USERNAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, args []string) error {
			u, err := a.Users.Find(cmd.Context(), actor.System(), user.Ref(args[0]))
			if err != nil {
				return err
			}
			if err := run(cmd, a, u); err != nil {
				return err
			}
			if done != "" {
				fmt.Fprintf(c.out, done, u.Username)
			}
			return nil
		}),
	}
}

func (c *command) rotateKey() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Create a new instance key and encrypt all stored secrets with it",
		Long: `Create a new instance key and encrypt all stored secrets with it. The old key
stays in the key file, so that backups stay readable. Running servers reload the
key file. If nodes have separate copies of the key file, copy it to all of them
afterwards, before you rotate again.`,
		Args: cobra.NoArgs,
		RunE: c.ready(func(cmd *cobra.Command, a *app.App, _ []string) error {
			n, err := a.RotateKey(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "Created a new key and encrypted %d stored secrets with it.\n", n)
			return nil
		}),
	}
}
