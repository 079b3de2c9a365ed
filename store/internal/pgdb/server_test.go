package pgdb

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
)

// Postgres before 14, servers that do not accept writes and databases that cannot hold every text are
// refused.
func TestAdmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version  int64
		readOnly string
		fenced   string
		encoding string
		want     error
	}{
		{140000, "off", "off", "UTF8", nil},
		{180001, "off", "off", "UTF8", nil},
		{130022, "off", "off", "UTF8", ledger.ErrUnsupported},
		{90624, "off", "off", "UTF8", ledger.ErrUnsupported},
		{150018, "on", "off", "UTF8", ledger.ErrReadOnly},
		{150018, "off", "off", "LATIN1", ledger.ErrUnsupported},
		{150018, "off", "off", "SQL_ASCII", ledger.ErrUnsupported},
	} {
		if err := admit(c.version, c.readOnly, c.fenced, c.encoding); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// No connection attempt waits for ever, and of several hosts the primary is taken. What the DSN
// says counts, but for how arguments are sent: what is bytes is sent as it is.
func TestConfig(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]struct {
		timeout time.Duration
		silence time.Duration
		target  pq.TargetSessionAttrs
		app     string
	}{
		"postgres://h/db":                                            {5 * time.Second, 10 * time.Second, pq.TargetSessionAttrsAny, "amends"},
		"postgres://h/db?binary_parameters=yes":                      {5 * time.Second, 10 * time.Second, pq.TargetSessionAttrsAny, "amends"},
		"postgres://h/db?connect_timeout=9&application_name=shop":    {9 * time.Second, 9 * time.Second, pq.TargetSessionAttrsAny, "shop"},
		"postgres://a,b/db?port=1,2":                                 {5 * time.Second, 10 * time.Second, pq.TargetSessionAttrsReadWrite, "amends"},
		"postgres://a,b/db?port=1,2&target_session_attrs=primary":    {5 * time.Second, 10 * time.Second, pq.TargetSessionAttrsPrimary, "amends"},
		"host=a,b port=1,2 dbname=db target_session_attrs=read-only": {5 * time.Second, 10 * time.Second, pq.TargetSessionAttrsReadOnly, "amends"},
	} {
		cfg, silence, err := config(dsn, 0)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		target := cfg.TargetSessionAttrs
		if target == "" {
			target = pq.TargetSessionAttrsAny
		}
		if cfg.ConnectTimeout != want.timeout || silence != want.silence || target != want.target || cfg.ApplicationName != want.app || !cfg.BinaryParameters {
			t.Errorf("%s: timeout %v, silence %v, target %q, application %q; want %+v", dsn, cfg.ConnectTimeout, silence, target, cfg.ApplicationName, want)
		}
	}
}

// Every connection asks the server to give up a peer that is gone, a lock that is not to be had and
// a transaction that is forgotten; a pool may set others. Over a Unix socket, as in tests, a
// server shows none of the first.
func TestBounds(t *testing.T) {
	t.Parallel()
	said := greeting(append(slices.Clone(bounds), "lock_timeout=1ms"))
	for _, want := range []string{
		"('tcp_keepalives_idle', '10', false)", "('tcp_keepalives_interval', '5', false)", "('tcp_keepalives_count', '3', false)",
		"('tcp_user_timeout', '15000', false)", "('idle_in_transaction_session_timeout', '10s', false)", "('lock_timeout', '10s', false)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not set %s: %s", want, said)
		}
	}
	if strings.Index(said, "'lock_timeout', '1ms'") < strings.Index(said, "'lock_timeout', '10s'") {
		t.Errorf("the pool's own setting comes before the common one: %s", said)
	}
}

// A pool opens no more connections than it was given, keeps them while they are used, and gives
// back those that nothing uses. Nothing but the field says for how long it keeps them, short
// of waiting.
func TestUnusedConnectionsAreGivenBack(t *testing.T) {
	t.Parallel()
	s, err := New("postgres://nowhere/db", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	db := s.Pool(3)
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	kept := reflect.ValueOf(db.DB).Elem()
	if idle, most := kept.FieldByName("maxIdleCount").Int(), db.Stats().MaxOpenConnections; idle != 3 || most != 3 {
		t.Errorf("a pool of three opens %d connections and keeps %d", most, idle)
	}
	if d := time.Duration(kept.FieldByName("maxIdleTime").Int()); d <= 0 || d > time.Minute {
		t.Errorf("a connection that nothing uses is kept for %v, want a minute at most", d)
	}
}
