package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func TestGoClientPlan(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		self := s.client(t, newToken(t, root, u.ID, "api").Token)
		p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("plan")})).done(t, http.StatusCreated)
		t.Run("issues", func(t *testing.T) { goIssues(t, self, p, u) })
		t.Run("talk", func(t *testing.T) { goTalk(t, self, p) })
		t.Run("writing", func(t *testing.T) { goWriting(t, self) })
		t.Run("events", func(t *testing.T) { goEvents(t, self, p) })
		t.Run("resource events", func(t *testing.T) { goResourceEvents(t, self, p) })
	})
}

func goIssues(t *testing.T, self *gitlab.Client, p *gitlab.Project, u *gitlab.User) {
	l := ask(self.Labels.CreateLabel(p.ID, &gitlab.CreateLabelOptions{Name: new("bug"), Color: new("#ff0000"), Description: new("Broken")})).done(t, http.StatusCreated)
	same(t, "label", []any{l.Name, l.Color, l.Description, l.IsProjectLabel}, []any{"bug", "#ff0000", "Broken", true})
	m := ask(self.Milestones.CreateMilestone(p.ID, &gitlab.CreateMilestoneOptions{Title: new("v1")})).done(t, http.StatusCreated)
	made := ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{
		Title: new("It breaks"), Labels: &gitlab.LabelOptions{"bug", "new"}, MilestoneID: &m.ID, AssigneeIDs: &[]int64{u.ID},
	})).done(t, http.StatusCreated)
	same(t, "issue", []any{made.IID, made.State, made.Labels, made.Milestone.Title, made.Assignees[0].Username, made.Author.Username, made.References.Full},
		[]any{int64(1), "opened", gitlab.Labels{"bug", "new"}, "v1", "ada", "ada", "ada/plan#1"})
	recent(t, "created_at", made.CreatedAt)
	changed := ask(self.Issues.UpdateIssue(p.ID, made.IID, &gitlab.UpdateIssueOptions{StateEvent: new("close"), RemoveLabels: &gitlab.LabelOptions{"new"}})).ok(t)
	same(t, "closed", []any{changed.State, changed.Labels, changed.ClosedBy.Username}, []any{"closed", gitlab.Labels{"bug"}, "ada"})
	list := ask(self.Issues.ListProjectIssues(p.ID, &gitlab.ListProjectIssuesOptions{Labels: &gitlab.LabelOptions{"bug"}, State: new("closed"), WithLabelDetails: new(true)})).ok(t)
	if len(list) != 1 || len(list[0].LabelDetails) != 1 || list[0].LabelDetails[0].Color != "#ff0000" {
		t.Errorf("issues with labels: %+v", list)
	}
	second := ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("Another"), Confidential: new(true)})).done(t, http.StatusCreated)
	link, _, err := self.IssueLinks.CreateIssueLink(p.ID, made.IID, &gitlab.CreateIssueLinkOptions{TargetProjectID: new("ada/plan"), TargetIssueIID: new("2")})
	if err != nil || link.TargetIssue.ID != second.ID || link.LinkType != "relates_to" {
		t.Errorf("link: %+v, %v", link, err)
	}
	same(t, "participants", ask(self.Issues.GetParticipants(p.ID, made.IID)).ok(t)[0].Username, "ada")
	ask(self.Issues.GetIssue(p.ID, 99)).missing(t)
}

// goWriting tracks time, lists description templates and uses quick actions.
func goWriting(t *testing.T, self *gitlab.Client) {
	p := ask(self.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("writing"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
	i := ask(self.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("Write"), Description: new("Text\n/estimate 1d\n/weight 3")})).done(t, http.StatusCreated)
	same(t, "issue", []any{i.Description, i.TimeStats.HumanTimeEstimate, i.Weight}, []any{"Text", "1d", int64(3)})
	same(t, "estimate", ask(self.Issues.SetTimeEstimate(p.ID, i.IID, &gitlab.SetTimeEstimateOptions{Duration: new("1w 2h")})).ok(t).TimeEstimate, int64(42*3600))
	same(t, "spent", ask(self.Issues.AddSpentTime(p.ID, i.IID, &gitlab.AddSpentTimeOptions{Duration: new("90m"), Summary: new("read")})).done(t, http.StatusCreated).HumanTotalTimeSpent, "1h 30m")
	same(t, "stats", ask(self.Issues.GetTimeSpent(p.ID, i.IID)).ok(t).TotalTimeSpent, int64(5400))
	same(t, "reset", ask(self.Issues.ResetSpentTime(p.ID, i.IID)).ok(t).TotalTimeSpent, int64(0))
	ask(self.Notes.CreateIssueNote(p.ID, i.IID, &gitlab.CreateIssueNoteOptions{Body: new("/close")})).done(t, http.StatusAccepted)
	same(t, "state", ask(self.Issues.GetIssue(p.ID, i.IID)).ok(t).State, "closed")
	ask(self.RepositoryFiles.CreateFile(p.ID, ".gitlab/issue_templates/Bug.md", &gitlab.CreateFileOptions{
		Branch: new("main"), Content: new("## Steps"), CommitMessage: new("Add a template"),
	})).done(t, http.StatusCreated)
	same(t, "templates", ask(self.ProjectTemplates.ListTemplates(p.ID, "issues", nil)).ok(t)[0].Key, "Bug")
	same(t, "template", ask(self.ProjectTemplates.GetProjectTemplate(p.ID, "issues", "Bug")).ok(t).Content, "## Steps")
}

