package play

import (
	"context"
	"os"
	"testing"

	"github.com/sirupsen/logrus"
)

// The processes that the tests start are this test binary, and know it by their role. Their job
// opens the ledger, and waits.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	job := Job{Sync: func(ctx context.Context, at Place, _ logrus.FieldLogger) error {
		db, err := openRecords(ctx, at.Ledger)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return db.Close()
	}}
	os.Exit(Run(context.Background(), job, nil, os.Stdin, os.Stdout, os.Stderr))
}
