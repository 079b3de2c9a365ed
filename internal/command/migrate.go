package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

var migrateVerb = single(func(a *app) *cobra.Command {
	up := verb[desk.Nothing, migrated]{
		use: "migrate [up | status] [flags]", args: noArguments, free: true,
		short: "Bring the database schema up to date, or show where it stands",
		long: `Bring the database schema up to date: "migrate" and "migrate up" are the same. "migrate status" changes nothing.

A Postgres database is migrated by this command, or by a program that asks for it, so that a deploy holds no
surprise: run it before the new version of your program starts. Several may run it at the same time. A SQLite
ledger is also migrated by every coordinator that opens it.`,
		example: `  amends migrate status --db postgres://shop@db.example.com/shop
  amends migrate --db postgres://shop@db.example.com/shop
  amends migrate status --exit-code || amends migrate`,
		by: (*app).migrateUp, print: (*app).printMigrated,
	}
	cmd := up.on(a)
	up.use, up.short, up.long, up.example = "up [flags]", "Apply what is missing", "", ""
	a.add(cmd, []maker{up, verb[desk.Nothing, schema]{
		use: "status [flags]", args: noArguments, free: true, short: "Compare the schema with what this program needs",
		by: (*app).schema, print: (*app).printSchema, alarm: "end with 6 when the schema is not up to date",
	}})
	return cmd
})

// schema is the state of a schema.
type schema struct {
	Ledger   string             `json:"ledger"`
	Database migrations.Dialect `json:"database"`
	Version  int64              `json:"version"` // 0: there is none
	Latest   int64              `json:"latest"`  // what this program needs
	UpToDate bool               `json:"upToDate"`
}

func (a *app) schema(_ *desk.Desk, ctx context.Context, _ *desk.Nothing) (*schema, error) {
	ad, err := a.address()
	if err != nil {
		return nil, err
	}
	version, err := ad.version(ctx)
	if err != nil {
		return nil, err
	}
	latest := migrations.Latest(ad.dialect)
	return &schema{ad.String(), ad.dialect, version, latest, version == latest}, nil
}

// Alarm is the finding that it is not up to date, or nil.
func (s *schema) Alarm() *desk.Failure {
	if s.UpToDate {
		return nil
	}
	return &desk.Failure{Code: desk.Findings, What: "the schema is not up to date", Next: s.next()}
}

func (a *app) printSchema(_ *desk.Nothing, s *schema) {
	a.fields("ledger", s.Ledger, "database", string(s.Database),
		"schema", fmt.Sprintf("version %d; this program needs %d", s.Version, s.Latest), "next", s.next())
}

func (s *schema) next() string {
	switch {
	case s.UpToDate:
		return "nothing, it is up to date"
	case s.Version > s.Latest:
		return "use a newer amends: this one cannot read the ledger safely"
	default:
		return "amends migrate"
	}
}

// version is the version of the schema; it only reads. A SQLite file that is not there has version
// 0.
func (ad address) version(ctx context.Context) (int64, error) {
	if ad.dialect == migrations.SQLite {
		if _, err := os.Stat(ad.File); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
	}
	version, err := ad.ask(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the schema version of %s: %w", ad, err)
	}
	return version, nil
}

func (ad address) ask(ctx context.Context) (int64, error) {
	if ad.dialect == migrations.Postgres {
		return postgres.Version(ctx, ad.named)
	}
	db, err := ad.connect()
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // only read
	return migrations.Version(ctx, db, ad.dialect)
}

// migrated is what became of a schema.
type migrated struct {
	Ledger   string             `json:"ledger"`
	Database migrations.Dialect `json:"database"`
	Before   int64              `json:"before"`
	After    int64              `json:"after"`
}

func (a *app) migrateUp(_ *desk.Desk, ctx context.Context, in *desk.Nothing) (*migrated, error) {
	before, err := a.schema(nil, ctx, in)
	if err != nil {
		return nil, err
	}
	ad, _ := a.address() // it was read before
	if err := ad.migrate(ctx); err != nil {
		return nil, err
	}
	after, err := ad.version(ctx)
	if err != nil {
		return nil, err
	}
	return &migrated{before.Ledger, before.Database, before.Version, after}, nil
}

func (a *app) printMigrated(_ *desk.Nothing, m *migrated) {
	was := fmt.Sprintf("it was %d", m.Before)
	switch m.Before {
	case m.After:
		was = "it was up to date, nothing was changed"
	case 0:
		was = "there was none, so it is a new, empty ledger"
	}
	a.fields("ledger", m.Ledger, "database", string(m.Database), "schema", fmt.Sprintf("version %d; %s", m.After, was))
	if m.Database == migrations.SQLite {
		a.sayf("a SQLite ledger is also migrated by every coordinator that opens it; there is no need to do it by hand")
	}
}

// migrate applies what is missing.
func (ad address) migrate(ctx context.Context) error {
	if ad.dialect == migrations.SQLite {
		l, err := sqlite.Open(ctx, ad.URI(), nil)
		if err != nil {
			return err
		}
		return l.Close()
	}
	l, err := postgres.Open(ctx, ad.named, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return l.Close()
}
