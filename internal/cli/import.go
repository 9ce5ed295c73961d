package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"svc/internal/config"
	"svc/internal/outbound"
	"svc/internal/transfer/remote"
)

// imports are the options of svc import.
type imports struct {
	source, tokenFile       string
	server, serverTokenFile string
	groups, projects        []string
	to                      string
	dryRun, noProjects      bool
	noMembers               bool
}

func (c *command) importFrom() *cobra.Command {
	var o imports
	cmd := &cobra.Command{
		Use:   "import --url URL --token-file FILE (--group PATH | --project PATH) [--to NAMESPACE]",
		Short: "Import groups and projects from another server",
		Long: `Import groups and projects from another server with the v4 API (another svc, or
GitLab) into a running server, and show the progress. The command uses the API of
the running server: it can run on any machine, and the import continues in the
background if the command is interrupted.

Access tokens are read from files: --token-file has the token of the source, with
the scopes read_api and read_repository; --server-token-file has the token of the
running server, with the scope api. --group and --project can be repeated.
Without --to, groups become top-level groups.

With --dry-run nothing is imported: the command only reads the source and lists
its contents. The exit status is 1 if a group or project failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runImport(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.source, "url", "", "URL of the source")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with an access token of the source")
	flags.StringVar(&o.server, "server", "", "URL of the running server; the default is --external-url")
	flags.StringVar(&o.serverTokenFile, "server-token-file", "", "file with an access token of the running server")
	flags.StringArrayVar(&o.groups, "group", nil, "full path of a group at the source; can be repeated")
	flags.StringArrayVar(&o.projects, "project", nil, "full path of a project at the source; can be repeated")
	flags.StringVar(&o.to, "to", "", "full path of the destination namespace")
	flags.BoolVar(&o.noProjects, "no-projects", false, "import groups without their projects")
	flags.BoolVar(&o.noMembers, "no-members", false, "import no memberships")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list what would be imported, with numbers")
	return cmd
}

func (c *command) runImport(cmd *cobra.Command, o imports) error {
	source, err := remote.ParseURL(o.source)
	switch {
	case err != nil:
		return usageError{fmt.Errorf("--url %w", err)}
	case o.tokenFile == "":
		return usageError{errors.New("--token-file is missing")}
	case len(o.groups)+len(o.projects) == 0:
		return usageError{errors.New("give at least one --group or --project")}
	case len(o.projects) > 0 && o.to == "" && !o.dryRun:
		return usageError{errors.New("--to is missing: projects need a namespace")}
	}
	token, err := readToken(o.tokenFile)
	if err != nil {
		return err
	}
	if o.dryRun {
		return c.previewImport(cmd.Context(), o, source, token)
	}
	if o.serverTokenFile == "" {
		return usageError{errors.New("--server-token-file is missing")}
	}
	own, err := readToken(o.serverTokenFile)
	if err != nil {
		return err
	}
	if o.server == "" {
		cfg, err := config.Load(cmd.Flags(), c.environ)
		if err != nil {
			return usageError{err}
		}
		o.server = cfg.ExternalURL
	}
	server, err := remote.ParseURL(o.server)
	if err != nil {
		return usageError{fmt.Errorf("--server %w", err)}
	}
	s := &apiClient{url: server, token: own, client: &http.Client{Timeout: time.Minute, CheckRedirect: noRedirect}}
	return c.followImport(cmd.Context(), s, o, source, token)
}

// noRedirect rejects redirects, which would send both tokens to another address.
func noRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the server redirects to %s: use that address", to.URL.Host)
}

// readToken reads a token from a file.
func readToken(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4<<10))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", fmt.Errorf("%s does not contain one access token", name)
	}
	return token, nil
}

// previewImport lists what would be imported.
func (c *command) previewImport(ctx context.Context, o imports, source, token string) error {
	client, err := remote.Open(remote.Options{URL: source, Token: token, Policy: outbound.Policy{Local: true}})
	if err != nil {
		return err
	}
	defer client.Close()
	show := func(p remote.Preview) error {
		kind := "group"
		if p.Project {
			kind = "project"
		}
		var numbers []string
		for _, a := range p.Amounts {
			n := fmt.Sprint(a.N)
			if a.N < 0 {
				n = "many"
			}
			numbers = append(numbers, n+" "+strings.ReplaceAll(a.Relation, "_", " "))
		}
		_, err := fmt.Fprintf(c.out, "%-7s  %s: %s\n", kind, p.Path, strings.Join(numbers, ", "))
		return err
	}
	for _, g := range o.groups {
		if err := client.PreviewGroup(ctx, g, !o.noProjects, show); err != nil {
			return fmt.Errorf("group %s: %w", g, err)
		}
	}
	for _, p := range o.projects {
		found, err := client.PreviewProject(ctx, p)
		if err != nil {
			return fmt.Errorf("project %s: %w", p, err)
		}
		if err := show(found); err != nil {
			return err
		}
	}
	return nil
}

// apiClient sends requests to the running server.
type apiClient struct {
	url, token string
	client     *http.Client
}

func (a *apiClient) do(ctx context.Context, method, path string, body, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, method, a.url+"/api/v4"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("PRIVATE-TOKEN", a.token)
	q.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("the server responded with HTTP %d: %.1000s", answer.StatusCode, text)
	}
	return json.Unmarshal(text, to)
}

// importedEntity is a group or project of an import, as returned by the API.
type importedEntity struct {
	ID          int64           `json:"id"`
	Status      string          `json:"status"`
	Type        string          `json:"entity_type"`
	Source      string          `json:"source_full_path"`
	Destination string          `json:"destination_full_path"`
	Phase       string          `json:"phase"`
	Progress    int             `json:"progress"`
	Failures    []importFailure `json:"failures"` // the first ones
	All         int             `json:"failures_count"`
}

type importFailure struct {
	Relation string `json:"relation"`
	Message  string `json:"exception_message"`
	Title    string `json:"source_title"`
}

func (e *importedEntity) over() bool { return e.Status != "created" && e.Status != "started" }

// followImport starts an import and shows its progress until it ends.
func (c *command) followImport(ctx context.Context, s *apiClient, o imports, source, token string) error {
	var entities []map[string]any
	add := func(kind string, paths []string) {
		for _, p := range paths {
			entities = append(entities, map[string]any{
				"source_type": kind, "source_full_path": p, "destination_slug": path.Base(p), "destination_namespace": o.to,
				"migrate_projects": !o.noProjects, "migrate_memberships": !o.noMembers,
			})
		}
	}
	add("group_entity", o.groups)
	add("project_entity", o.projects)
	var started struct {
		ID     int64  `json:"id"`
		Status string `json:"status"`
	}
	err := s.do(ctx, http.MethodPost, "/bulk_imports", map[string]any{
		"configuration": map[string]string{"url": source, "access_token": token}, "entities": entities,
	}, &started)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Import %d was started.\n", started.ID)
	show := c.importProgress()
	var list []importedEntity
	for {
		if err := s.do(ctx, http.MethodGet, fmt.Sprintf("/bulk_imports/%d", started.ID), nil, &started); err != nil {
			return c.interrupted(ctx, started.ID, err)
		}
		if list, err = s.entities(ctx, started.ID); err != nil {
			return c.interrupted(ctx, started.ID, err)
		}
		show(list)
		if started.Status != "created" && started.Status != "started" {
			if err := s.failures(ctx, started.ID, list); err != nil {
				return err
			}
			return c.importEnded(started.Status, list)
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return c.interrupted(ctx, started.ID, ctx.Err())
		case <-timer.C:
		}
	}
}

// entities reads all entities of an import.
func (a *apiClient) entities(ctx context.Context, id int64) (all []importedEntity, err error) {
	for page := 1; ; page++ {
		var list []importedEntity
		if err := a.do(ctx, http.MethodGet, fmt.Sprintf("/bulk_imports/%d/entities?sort=asc&per_page=100&page=%d", id, page), nil, &list); err != nil {
			return nil, err
		}
		all = append(all, list...)
		if len(list) < 100 {
			return all, nil
		}
	}
}

// failures completes the lists of failures of entities, of which the API returns
// only the first ones.
func (a *apiClient) failures(ctx context.Context, id int64, list []importedEntity) error {
	for i := range list {
		e := &list[i]
		if len(e.Failures) >= e.All {
			continue
		}
		e.Failures = nil
		for page := 1; ; page++ {
			var more []importFailure
			if err := a.do(ctx, http.MethodGet, fmt.Sprintf("/bulk_imports/%d/entities/%d/failures?per_page=100&page=%d", id, e.ID, page), nil, &more); err != nil {
				return err
			}
			e.Failures = append(e.Failures, more...)
			if len(more) < 100 {
				break
			}
		}
	}
	return nil
}

// interrupted returns an error that says that the import continues without the
// command.
func (c *command) interrupted(ctx context.Context, id int64, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: import %d continues; see GET /bulk_imports/%d/entities, or cancel it with POST /bulk_imports/%d/cancel", id, id, id)
	}
	return err
}

// importProgress returns a function that shows the progress of an import: as a bar
// on a terminal, otherwise as a line for each change.
func (c *command) importProgress() func([]importedEntity) {
	if isTerminal(c.out) {
		return func(list []importedEntity) {
			done, percent, now := 0, 0, ""
			for _, e := range list {
				percent += e.Progress
				if e.over() {
					done++
					percent += 100 - e.Progress
				} else if e.Status == "started" {
					now = e.Source + ": " + e.Phase
				}
			}
			if len(list) > 0 {
				percent /= len(list)
			}
			const width = 30
			bar := strings.Repeat("=", percent*width/100)
			fmt.Fprintf(c.out, "\r\x1b[K[%-*s] %3d %%  %d of %d  %.60s", width, bar, percent, done, len(list), now)
		}
	}
	last := map[int64]string{}
	return func(list []importedEntity) {
		for _, e := range list {
			now := e.Status
			if e.Phase != "" {
				now += ", " + e.Phase
			}
			if last[e.ID] != now {
				last[e.ID] = now
				fmt.Fprintf(c.out, "%s %s: %s\n", e.Type, e.Source, now)
			}
		}
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// importEnded prints the report of an import. It returns an error if entities have
// failed.
func (c *command) importEnded(status string, list []importedEntity) error {
	if isTerminal(c.out) {
		fmt.Fprintln(c.out)
	}
	failed := 0
	for _, e := range list {
		if e.Status != "finished" {
			failed++
		}
		fmt.Fprintf(c.out, "%s %s: %s", e.Type, e.Source, e.Status)
		if e.Status == "finished" {
			fmt.Fprintf(c.out, " as %s", e.Destination)
		}
		fmt.Fprintln(c.out)
		for _, f := range e.Failures {
			fmt.Fprintf(c.out, "    %s %s: %s\n", f.Relation, f.Title, f.Message)
		}
		if rest := e.All - len(e.Failures); rest > 0 {
			fmt.Fprintf(c.out, "    and %d more\n", rest)
		}
	}
	if failed > 0 || status != "finished" {
		return fmt.Errorf("the import is %s: %d of %d groups and projects were not imported", status, failed, len(list))
	}
	return nil
}
