package desk

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/amends-dev/amends/migrations"
)

// Version is which amends this is.
type Version struct {
	Version  string `json:"version"` // "(devel)" when it was not built from a release
	Commit   string `json:"commit"`
	Date     string `json:"date"`     // of the commit
	Modified bool   `json:"modified"` // built from a tree with changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   struct {
		Postgres int64 `json:"postgres"`
		SQLite   int64 `json:"sqlite"`
	} `json:"schema"`
}

// ThisVersion is what was built.
func ThisVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	v.Schema.Postgres, v.Schema.SQLite = migrations.Latest(migrations.Postgres), migrations.Latest(migrations.SQLite)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				v.Date = iso(t)
			}
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Version is [ThisVersion].
func (*Desk) Version(context.Context, *Nothing) (*Version, error) {
	v := ThisVersion()
	return &v, nil
}
