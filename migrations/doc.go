// Package migrations holds the database schema of amends and applies it.
//
//	applied, err := migrations.Up(ctx, db, migrations.Postgres) // what amends migrate up does
//
// One folder per database, with the same numbers and names in both, so that "schema version 3"
// means the same everywhere. Until the first release there is one file for each, edited in place. A
// migration that has been released never changes; a mistake is mended by the next one.
//
// The SQL files are written for goose and applied by it. The version is kept in the table
// amends_schema, beside the other tables whose names begin with amends_, because they may live in
// the database of the program that uses amends. On Postgres that is the schema that comes first in
// the search_path; an advisory lock lets only one process migrate at a time.
//
// SQLite ledgers migrate themselves when they are opened. For Postgres it is done by the command
// amends migrate, or by a program that says so: a deploy is not the moment for a surprise.
package migrations
