package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/board"
	"svc/internal/plan"
)

func (a *API) boardRoutes() {
	a.tag("Boards")
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m, one := parentEndpoints{a, in.group}, in.path+"/boards/{board_id}"
		handle(a, "GET "+in.path+"/boards", readAPI.orAnonymous(), m.listBoards, summary("List "+in.kind+" issue boards"))
		handle(a, "POST "+in.path+"/boards", writeAPI, m.createBoard, summary("Create a "+in.kind+" issue board"))
		handle(a, "GET "+one, readAPI.orAnonymous(), m.getBoard, summary("Get a "+in.kind+" issue board"))
		handle(a, "PUT "+one, writeAPI, m.updateBoard, summary("Update a "+in.kind+" issue board"))
		handle(a, "DELETE "+one, writeAPI, m.deleteBoard, summary("Delete a "+in.kind+" issue board"))
		handle(a, "GET "+one+"/lists", readAPI.orAnonymous(), m.listBoardLists, summary("List board lists in a "+in.kind+" issue board"))
		handle(a, "POST "+one+"/lists", writeAPI, m.createBoardList, summary("Create a "+in.kind+" issue board list"))
		handle(a, "GET "+one+"/lists/{list_id}", readAPI.orAnonymous(), m.getBoardList, summary("Get a "+in.kind+" issue board list"))
		handle(a, "PUT "+one+"/lists/{list_id}", writeAPI, m.moveBoardList, summary("Reorder a list in a "+in.kind+" issue board"))
		handle(a, "DELETE "+one+"/lists/{list_id}", writeAPI, m.deleteBoardList, summary("Delete a list from a "+in.kind+" issue board"))
	}
}

type boardJSON struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	HideBacklog bool              `json:"hide_backlog_list"`
	HideClosed  bool              `json:"hide_closed_list"`
	Project     *projectNameJSON  `json:"project"`
	Group       *boardGroupJSON   `json:"group,omitempty"`
	Lists       []boardListJSON   `json:"lists"`
	Milestone   *milestoneJSON    `json:"milestone"`
	Assignee    *userPublicJSON   `json:"assignee"`
	Labels      []labelDetailJSON `json:"labels"`
	Weight      *int64            `json:"weight"`
}

type boardGroupJSON struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	WebURL string `json:"web_url"`
}

type boardListJSON struct {
	ID             int64            `json:"id"`
	Label          *labelDetailJSON `json:"label"`
	Position       int64            `json:"position"`
	ListType       string           `json:"list_type"`
	Assignee       *userPublicJSON  `json:"assignee,omitempty"`
	Milestone      *milestoneJSON   `json:"milestone,omitempty"`
	MaxIssueCount  int64            `json:"max_issue_count"`
	MaxIssueWeight int64            `json:"max_issue_weight"`
	LimitMetric    *string          `json:"limit_metric"`
	Iteration      *struct{}        `json:"iteration"` // always null
}

func toBoardList(site *Site, l *board.List, now time.Time) boardListJSON {
	out := boardListJSON{ID: l.ID, Position: l.Position, ListType: "label", Assignee: toUserOrNull(site, l.Assignee, now), Milestone: toMilestoneOrNull(site, l.Milestone, now)}
	switch {
	case l.Label != nil:
		label := toLabelDetail(l.Label)
		out.Label = &label
	case l.AssigneeID != nil:
		out.ListType = "assignee"
	case l.MilestoneID != nil:
		out.ListType = "milestone"
	}
	return out
}

func toMilestoneOrNull(site *Site, m *plan.Milestone, now time.Time) *milestoneJSON {
	if m == nil {
		return nil
	}
	out := toMilestone(site, m, now)
	return &out
}

func toBoard(site *Site, b *board.Board, now time.Time) boardJSON {
	out := boardJSON{
		ID: b.ID, Name: b.Name, HideBacklog: b.HideBacklog, HideClosed: b.HideClosed, Milestone: toMilestoneOrNull(site, b.Milestone, now),
		Assignee: toUserOrNull(site, b.Assignee, now), Labels: mapped(b.Labels, toLabelDetail), Weight: b.Weight,
		Lists: mapped(b.Lists, func(l *board.List) boardListJSON { return toBoardList(site, l, now) }),
	}
	if b.Project != nil {
		name := toProjectName(b.Project)
		out.Project = &name
	}
	if b.Group != nil {
		out.Group = &boardGroupJSON{b.Group.ID, b.Group.Name, site.URL + "/groups/" + b.Group.FullPath}
	}
	return out
}

func (a *API) presentBoard(c *call, b *board.Board, err error) (boardJSON, error) {
	if err != nil {
		return boardJSON{}, err
	}
	return toBoard(c.site, b, a.Now()), nil
}

type listBoardsParams struct {
	placeParams
	pageParams
}

// listBoards: https://docs.gitlab.com/api/boards/#list-project-issue-boards
func (m parentEndpoints) listBoards(c *call, p listBoardsParams) (page[boardJSON], error) {
	list, err := m.api.Boards.Boards(c, c.actor, m.at(p.Ref), p.paging())
	if err != nil {
		return page[boardJSON]{}, err
	}
	now := m.api.Now()
	return offsetPage(p.pageParams, list, func(b *board.Board) boardJSON { return toBoard(c.site, b, now) }), nil
}

