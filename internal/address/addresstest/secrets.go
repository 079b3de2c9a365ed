// Package addresstest has addresses with a password in them, for tests that look for it in what
// comes out.
package addresstest

// Canary is the password, or a part of it.
const Canary = "S3CR"

// Secrets are addresses of every form, well and badly written. None can be opened: where one names a
// server, none listens there.
var Secrets = []string{
	"postgres://app:S3CRET@127.0.0.1:1/db?sslmode=disable&connect_timeout=1",
	"postgresql://app@127.0.0.1:1/db?password=S3CRET&sslmode=disable",
	"POSTGRES://app:S3CRET@127.0.0.1:1/db?sslmode=disable",
	"postgres://app@127.0.0.1:1/db?sslinline=true&sslcert=x&sslkey=S3CRET",
	"postgres://app:S3CR%ZZET@h/db",
	"postgres://app:S3CR%@h/db",
	"postgres://app:S3CR/ET@h/db",
	"postgres://app:1/S3CRET@h/db",
	"postgres://app:S3CR#ET@h/db",
	"postgres://app:1?S3CRET@h/db",
	"postgres://app:S3CR ET@h/db",
	"postgres://app:S3CR\nET@h/db",
	"postgres://app:S3CRET@h:54x/db",
	"postgres://app:S3CRET@[h/db",
	"postgres://h/db?password=S3CR%ZZ",
	"postgres://h/db?user=app;password=S3CRET",
	"postgres://h/db?Password=S3CRET",
	"postgres:app:S3CRET@h/db",
	"host=127.0.0.1 port=1 dbname=db user=app password=S3CRET sslmode=disable",
	"client_encoding=UTF8 host=127.0.0.1 port=1 password=S3CRET sslmode=disable",
	"TimeZone=UTC host=127.0.0.1 port=1 password=S3CRET sslmode=disable",
	"password='S3CRET' host=127.0.0.1 port=1 sslmode=disable",
	"host=h password='S3CRET",
	"host=h password=my S3CRET dbname=db",
	"host=h port=S3CRET password=S3CRET",
	"Host=h;Password=S3CRET",
	"host=h;password=S3CRET",
	"Server=h;Database=db;User Id=app;Pwd=S3CRET;",
	"User Id=app;Password=S3CRET;Server=h",
	"Host=h Password=S3CRET",
	"jdbc:postgresql://h/db?user=app&password=S3CRET",
	"mysql://app:S3CRET@h/db",
	"app:S3CRET@h/db",
	"//app:S3CRET@h/db",
	"file:q.db?mode=memory&cache=shared&password=S3CRET",
	"sqlite:q.db?_auth_pass=S3CRET",
	"file:postgres://app:S3CRET@h/db",
	"sqlite://app:S3CRET@h/db",
	"./host=h password=S3CRET",
}
