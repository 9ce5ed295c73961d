package api

import (
	"svc/internal/bind"
	"svc/internal/comment"
)

func (a *API) commitCommentRoutes() {
	a.tag("Commit comments")
	const at = "/projects/{id}/repository/commits/{sha}/comments"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listCommitComments, summary("List commit comments"))
	handle(a, "POST "+at, writeAPI, a.createCommitComment, summary("Post a comment to a commit"))
}

type commitCommentJSON struct {
	Note      string          `json:"note"`
	Path      *string         `json:"path"`
	Line      *int64          `json:"line"`
	LineType  *string         `json:"line_type"`
	Author    *userPublicJSON `json:"author"`
	CreatedAt stamp           `json:"created_at"`
}

func (a *API) toCommitComment(c *call, of *comment.Comment) commitCommentJSON {
	out := commitCommentJSON{Note: of.Note, Path: textOrNull(of.Path), LineType: textOrNull(of.LineType), CreatedAt: toStamp(of.CreatedAt)}
	if of.Path != "" {
		out.Line = &of.Line
	}
	if of.Author != nil {
		author := toUserPublic(c.site, of.Author, a.Now())
		out.Author = &author
	}
	return out
}

type commitCommentsParams struct {
	commitParams
	pageParams
}

// listCommitComments: https://docs.gitlab.com/api/commits/#list-all-comments-for-a-commit
func (a *API) listCommitComments(c *call, p commitCommentsParams) (page[commitCommentJSON], error) {
	list, err := a.Comments.List(c, c.actor, p.Project, p.SHA, p.paging())
	if err != nil {
		return page[commitCommentJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *comment.Comment) commitCommentJSON { return a.toCommitComment(c, one) }), nil
}

type createCommitCommentParams struct {
	commitParams
	Note     string `param:"note,required,nonblank"`
	Path     string `param:"path" doc:"Path of the file, for a comment on a line."`
	Line     int64  `param:"line"`
	LineType string `param:"line_type" enum:"new,old" default:"new"`
}

func (p *createCommitCommentParams) check() error {
	if p.Path != "" && p.Line == 0 {
		return bind.Invalid("line is missing")
	}
	return nil
}

// createCommitComment: https://docs.gitlab.com/api/commits/#create-a-commit-comment
func (a *API) createCommitComment(c *call, p createCommitCommentParams) (commitCommentJSON, error) {
	made, err := a.Comments.Create(c, c.actor, p.Project, p.SHA, comment.NewComment{Note: p.Note, Path: p.Path, Line: p.Line, LineType: p.LineType})
	if err != nil {
		return commitCommentJSON{}, err
	}
	return a.toCommitComment(c, made), nil
}
