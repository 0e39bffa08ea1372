package embedded

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// slogCore hands etcd's log, which is zap's, to slog: warnings and errors only.
type slogCore struct {
	log     *slog.Logger
	fields  []zapcore.Field
	closing *atomic.Bool // set while the server stops: its listeners then report their own end as errors
}

// expected are warnings about what this package does on purpose.
var expected = []string{
	"Running http and grpc server on single port",  // http is never used
	"simple token is not cryptographically signed", // etcd's own users and tokens are not used
}

func (c *slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel && !c.closing.Load() }

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...), c.closing}
}

func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return ce
	}
	for _, text := range expected {
		if strings.HasPrefix(e.Message, text) {
			return ce
		}
	}
	return ce.AddCore(e, c)
}

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	c.log.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

func (c *slogCore) Sync() error { return nil }
