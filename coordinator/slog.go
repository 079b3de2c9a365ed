package coordinator

import (
	"context"
	"io"
	"log/slog"

	"github.com/sirupsen/logrus"
	logrusslog "github.com/sirupsen/logrus/hooks/slog"
)

// Slog makes a *slog.Logger the logger of every Log field of this module:
//
//	log := coordinator.Slog(slog.Default())
//	c, err := coordinator.New(db, &coordinator.Options{Log: log})
//
// Fields become attributes of the same names, and warnings and errors keep their levels.
func Slog(l *slog.Logger) logrus.FieldLogger {
	to := &logrus.Logger{Out: io.Discard, Formatter: blank{}, Hooks: make(logrus.LevelHooks), Level: logrus.TraceLevel}
	to.AddHook(logrusslog.NewHook(l, nil))
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

// blank is the text of an entry that a hook has handed on.
type blank struct{}

func (blank) Format(*logrus.Entry) ([]byte, error) { return nil, nil }
