package api

import (
	"svc/internal/plan/diffnote"
)

// positionJSON is the position of a note in a diff.
type positionJSON struct {
	BaseSHA  string         `json:"base_sha"`
	StartSHA string         `json:"start_sha"`
	HeadSHA  string         `json:"head_sha"`
	OldPath  string         `json:"old_path"`
	NewPath  string         `json:"new_path"`
	Type     string         `json:"position_type"`
	OldLine  *int64         `json:"old_line"`
	NewLine  *int64         `json:"new_line"`
	Range    *lineRangeJSON `json:"line_range"`
	Width    *int64         `json:"width,omitempty"`
	Height   *int64         `json:"height,omitempty"`
	X        *float64       `json:"x,omitempty"`
	Y        *float64       `json:"y,omitempty"`
}

type lineRangeJSON struct {
	Start linePointJSON `json:"start"`
	End   linePointJSON `json:"end"`
}

type linePointJSON struct {
	Code    string  `json:"line_code"`
	Type    *string `json:"type"`
	OldLine *int64  `json:"old_line"`
	NewLine *int64  `json:"new_line"`
}

func toPosition(p *diffnote.Position) *positionJSON {
	if p == nil {
		return nil
	}
	out := &positionJSON{
		BaseSHA: p.BaseSHA, StartSHA: p.StartSHA, HeadSHA: p.HeadSHA, OldPath: p.OldPath, NewPath: p.NewPath, Type: string(p.Type), OldLine: p.OldLine, NewLine: p.NewLine,
	}
	if p.Range != nil {
		out.Range = &lineRangeJSON{toLinePoint(p.Range.Start), toLinePoint(p.Range.End)}
	}
	if p.Type == diffnote.OnImage {
		out.Width, out.Height, out.X, out.Y = &p.Width, &p.Height, &p.X, &p.Y
	}
	return out
}

func toLinePoint(p diffnote.LinePoint) linePointJSON {
	return linePointJSON{p.Code, textOrNull(p.Type), p.OldLine, p.NewLine}
}

type positionParams struct {
	BaseSHA  string           `param:"base_sha,required" doc:"Base commit SHA of the diff version."`
	StartSHA string           `param:"start_sha,required"`
	HeadSHA  string           `param:"head_sha,required"`
	Type     string           `param:"position_type,required" enum:"text,image,file"`
	NewPath  string           `param:"new_path"`
	OldPath  string           `param:"old_path"`
	NewLine  *int64           `param:"new_line" doc:"Line number after the change, for added lines. Set both for unchanged lines."`
	OldLine  *int64           `param:"old_line" doc:"Line number before the change, for removed lines. Set both for unchanged lines."`
	Range    *lineRangeParams `param:"line_range" doc:"Line range of a multi-line comment."`
	Width    int64            `param:"width"`
	Height   int64            `param:"height"`
	X        float64          `param:"x"`
	Y        float64          `param:"y"`
}

type lineRangeParams struct {
	Start linePointParams `param:"start,required"`
	End   linePointParams `param:"end,required"`
}

type linePointParams struct {
	Code    string `param:"line_code" doc:"Line code: SHA-1 of the path, old line and new line, separated by underscores."`
	Type    string `param:"type" enum:"new,old,expanded"`
	OldLine *int64 `param:"old_line"`
	NewLine *int64 `param:"new_line"`
}

func (p *positionParams) position() *diffnote.Position {
	if p == nil {
		return nil
	}
	made := &diffnote.Position{
		BaseSHA: p.BaseSHA, StartSHA: p.StartSHA, HeadSHA: p.HeadSHA, Type: diffnote.PositionType(p.Type), OldPath: p.OldPath, NewPath: p.NewPath,
		OldLine: p.OldLine, NewLine: p.NewLine, X: p.X, Y: p.Y, Width: p.Width, Height: p.Height,
	}
	if p.Range != nil {
		made.Range = &diffnote.LineRange{Start: p.Range.Start.point(), End: p.Range.End.point()}
	}
	return made
}

func (p *linePointParams) point() diffnote.LinePoint {
	return diffnote.LinePoint{Code: p.Code, OldLine: p.OldLine, NewLine: p.NewLine}
}