type boardParams struct {
	placeParams
	Board int64 `param:"board_id"`
}

// getBoard: https://docs.gitlab.com/api/boards/#show-a-single-issue-board
func (m parentEndpoints) getBoard(c *call, p boardParams) (boardJSON, error) {
	b, err := m.api.Boards.Board(c, c.actor, m.at(p.Ref), p.Board)
	return m.api.presentBoard(c, b, err)
}

type createBoardParams struct {
	placeParams
	Name string `param:"name,required"`
}

// createBoard: https://docs.gitlab.com/api/boards/#create-an-issue-board
func (m parentEndpoints) createBoard(c *call, p createBoardParams) (boardJSON, error) {
	b, err := m.api.Boards.Create(c, c.actor, m.at(p.Ref), board.Fields{Name: &p.Name})
	return m.api.presentBoard(c, b, err)
}

type updateBoardParams struct {
	boardParams
	Name        *string            `param:"name"`
	HideBacklog *bool              `param:"hide_backlog_list"`
	HideClosed  *bool              `param:"hide_closed_list"`
	AssigneeID  bind.Opt[int64]    `param:"assignee_id" doc:"Assignee that the board is scoped to; empty to remove."`
	MilestoneID bind.Opt[int64]    `param:"milestone_id" doc:"Milestone that the board is scoped to; empty to remove."`
	Labels      bind.Opt[[]string] `param:"labels,csv" doc:"Labels that the board is scoped to."`
	Weight      bind.Opt[int64]    `param:"weight"`
}

// updateBoard: https://docs.gitlab.com/api/boards/#update-an-issue-board
func (m parentEndpoints) updateBoard(c *call, p updateBoardParams) (boardJSON, error) {
	f := board.Fields{
		Name: p.Name, HideBacklog: p.HideBacklog, HideClosed: p.HideClosed, Assignee: sent(&p.AssigneeID), Milestone: sent(&p.MilestoneID),
		Labels: sent(&p.Labels), SetWeight: p.Weight.Set,
	}
	if p.Weight.Set && !p.Weight.Null {
		f.Weight = &p.Weight.Value
	}
	b, err := m.api.Boards.Update(c, c.actor, m.at(p.Ref), p.Board, f)
	return m.api.presentBoard(c, b, err)
}

// deleteBoard: https://docs.gitlab.com/api/boards/#delete-an-issue-board
func (m parentEndpoints) deleteBoard(c *call, p boardParams) (none, error) {
	return none{}, m.api.Boards.Delete(c, c.actor, m.at(p.Ref), p.Board)
}

// listBoardLists: https://docs.gitlab.com/api/boards/#list-board-lists-in-a-project-issue-board
func (m parentEndpoints) listBoardLists(c *call, p boardParams) ([]boardListJSON, error) {
	b, err := m.api.Boards.Board(c, c.actor, m.at(p.Ref), p.Board)
	if err != nil {
		return nil, err
	}
	return toBoard(c.site, b, m.api.Now()).Lists, nil
}

func (a *API) presentBoardList(c *call, l *board.List, err error) (boardListJSON, error) {
	if err != nil {
		return boardListJSON{}, err
	}
	return toBoardList(c.site, l, a.Now()), nil
}

type createBoardListParams struct {
	boardParams
	LabelID     *int64 `param:"label_id"`
	AssigneeID  *int64 `param:"assignee_id"`
	MilestoneID *int64 `param:"milestone_id"`
}

func (createBoardListParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.ExactlyOne("label_id", "assignee_id", "milestone_id")}
}

// createBoardList: https://docs.gitlab.com/api/boards/#create-a-board-list
func (m parentEndpoints) createBoardList(c *call, p createBoardListParams) (boardListJSON, error) {
	l, err := m.api.Boards.AddList(c, c.actor, m.at(p.Ref), p.Board, p.LabelID, p.AssigneeID, p.MilestoneID)
	return m.api.presentBoardList(c, l, err)
}

type boardListParams struct {
	boardParams
	List int64 `param:"list_id"`
}

// getBoardList: https://docs.gitlab.com/api/boards/#show-a-single-board-list
func (m parentEndpoints) getBoardList(c *call, p boardListParams) (boardListJSON, error) {
	l, err := m.api.Boards.List(c, c.actor, m.at(p.Ref), p.Board, p.List)
	return m.api.presentBoardList(c, l, err)
}

type moveBoardListParams struct {
	boardListParams
	Position int64 `param:"position,required" doc:"Position of the list, starting at 0."`
}

// moveBoardList: https://docs.gitlab.com/api/boards/#reorder-a-list-in-a-board
func (m parentEndpoints) moveBoardList(c *call, p moveBoardListParams) (boardListJSON, error) {
	l, err := m.api.Boards.MoveList(c, c.actor, m.at(p.Ref), p.Board, p.List, p.Position)
	return m.api.presentBoardList(c, l, err)
}

// deleteBoardList: https://docs.gitlab.com/api/boards/#delete-a-board-list-from-a-board
func (m parentEndpoints) deleteBoardList(c *call, p boardListParams) (none, error) {
	return none{}, m.api.Boards.DeleteList(c, c.actor, m.at(p.Ref), p.Board, p.List)
}
