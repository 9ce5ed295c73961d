package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"svc/internal/config"
)

func (c *command) config() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.configCheck(), c.configShow())
	return cmd
}

func (c *command) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration",
		Long: `Check the flags, the environment and the configuration file. All errors are
listed with their location, and the exit status is 2 if there are any. Nothing is
opened or changed: "svc doctor" checks the database, the storage and the data.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := config.Load(cmd.Flags(), c.environ); err != nil {
				return usageError{err}
			}
			_, err := fmt.Fprintln(c.out, "The configuration is valid.")
			return err
		},
	}
}

func (c *command) configShow() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration and where each value comes from",
		Long: `Show every option with its value and the flag, variable or line of the
configuration file that sets it. Secrets are not shown.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown, err := config.Show(cmd.Flags(), c.environ)
			if err != nil {
				return usageError{err}
			}
			if asJSON {
				enc := json.NewEncoder(c.out)
				enc.SetIndent("", "  ")
				return enc.Encode(shown)
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "KEY\tVALUE\tSOURCE")
			for _, s := range shown {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, s.Source)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
