package web

import (
	"fmt"
	"strconv"

	"svc/internal/board"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// boardFormPage is the form to create or change a board and its lists.
type boardFormPage struct {
	planHead
	Board  *board.Board
	Form   form
	Labels []option
	Users  []option
	Goals  []option
}

func (boardFormPage) view() string    { return "shared/board_form" }
func (p boardFormPage) title() string { return "Boards · " + p.Name() }

// At returns the URL of the board.
func (p boardFormPage) At() string { return fmt.Sprintf("%sboards/%d", p.Base, p.Board.ID) }

// Title returns the heading of a list.
func (boardFormPage) Title(l *board.List) string { return columnName("", l) }

func (w *Web) editBoard(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	return w.showBoardForm(v, p, filled("name", p.Board.Name, "hide_backlog", on(p.Board.HideBacklog), "hide_closed", on(p.Board.HideClosed)))
}

func (w *Web) showBoardForm(v *visit, of boardPage, f form) error {
	if !of.Plans {
		return errs.Forbidden("")
	}
	p := boardFormPage{planHead: of.planHead, Board: of.Board, Form: f}
	labels, err := w.Plan.Labels(v, v.actor, of.Place, plan.LabelFilter{Ancestors: true}, allOf())
	if err != nil {
		return err
	}
	for _, l := range labels.Items {
		p.Labels = append(p.Labels, option{strconv.FormatInt(l.ID, 10), l.Name})
	}
	members, err := w.Projects.Members(v, v.actor, of.Place, project.MemberFilter{All: true}, allOf())
	if err != nil {
		return err
	}
	for _, m := range members.Items {
		p.Users = append(p.Users, option{strconv.FormatInt(m.UserID, 10), m.User.Name + " @" + m.User.Username})
	}
	goals, err := w.goalOptions(v, of.Place, nil)
	if err != nil {
		return err
	}
	p.Goals = goals[1:] // without the option "none"
	return v.showForm(p, f)
}

func (w *Web) updateBoard(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	name, backlog, closed := v.text("name"), v.ticked("hide_backlog"), v.ticked("hide_closed")
	if _, err := w.Boards.Update(v, v.actor, p.Place, p.Board.ID, board.Fields{Name: &name, HideBacklog: &backlog, HideClosed: &closed}); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showBoardForm(v, p, f)
	}
	return v.done("The board was updated.", p.At())
}

func (w *Web) deleteBoard(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Boards.Delete(v, v.actor, p.Place, p.Board.ID), "The board was deleted. Its issues were kept.", p.Base+"boards")
}

func (w *Web) addList(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	var given [3]*int64
	for i, name := range []string{"label_id", "assignee_id", "milestone_id"} {
		if id, err := strconv.ParseInt(v.text(name), 10, 64); err == nil && id > 0 {
			given[i] = &id
			break // one form has one of them
		}
	}
	if given == [3]*int64{} {
		return v.redirectWithFlash(errs.Invalid("Select a label, assignee or milestone."), "", p.At()+"/edit")
	}
	_, err = w.Boards.AddList(v, v.actor, p.Place, p.Board.ID, given[0], given[1], given[2])
	return v.redirectWithFlash(err, "The list was added.", p.At()+"/edit")
}

// onList runs an action on the list that the URL names.
func (w *Web) onList(v *visit, in project.Place, done string, do func(p boardPage, id int64) error) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	id, err := v.number("list")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(do(p, id), done, p.At()+"/edit")
}

func (w *Web) moveList(v *visit, in project.Place) error {
	return w.onList(v, in, "The list was moved.", func(p boardPage, id int64) error {
		position, err := strconv.ParseInt(v.text("position"), 10, 64)
		if err != nil {
			return errs.Invalid("The position is not valid.")
		}
		_, err = w.Boards.MoveList(v, v.actor, p.Place, p.Board.ID, id, position)
		return err
	})
}

func (w *Web) deleteList(v *visit, in project.Place) error {
	return w.onList(v, in, "The list was removed. Its issues were kept.", func(p boardPage, id int64) error {
		return w.Boards.DeleteList(v, v.actor, p.Place, p.Board.ID, id)
	})
}

// Next returns the position next to a list, for a form.
func (boardFormPage) Next(at, step int) string { return strconv.Itoa(at + step) }

// Count returns the number of lists up to a list.
func (boardFormPage) Count(at int) int { return at + 1 }
