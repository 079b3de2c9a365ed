package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// A command shows what is sealed where AMENDS_KEYS names the keys, and seals no ledger by itself.
func TestSealedBodies(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "keys")
	if err := os.WriteFile(file, []byte("2026 "+strings.Repeat("A", 43)+"=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := stores.KeysIn(file)
	if err != nil {
		t.Fatal(err)
	}
	told := func(ledger, keys string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		env := func(name string) string { return map[string]string{"AMENDS_DB": ledger, "AMENDS_KEYS": keys}[name] }
		if status := exec(t.Context(), env, args, strings.NewReader(""), &out, &errs); status != exitDone {
			t.Errorf("it ends with %d: %s", status, errs.String())
		}
		return out.String()
	}
	history := func(ledger, keys string) string { t.Helper(); return told(ledger, keys, "history", "w", "--bodies") }
	sealed, plain := filepath.Join(folder, "sealed.db"), filepath.Join(folder, "plain.db")
	runLetter(t, sealed, keys)
	runLetter(t, plain, nil)
	if said := history(sealed, file); !strings.Contains(said, "for anna") {
		t.Errorf("with the keys it shows %s", said)
	}
	if said := history(sealed, ""); strings.Contains(said, "for anna") || !strings.Contains(said, "the key to it is not here") {
		t.Errorf("without keys it shows %s", said)
	}
	if said := history(plain, file); !strings.Contains(said, "for anna") {
		t.Errorf("of a ledger that is not sealed it shows %s", said)
	}
	if said := told(sealed, "", "status"); !strings.Contains(said, "Bodies are sealed") {
		t.Errorf("status says %s", said)
	}
	if said := told(plain, file, "status"); strings.Contains(said, "sealed") {
		t.Errorf("of a ledger that is not sealed status says %s", said)
	}
	runLetter(t, plain, nil) // a program without keys goes on
}

// runLetter runs an instance in a ledger.
func runLetter(t *testing.T, ledger string, keys stores.Keys) {
	t.Helper()
	db, err := stores.Open(t.Context(), ledger, &stores.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, err := saga.Define("letters", 1, saga.Do("send", func(_ context.Context, c saga.Call[string]) (string, error) { return "", nil }).Idempotent().NoID().NoUndo("it is sent"))
	if err != nil {
		t.Fatal(err)
	}
	log, _ := test.NewNullLogger()
	c, err := coordinator.New(db, &coordinator.Options{Log: log})
	if err == nil {
		err = c.Register(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	_, err = c.Start(ctx, "letters", "w", "for anna", nil)
	if err == nil {
		_, err = c.Wait(ctx, "letters", "w")
	}
	if stop(); err != nil || <-done != nil {
		t.Error(err)
	}
}