func goTalk(t *testing.T, self *gitlab.Client, p *gitlab.Project) {
	n := ask(self.Notes.CreateIssueNote(p.ID, 1, &gitlab.CreateIssueNoteOptions{Body: new("Why?")})).done(t, http.StatusCreated)
	same(t, "note", []any{n.Body, n.Author.Username, n.NoteableType, n.NoteableIID, n.System}, []any{"Why?", "ada", "Issue", int64(1), false})
	d := ask(self.Discussions.CreateIssueDiscussion(p.ID, 1, &gitlab.CreateIssueDiscussionOptions{Body: new("Let us see")})).done(t, http.StatusCreated)
	ask(self.Discussions.AddIssueDiscussionNote(p.ID, 1, d.ID, &gitlab.AddIssueDiscussionNoteOptions{Body: new("Yes")})).done(t, http.StatusCreated)
	got := ask(self.Discussions.GetIssueDiscussion(p.ID, 1, d.ID)).ok(t)
	if got.IndividualNote || len(got.Notes) != 2 || got.Notes[1].Body != "Yes" || !got.Notes[0].Resolvable {
		t.Errorf("discussion: %+v", got)
	}
	b := ask(self.Boards.CreateIssueBoard(p.ID, &gitlab.CreateIssueBoardOptions{Name: new("Work")})).done(t, http.StatusCreated)
	labels := ask(self.Labels.ListLabels(p.ID, nil)).ok(t)
	c := ask(self.Boards.CreateIssueBoardList(p.ID, b.ID, &gitlab.CreateIssueBoardListOptions{LabelID: &labels[0].ID})).done(t, http.StatusCreated)
	same(t, "list", []any{c.Label.Name, c.Position}, []any{"bug", int64(0)})
}

func goEvents(t *testing.T, self *gitlab.Client, p *gitlab.Project) {
	target := gitlab.IssueEventTargetType
	list := ask(self.Events.ListProjectVisibleEvents(p.ID, &gitlab.ListProjectVisibleEventsOptions{TargetType: &target})).ok(t)
	var events []string
	for _, e := range list {
		events = append(events, e.ActionName+" "+e.TargetTitle)
	}
	same(t, "events", events, []string{"opened Another", "closed It breaks", "opened It breaks"})
	action := gitlab.CommentedEventType
	mine := ask(self.Events.ListCurrentUserContributionEvents(&gitlab.ListContributionEventsOptions{Action: &action})).ok(t)
	if len(mine) != 3 || mine[0].Note == nil || mine[0].Note.Body != "Yes" || mine[0].ProjectID != p.ID {
		t.Errorf("own events: %+v", mine)
	}
}

// goResourceEvents reads the events of the issue that goIssues created.
func goResourceEvents(t *testing.T, self *gitlab.Client, p *gitlab.Project) {
	ask(self.Issues.UpdateIssue(p.ID, 1, &gitlab.UpdateIssueOptions{Weight: new(int64(4)), MilestoneID: new(int64(0))})).ok(t)
	var events []string
	for _, e := range ask(self.ResourceLabelEvents.ListIssueLabelEvents(p.ID, 1, nil)).ok(t) {
		events = append(events, e.Action+" "+e.Label.Name+" "+e.User.Username+" "+e.ResourceType)
	}
	same(t, "labels", events, []string{"add bug ada Issue", "add new ada Issue", "remove new ada Issue"})
	events = nil
	for _, e := range ask(self.ResourceMilestoneEvents.ListIssueMilestoneEvents(p.ID, 1, nil)).ok(t) {
		events = append(events, e.Action+" "+e.Milestone.Title)
	}
	same(t, "milestones", events, []string{"add v1", "remove v1"})
	states := ask(self.ResourceStateEvents.ListIssueStateEvents(p.ID, 1, nil)).ok(t)
	if len(states) != 1 || states[0].State != gitlab.ClosedEventType {
		t.Fatalf("states: %+v", states)
	}
	one := ask(self.ResourceStateEvents.GetIssueStateEvent(p.ID, 1, states[0].ID)).ok(t)
	recent(t, "created_at", one.CreatedAt)
	same(t, "state", []any{one.ID, one.User.Username, one.ResourceType}, []any{states[0].ID, "ada", "Issue"})
	weights := ask(self.ResourceWeightEvents.ListIssueWeightEvents(p.ID, 1, nil)).ok(t)
	if len(weights) != 1 || weights[0].Weight != 4 || weights[0].IssueID != one.ResourceID {
		t.Errorf("weights: %+v", weights)
	}
	ask(self.ResourceLabelEvents.GetIssueLabelEvent(p.ID, 1, 999999)).missing(t)
}
