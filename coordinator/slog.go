package coordinator

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/sirupsen/logrus"
	logrusslog "github.com/sirupsen/logrus/hooks/slog"
)

// Slog makes a *slog.Logger the logger of every Log field of this module:
//
//	log := coordinator.Slog(slog.Default())
//	c, err := coordinator.New(db, &coordinator.Options{Log: log})
//
// Fields become attributes of the same names, in the order of their names, and warnings and errors
// keep their levels.
func Slog(l *slog.Logger) logrus.FieldLogger {
	to := &logrus.Logger{Out: io.Discard, Formatter: blank{}, Hooks: make(logrus.LevelHooks), Level: logrus.TraceLevel}
	to.AddHook(logrusslog.NewHook(slog.New(inOrder{l.Handler()}), nil))
	return slogged{to, l}
}

// slogged is a logger that asks the one it hands everything to whether a level is enabled.
type slogged struct {
	*logrus.Logger

	to *slog.Logger
}

func (s slogged) IsLevelEnabled(level logrus.Level) bool {
	return s.to.Enabled(context.Background(), logrusslog.Level(level).Level())
}

// inOrder hands records on with their attributes by name: fields come in no order.
type inOrder struct{ slog.Handler }

func (h inOrder) Handle(ctx context.Context, r slog.Record) error {
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return cmp.Compare(a.Key, b.Key) })
	sorted := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	sorted.AddAttrs(attrs...)
	return h.Handler.Handle(ctx, sorted)
}

// blank is the text of an entry that a hook has handed on.
type blank struct{}

func (blank) Format(*logrus.Entry) ([]byte, error) { return nil, nil }
