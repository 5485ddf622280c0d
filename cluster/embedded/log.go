package embedded

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"go.uber.org/zap/zapcore"
)

// slogCore passes etcd's messages to a slog.Logger.
type slogCore struct{ logger *slog.Logger }

// level returns slog's level. etcd's info messages concern its own workings, so they are
// debug.
func level(l zapcore.Level) slog.Level {
	switch {
	case l <= zapcore.InfoLevel:
		return slog.LevelDebug
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

func (c slogCore) Enabled(l zapcore.Level) bool {
	return l > zapcore.DebugLevel && c.logger.Enabled(context.Background(), level(l))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{slog.New(c.logger.Handler().WithAttrs(attributes(fields)))}
}

func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(entry.Time, level(entry.Level), "etcd: "+entry.Message, 0)
	record.AddAttrs(attributes(fields)...)
	return c.logger.Handler().Handle(context.Background(), record)
}

func (c slogCore) Sync() error { return nil }

// attributes converts zap's fields to slog's attributes.
func attributes(fields []zapcore.Field) []slog.Attr {
	encoder := zapcore.NewMapObjectEncoder()
	attrs := make([]slog.Attr, 0, len(fields))
	for _, field := range fields {
		field.AddTo(encoder)
		value := encoder.Fields[field.Key]
		if d, is := value.(time.Duration); is {
			value = d.String()
		}
		attrs = append(attrs, slog.Any(field.Key, value))
	}
	return attrs
}

// failing handles a fatal message, after which etcd would end the process or panic: it
// marks the member as failed and ends the goroutine that has logged it.
type failing struct{ member *Member }

func (f failing) OnWrite(checked *zapcore.CheckedEntry, fields []zapcore.Field) {
	problem := checked.Message
	for _, field := range fields {
		if err, is := field.Interface.(error); is && field.Type == zapcore.ErrorType {
			problem += ": " + err.Error()
		}
	}
	f.member.fail(problem)
	runtime.Goexit()
}
