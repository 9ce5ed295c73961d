package web

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/go-chi/chi/v5"

	"svc/internal/board"
	"svc/internal/db"
	"svc/internal/project"
)

func (w *Web) boardPages() {
	w.placePage("GET boards", anyone, w.boards)
	w.placePage("POST boards", signedIn, w.createBoard)
	w.placePage("GET boards/{id}", anyone, w.board)
	w.placePage("GET boards/{id}/edit", signedIn, w.editBoard)
	w.placePage("POST boards/{id}", signedIn, w.updateBoard)
	w.placePage("POST boards/{id}/delete", signedIn, w.deleteBoard)
	w.placePage("POST boards/{id}/lists", signedIn, w.addList)
	w.placePage("POST boards/{id}/lists/{list}/move", signedIn, w.moveList)
	w.placePage("POST boards/{id}/lists/{list}/delete", signedIn, w.deleteList)
	w.placePage("GET boards/{id}/columns/{key}", anyone, w.column)
	w.placePage("GET boards/{id}/cards/{card}", signedIn, w.askCard)
	w.placePage("POST boards/{id}/cards/{card}", signedIn, w.moveCard)
}

// boardPage is a board with the first issues of each column.
type boardPage struct {
	planHead
	Board   *board.Board
	Boards  []*board.Board
	Columns []columnView
	Query   issuableQuery
	Only    bool // only one column is shown
	Pager   pager
}

// columnView is a column as it is shown.
type columnView struct {
	*board.Column
	Cards []issueRow
	Name  string
	At    string // address of the column alone
	Base  string // of the board
	Adds  string // address of a new issue for it
	Next  string // address of the next page
	Plans bool
}

func (boardPage) view() string    { return "shared/board" }
func (boardPage) wide() bool      { return true }
func (p boardPage) title() string { return p.Board.Name + " · " + p.Name() }

// At is the address of the board.
func (p boardPage) At() string { return fmt.Sprintf("%sboards/%d", p.Base, p.Board.ID) }

// perColumn is the number of cards of a column that are shown at first, so that
// a board with a thousand issues stays a small page.
const perColumn = 20

// boards shows the first board, or the form to create one.
func (w *Web) boards(v *visit, in project.Place) error {
	page, err := w.Boards.Boards(v, v.actor, in, db.Paging{Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Items) > 0 {
		return v.redirect(fmt.Sprintf("%s/-/boards/%d", pathTo(placePath(in)), page.Items[0].ID))
	}
	return w.showNoBoard(v, in, filled("name", "Development"))
}

// showNoBoard is the form of a new board.
func (w *Web) showNoBoard(v *visit, in project.Place, f form) error {
	h, err := w.planHead(v, in, "boards")
	if err != nil {
		return err
	}
	return v.showForm(boardFormPage{planHead: h, Board: &board.Board{}, Form: f}, f)
}

func (w *Web) createBoard(v *visit, in project.Place) error {
	f, name := v.sent(), v.text("name")
	b, err := w.Boards.Create(v, v.actor, in, board.Fields{Name: &name})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showNoBoard(v, in, f)
	}
	return v.done("The board was created. Add lists to it.", fmt.Sprintf("%s/-/boards/%d", pathTo(placePath(in)), b.ID))
}

func (w *Web) board(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	f := p.Query.issueFilter()
	f.State = ""
	b, columns, err := w.Boards.Issues(v, v.actor, p.Place, p.Board.ID, f, db.Paging{Limit: perColumn})
	if err != nil {
		return err
	}
	p.Board = b
	for _, c := range columns {
		p.Columns = append(p.Columns, w.columnView(p, c, 1))
	}
	page, err := w.Boards.Boards(v, v.actor, p.Place, allOf())
	if err != nil {
		return err
	}
	p.Boards = page.Items
	return v.show(p)
}

func (w *Web) boardHead(v *visit, in project.Place) (boardPage, error) {
	h, err := w.planHead(v, in, "boards")
	if err != nil {
		return boardPage{}, err
	}
	id, err := v.number("id")
	if err != nil {
		return boardPage{}, err
	}
	b, err := w.Boards.Board(v, v.actor, h.Place, id)
	return boardPage{planHead: h, Board: b, Query: v.issueQuery()}, err
}

func (w *Web) columnView(p boardPage, c *board.Column, page int) columnView {
	view := columnView{
		Column: c, Cards: w.issueRows(c.Issues, p.G != nil), Name: columnName(c.Key, c.List), Plans: p.Plans, Base: p.At(), At: p.At() + "/columns/" + c.Key,
	}
	if c.More {
		view.Next = view.At + p.Query.With("page", strconv.Itoa(page+1))
	}
	if p.Adds && c.Key != board.Done {
		view.Adds = p.Base + "issues/new"
		switch l := c.List; {
		case l == nil:
		case l.Label != nil:
			view.Adds += "?labels=" + url.QueryEscape(l.Label.Name)
		case l.MilestoneID != nil:
			view.Adds += fmt.Sprintf("?milestone_id=%d", *l.MilestoneID)
		}
	}
	return view
}

// columnName returns the heading of a column.
func columnName(key string, l *board.List) string {
	switch {
	case key == board.Backlog:
		return "Open"
	case key == board.Done:
		return "Closed"
	case l.Label != nil:
		return l.Label.Name
	case l.Assignee != nil:
		return l.Assignee.Name
	case l.Milestone != nil:
		return l.Milestone.Title
	}
	return "List"
}

// column shows further cards of a column. The script appends them.
func (w *Web) column(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	f := p.Query.issueFilter()
	f.State = ""
	_, columns, err := w.Boards.Issues(v, v.actor, p.Place, p.Board.ID, f, v.pagingBy(perColumn), chi.URLParam(v.r, "key"))
	if err != nil {
		return err
	}
	p.Columns, p.Only = []columnView{w.columnView(p, columns[0], v.pageNumber())}, true
	p.Pager = v.pager(columns[0].More)
	return v.show(p)
}

func (v *visit) pagingBy(n int) db.Paging {
	return db.Paging{Limit: n, Offset: (v.pageNumber() - 1) * n}
}
