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

func (a *app) migrate() *cobra.Command {
	apply := func(cmd *cobra.Command, _ []string) error { return a.migrateUp(cmd.Context()) }
	cmd := &cobra.Command{
		Use: "migrate [up | status] [flags]", Args: noArguments, RunE: apply,
		Short: "Bring the database schema up to date, or show where it stands",
		Long: `Bring the database schema up to date: "migrate" and "migrate up" are the same. "migrate status" changes nothing.

A Postgres database is migrated by this command, or by a program that asks for it, so that a deploy holds no
surprise: run it before the new version of your program starts. Several may run it at the same time. A SQLite
ledger is also migrated by every coordinator that opens it.`,
		Example: `  amends migrate status --db postgres://shop@db.example.com/shop
  amends migrate --db postgres://shop@db.example.com/shop
  amends migrate status --exit-code || amends migrate`,
	}
	var exitCode bool
	status := &cobra.Command{
		Use: "status [flags]", Args: noArguments, Short: "Compare the schema with what this program needs",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrateStatus(cmd.Context(), exitCode) },
	}
	status.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when the schema is not up to date")
	up := &cobra.Command{Use: "up [flags]", Args: noArguments, Short: "Apply what is missing", RunE: apply}
	for _, c := range []*cobra.Command{up, status} {
		c.DisableFlagsInUseLine = true
		cmd.AddCommand(c)
	}
	return cmd
}

// schemaJSON is the state of a schema.
type schemaJSON struct {
	Ledger   string             `json:"ledger"`
	Database migrations.Dialect `json:"database"`
	Version  int64              `json:"version"` // 0: there is none
	Latest   int64              `json:"latest"`  // what this program needs
	UpToDate bool               `json:"upToDate"`
}

func (a *app) migrateStatus(ctx context.Context, exitCode bool) error {
	ad, err := a.address()
	if err != nil {
		return err
	}
	version, err := ad.version(ctx)
	if err != nil {
		return err
	}
	s := schemaJSON{ad.String(), ad.dialect, version, migrations.Latest(ad.dialect), false}
	s.UpToDate = s.Version == s.Latest
	if a.json {
		err = a.printJSON(s)
	} else {
		a.printSchema(&s)
	}
	if err == nil && exitCode && !s.UpToDate {
		return &desk.Failure{Code: desk.Findings, What: "the schema is not up to date", Next: s.next()}
	}
	return err
}

func (a *app) printSchema(s *schemaJSON) {
	a.field("ledger", s.Ledger)
	a.field("database", string(s.Database))
	a.field("schema", fmt.Sprintf("version %d; this program needs %d", s.Version, s.Latest))
	a.field("next", s.next())
}

func (s *schemaJSON) next() string {
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

func (a *app) migrateUp(ctx context.Context) error {
	ad, err := a.address()
	if err != nil {
		return err
	}
	before, err := ad.version(ctx)
	if err != nil {
		return err
	}
	if err := ad.migrate(ctx); err != nil {
		return err
	}
	after, err := ad.version(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Ledger   string             `json:"ledger"`
			Database migrations.Dialect `json:"database"`
			Before   int64              `json:"before"`
			After    int64              `json:"after"`
		}{ad.String(), ad.dialect, before, after})
	}
	a.field("ledger", ad.String())
	a.field("database", string(ad.dialect))
	switch before {
	case after:
		a.field("schema", fmt.Sprintf("version %d; it was up to date, nothing was changed", after))
	case 0:
		a.field("schema", fmt.Sprintf("version %d; there was none, so it is a new, empty ledger", after))
	default:
		a.field("schema", fmt.Sprintf("version %d; it was %d", after, before))
	}
	if ad.dialect == migrations.SQLite {
		a.sayf("a SQLite ledger is also migrated by every coordinator that opens it; there is no need to do it by hand")
	}
	return nil
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
