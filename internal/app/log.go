package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"svc/internal/config"
)

// NewLog returns the log of the program, as JSON or text. Every line of a request
// has its request ID.
func NewLog(cfg config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	var h slog.Handler = slog.NewJSONHandler(out, o)
	if cfg.LogFormat == "text" || cfg.LogFormat == "auto" && Terminal(out) {
		h = slog.NewTextHandler(out, o)
	}
	return slog.New(requestLog{h, new(atomic.Pointer[pathMask])})
}

// Terminal reports whether the output is a terminal.
func Terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// requestLog adds the request ID to lines that belong to a request, and masks
// secrets in paths once the routes are known.
type requestLog struct {
	slog.Handler
	mask *atomic.Pointer[pathMask]
}

// Handle implements slog.Handler.
func (h requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		r.AddAttrs(slog.String("request_id", id))
	}
	if m := h.mask.Load(); m != nil {
		r = m.hideIn(r)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs), h.mask}
}

// WithGroup implements slog.Handler.
func (h requestLog) WithGroup(name string) slog.Handler {
	return requestLog{h.Handler.WithGroup(name), h.mask}
}
