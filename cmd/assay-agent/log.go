package main

import (
	"io"
	"log/slog"
	"os"
)

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// newLog writes text to w. Under systemd the journal has the time already.
func newLog(w io.Writer, level string) *slog.Logger {
	o := &slog.HandlerOptions{Level: levels[level]}
	if os.Getenv("JOURNAL_STREAM") != "" {
		o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
	}
	return slog.New(slog.NewTextHandler(w, o))
}
