package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/gitremote"
	"svc/internal/project"
	"svc/internal/repo/pushrule"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/remote"
)

// settings converts the fields of a project in the API to its importable settings.
func (f *fetching) settings(fields map[string]json.RawMessage) json.RawMessage {
	p := &project.Project{Settings: project.DefaultSettings(), Visibility: project.Private}
	p.Issues, p.MergeRequests, p.Builds, p.Repository = project.Enabled, project.Enabled, project.Enabled, project.Enabled
	given := map[string]json.RawMessage{}
	names := named(&p.Settings)
	for name := range features(p) {
		names[name] = names["wiki_access_level"]
	}
	for name := range names {
		value, ok := fields[name]
		if !ok || string(value) == "null" || value[0] == '{' {
			continue
		}
		text, err := json.Marshal(map[string]json.RawMessage{name: value})
		was := *p
		if err != nil || !storable(value) || decodeSettings(text, p) != nil {
			*p = was
			f.skip(remote.Skipped{Relation: "settings", Name: name, Why: "The value of the source is not known here."})
			continue
		}
		given[name] = value
	}
	for name := range project.CheckDraft(p) {
		if _, ok := given[name]; ok {
			delete(given, name)
			f.skip(remote.Skipped{Relation: "settings", Name: name, Why: "The value of the source is not allowed here."})
		}
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil
	}
	return text
}

// storable reports whether a value has no text that a database does not store.
func storable(value json.RawMessage) bool { return !bytes.Contains(value, []byte(`\u0000`)) }

// groupSettings is settings for a group.
func (f *fetching) groupSettings(fields map[string]json.RawMessage) archive.SettingsRow {
	defaults := project.DefaultGroupSettings()
	row := fromSettings(&defaults)
	for name, value := range fields {
		if name == "approvals" || string(value) == "null" || !storable(value) {
			continue
		}
		text, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil {
			continue
		}
		next := row
		if err := json.Unmarshal(text, &next); err != nil {
			continue
		}
		now := toSettings(&next)
		if len(project.CheckGroupDraft(&now)) > 0 {
			f.skip(remote.Skipped{Relation: "settings", Name: cutName(name), Why: "The value of the source is not allowed here."})
			continue
		}
		row = next
	}
	return row
}

// pushRules converts the push rules of a project in the API; nil for none.
func (f *fetching) pushRules(fields map[string]json.RawMessage) json.RawMessage {
	var r pushrule.Rules
	given := map[string]json.RawMessage{}
	for name := range named(&r) {
		for _, shown := range []string{name, name + "_regex", "commit_" + name, name + "_commits"} {
			if value, ok := fields[shown]; ok && string(value) != "null" && storable(value) {
				given[name] = value
			}
		}
	}
	text, err := json.Marshal(given)
	if err != nil || len(given) == 0 {
		return nil
	}
	if err = decodeNamed(text, &r); err == nil {
		err = r.Check()
	}
	if err != nil {
		f.skip(remote.Skipped{Relation: "push_rule", Why: "The push rules of the source are not allowed here: " + err.Error() + "."})
		return nil
	}
	return text
}

// fetchLFS copies the LFS objects of the repository from the source. Objects that it
// does not have are skipped; so are all if it has no LFS.
func (f *projectFilling) fetchLFS(ctx context.Context) error {
	r, err := f.Content.Repos.Of(f.p)
	if err != nil {
		return err
	}
	missing, err := f.Content.LFS.MissingOf(ctx, f.p, r)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !f.Content.LFS.Allowed(ctx) {
		f.i.Report.add(Missing{"lfs_objects", "", "", "Git LFS is disabled"})
		return nil
	}
	b, err := findBulkImport(ctx, f.DB, f.i.entity.ImportID)
	if err != nil || b == nil || b.token == "" {
		return errors.Join(err, errs.Invalid("The import has ended."))
	}
	token, err := f.Keys.Open(b.token, tokenPlace(b.ID))
	if err != nil {
		return err
	}
	client, err := f.open(ctx, b.SourceURL, string(token), f.Limits)
	if err != nil {
		return err
	}
	defer client.Close()
	source, err := client.Git(f.i.entity.SourcePath)
	if err != nil {
		return err
	}
	defer source.Close()
	fetched := 0
	err = f.Content.LFS.Fetch(ctx, f.p, source, missing, func(_, n int) { fetched = n })
	var failure *gitremote.Failure
	if errors.As(err, &failure) && !failure.Temporary || errs.Is(err, errs.KindInvalid) {
		f.i.Report.add(Missing{"lfs_objects", "", "", err.Error()})
		err = nil
	}
	for range len(missing) - fetched {
		f.i.Report.count("lfs_objects")
	}
	return err
}

// dropVersions removes the versions of a merge request whose commits the source did
// not send, such as those before a force push.
func (f *projectFilling) dropVersions(ctx context.Context, row *archive.MergeRequestRow) error {
	if !f.objects {
		row.Versions = nil
		return nil
	}
	r, err := f.Content.Repos.Of(f.p)
	if err != nil {
		return err
	}
	there := row.Versions[:0]
	for _, v := range row.Versions {
		missing := false
		for _, sha := range []string{v.HeadSHA, v.BaseSHA, v.StartSHA} {
			if _, ok := git.ParseOID(sha); sha == "" || !ok {
				continue // the row is refused, if that is wrong
			}
			_, err := r.ResolveCommit(ctx, sha)
			if errors.Is(err, git.ErrNotFound) {
				missing = true
				break
			}
			if err != nil {
				return err
			}
		}
		if missing {
			f.i.Report.add(Missing{"merge_request_versions", "", fmt.Sprintf("!%d, version of %s", row.IID, v.CreatedAt.Format(time.DateOnly)), "the source does not send its commits"})
			continue
		}
		there = append(there, v)
	}
	row.Versions = there
	return nil
}
