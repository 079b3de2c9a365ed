package play

import "testing"

// A password is not printed, and what a shell would take apart is quoted.
func TestAddressesInPrint(t *testing.T) {
	t.Parallel()
	for db, want := range map[string]string{
		"postgres://u:secret@h/d":         "postgres://u:xxxxx@h/d",
		"postgres://u@/d?host=%2Ftmp&a=b": "'postgres://u@/d?host=%2Ftmp&a=b'",
		"/tmp/it's.db":                    `'/tmp/it'\''s.db'`,
		"/tmp/a-b_c/ledger.db":            "/tmp/a-b_c/ledger.db",
	} {
		if got := quoted(withoutPassword(db)); got != want {
			t.Errorf("%s is printed as %s, want %s", db, got, want)
		}
	}
}
