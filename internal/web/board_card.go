package web

import (
	"net/http"
	"slices"
	"strconv"

	"svc/internal/board"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// cardPage is the form to move a card without a mouse.
type cardPage struct {
	boardPage
	Card    int64
	Title   string
	From    string
	Targets []option
}

func (cardPage) view() string { return "shared/board_card" }

func (w *Web) askCard(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	id, err := v.number("card")
	if err != nil {
		return err
	}
	if !p.Plans {
		return errs.Forbidden("")
	}
	c := cardPage{boardPage: p, Card: id, From: v.param("from")}
	f := plan.IssueFilter{IDs: []int64{id}}
	_, columns, err := w.Boards.Issues(v, v.actor, p.Place, p.Board.ID, f, db.Paging{Limit: 1}, c.From)
	if err != nil {
		return err
	}
	if len(columns[0].Issues) == 0 {
		return errs.NotFound("Issue")
	}
	c.Title = columns[0].Issues[0].Title
	for _, key := range p.Board.Columns() {
		list := slices.IndexFunc(p.Board.Lists, func(l *board.List) bool { return strconv.FormatInt(l.ID, 10) == key })
		var of *board.List
		if list >= 0 {
			of = p.Board.Lists[list]
		}
		c.Targets = append(c.Targets, option{key, columnName(key, of)})
	}
	return v.show(c)
}

func (w *Web) moveCard(v *visit, in project.Place) error {
	p, err := w.boardHead(v, in)
	if err != nil {
		return err
	}
	id, err := v.number("card")
	if err != nil {
		return err
	}
	m := board.CardMove{Issue: id, From: v.text("from"), To: v.text("to")}
	for name, to := range map[string]*int64{"after": &m.After, "before": &m.Before} {
		*to, _ = strconv.ParseInt(v.text(name), 10, 64) // an invalid number counts as 0
	}
	if end := v.text("end"); end != "" {
		if m.After, m.Before, err = w.columnEnd(v, p, m, end); err != nil {
			return err
		}
	}
	_, err = w.Boards.MoveCard(v, v.actor, p.Place, p.Board.ID, m)
	if v.r.Header.Get("Accept") == "application/json" { // the script
		if err != nil {
			return err
		}
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return v.redirectWithFlash(err, "The issue was moved.", p.At())
}

// columnEnd returns the card before which a card is put to be the first of a
// column, or after which to be the last.
func (w *Web) columnEnd(v *visit, p boardPage, m board.CardMove, end string) (after, before int64, err error) {
	f := plan.IssueFilter{NotIDs: []int64{m.Issue}}
	paging := db.Paging{Limit: 1}
	_, columns, err := w.Boards.Issues(v, v.actor, p.Place, p.Board.ID, f, paging, m.To)
	if err != nil || len(columns[0].Issues) == 0 {
		return 0, 0, err
	}
	if end == "top" {
		return 0, columns[0].Issues[0].ID, nil
	}
	if columns[0].Over {
		return 0, 0, nil // the column is too long: the card keeps its position
	}
	paging.Offset = columns[0].Total - 1
	if _, columns, err = w.Boards.Issues(v, v.actor, p.Place, p.Board.ID, f, paging, m.To); err != nil || len(columns[0].Issues) == 0 {
		return 0, 0, err
	}
	return columns[0].Issues[0].ID, 0, nil
}
