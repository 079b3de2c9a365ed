package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/migrations"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version [flags]", Args: noArguments, Short: "Show which amends this is, the schema versions it needs, and what is stable",
		Example: "  amends version -o json | jq -r .version",
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if a.json {
				return a.printJSON(v)
			}
			a.field("amends", v.Version)
			if v.Commit != "" {
				a.field("commit", fmt.Sprintf("%s of %s", v.Commit, v.Date))
			}
			a.field("go", v.Go+" "+v.Platform)
			a.field("schema", fmt.Sprintf("postgres %d, sqlite %d", v.Schema.Postgres, v.Schema.SQLite))
			a.field("stable", stable)
			return nil
		},
	}
}

type versionJSON struct {
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

func thisVersion() versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// stable is the promise that CHANGELOG.md makes.
const stable = "the JSON is " + API + ": fields are added, none is renamed or removed. From v0.1.0 on every version reads the ledgers of those before it"

// versionLine is what --version prints.
func versionLine() string { return "amends version " + thisVersion().Version + "\n" + stable }
