package app

import (
	"svc/internal/activity"
	"svc/internal/board"
	"svc/internal/ci/deployment"
	"svc/internal/ci/runners"
	"svc/internal/comment"
	"svc/internal/markup"
	"svc/internal/merge"
	"svc/internal/oauth"
	"svc/internal/plan"
	"svc/internal/repo"
	"svc/internal/todo"
)

// subscribe is the event map: it subscribes features to the events of other features, and
// no other code does. Subscribers are called in this order, in the transaction of the event.
// docs/dev/events.md is generated from it.
func (a *App) subscribe() {
	users := &a.Users.Events
	users.Deleting.Subscribe(a.Projects.UserDeleting)
	users.Deleted.Subscribe(a.Projects.UserDeleted, activity.UserDeleted, a.Repos.UserDeleted, comment.UserDeleted, plan.UserDeleted,
		a.Merges.UserDeleted, a.Snippets.UserDeleted, a.Releases.UserDeleted, a.CI.UserDeleted, deployment.UserDeleted, a.CI.Schedules.UserDeleted, todo.UserDeleted, a.OAuth.UserDeleted)
	users.Renamed.Subscribe(a.Projects.UserRenamed)
	users.Reclaimed.Subscribe(a.OAuth.UserReclaimed)
	users.Recorded.Subscribe(a.Hooks.UserRecorded)

	projects := &a.Projects.Events
	projects.Changed.Subscribe(a.PushRules.ProjectChanged, a.Pages.ProjectChanged, a.Activity.ProjectChanged, a.Notify.ProjectChanged, a.Hooks.ProjectChanged)
	projects.Transferred.Subscribe(a.Plan.Transferred)
	projects.Deleted.Subscribe(a.Repos.ProjectsDeleted, a.Plan.ProjectsDeleted, a.Uploads.ProjectsDeleted, a.Alerts.ProjectsDeleted, merge.ProjectsDeleted, a.CI.Artifacts.ProjectsDeleted,
		runners.ProjectsDeleted, a.Pages.ProjectsDeleted, a.Terraform.ProjectsDeleted, a.Packages.ProjectsDeleted,
		a.SecureFiles.ProjectsDeleted, a.Code.ProjectsDeleted)

	projects.Recorded.Subscribe(a.Hooks.PlaceRecorded)
	projects.AccessRequested.Subscribe(a.Todos.AccessRequested)
	projects.Unlinked.Subscribe(a.Merges.ForkUnlinked)

	a.Repos.Events.Pushed.Subscribe(a.Repos.Pushed, a.Hooks.Pushed, a.Merges.Pushed, a.Releases.Pushed, a.CI.Pushed, a.Code.Pushed, a.Mirrors.Pushed)
	a.Comments.Events.Created.Subscribe(a.Comments.Created, a.Todos.CommitCommented, a.Hooks.Commented)
	a.Alerts.Events.Updated.Subscribe(a.Todos.AlertUpdated)
	a.Notify.Events.Recorded.Subscribe(a.Todos.Notified)
	a.Plan.Events.Planned.Subscribe(a.Todos.Planned)
	a.Plan.Events.IssueSaved.Subscribe(a.Hooks.IssueSaved)
	a.Plan.Events.NoteSaved.Subscribe(a.Hooks.NoteSaved)
	a.Plan.Events.Awarded.Subscribe(a.Hooks.Awarded)
	a.Plan.Events.MilestoneSaved.Subscribe(a.Hooks.MilestoneSaved)
	a.Plan.Events.LabelsMerged.Subscribe(board.LabelsMerged)
	a.Plan.Events.MilestonesMerged.Subscribe(board.MilestonesMerged)
	a.Wikis.Events.PageChanged.Subscribe(a.Hooks.PageChanged)
	a.Releases.Events.Created.Subscribe(a.Catalog.ReleaseCreated, a.Hooks.ReleaseCreated)
	a.Releases.Events.Updated.Subscribe(a.Hooks.ReleaseUpdated)
	a.Releases.Events.Deleted.Subscribe(a.Hooks.ReleaseDeleted)
	a.Flags.Events.Toggled.Subscribe(a.Hooks.FlagToggled)
	a.Merges.Events.Changed.Subscribe(a.LFS.MergeRequestChanged, a.CI.MergeRequestChanged, a.Todos.MergeRequestChanged, a.Hooks.MergeRequestChanged)
	a.CI.Events.JobChanged.Subscribe(a.Hooks.JobChanged)
	a.CI.Events.PipelineChanged.Subscribe(a.Hooks.PipelineChanged)
	a.CI.Deployments.Events.StatusChanged.Subscribe(a.Hooks.DeploymentChanged)
	a.CI.Deployments.Events.ModeChanged.Subscribe(a.CI.ResourceGroupChanged)
	a.CI.Events.JobEnded.Subscribe(a.Pages.JobEnded)
	a.CI.Events.PipelineEnded.Subscribe(a.Todos.PipelineEnded)
}

// provide registers the callbacks of features with the features that call them and
// are built before them.
func (a *App) provide() {
	a.Users.OnToken(oauth.FindToken)
	a.Settings.OnUpdate(a.SignIn.CheckSettings)
	a.Settings.OnUpdate(a.Projects.CheckStorageWeights)
	a.Projects.OnDefaultBranch(a.Repos.SetDefaultBranch)
	a.Projects.OnStorage(a.Moves.SetStorage)
	a.Activity.OnConcern(plan.Concerns)

	a.Repos.OnPushOptions(a.Merges.PushOptions)
	a.Repos.OnPushHints(a.Merges.PushHints)
	a.Repos.OnPushRule(a.PushRules.Check)
	a.Repos.OnPushCheck(a.LFS.CheckPush)
	a.Repos.OnForked(a.LFS.Forked)
	a.Repos.OnArchive(a.LFS.ArchiveFilter)
	a.Repos.OnCollaboration(a.Merges.CollaborationBranches)
	a.Repos.OnBranchCheck(a.Merges.CheckPush)
	a.Repos.OwnAuxRepos(repo.WikiAuxRepo, a.Wikis.AuxRepoOwner())
	a.Repos.OwnAuxRepos(repo.SnippetAuxRepo, a.Snippets.AuxRepoOwner())

	a.Plan.OnReference(markup.MergeRequest, a.Merges.Refer)
	a.Plan.OnReference(markup.Snippet, a.Snippets.Refer)
	a.Plan.OnCopyUploads(a.Uploads.Copy)
	a.Merges.OnPipelines(a.CI.HeadPipelines)
	a.Merges.OnMerging(a.LFS.Merging)
	a.CI.OnVariables(a.Pages.Variables)

	a.Notify.Register(a.Plan.Notifications())
	a.Notify.Register(a.Comments.Notifications())
	a.Notify.Register(a.Merges.Notifications())
	a.Notify.Register(a.CI.Notifications())
	a.Notify.Register(a.Releases.Notifications())
	a.Notify.Register(a.Alerts.Notifications())
}
