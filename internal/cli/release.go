package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"svc/internal/runner"
)

// release returns the release-cli command, with the flags of the public release-cli.
// The runner provides it to jobs with the keyword release.
func (c *command) release() *cobra.Command {
	var r runner.NewRelease
	var links []string
	create := &cobra.Command{
		Use:   "create --tag-name TAG",
		Short: "Create a release of the project of a CI/CD job",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, l := range links {
				if !json.Valid([]byte(l)) {
					return usageError{fmt.Errorf("--assets-link is not valid JSON: %.200s", l)}
				}
				if r.Assets == nil {
					r.Assets = &runner.ReleaseAssets{}
				}
				r.Assets.Links = append(r.Assets.Links, json.RawMessage(l))
			}
			return runner.CreateRelease(cmd.Context(), c.variable, r, c.out)
		},
	}
	flags := create.Flags()
	flags.StringVar(&r.Name, "name", "", "name of the release")
	flags.StringVar(&r.Description, "description", "", "description, or the path of a file with it")
	flags.StringVar(&r.TagName, "tag-name", "", "tag of the release")
	flags.StringVar(&r.TagMessage, "tag-message", "", "message of a new annotated tag")
	flags.StringVar(&r.Ref, "ref", "", "branch, tag or commit to create the tag from")
	flags.StringVar(&r.ReleasedAt, "released-at", "", "release date, ISO 8601")
	flags.StringArrayVar(&r.Milestones, "milestone", nil, "title of a milestone; can be repeated")
	flags.StringArrayVar(&links, "assets-link", nil, "JSON of a link; can be repeated")
	if err := create.MarkFlagRequired("tag-name"); err != nil {
		panic(err) // the flag exists
	}
	parent := &cobra.Command{Use: "release-cli", Short: "Create releases from CI/CD jobs", Hidden: true}
	parent.AddCommand(create)
	return parent
}

// variable returns an environment variable.
func (c *command) variable(name string) string {
	for _, entry := range c.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
