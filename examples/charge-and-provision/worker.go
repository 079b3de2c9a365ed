package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/approval"
	"github.com/amends-dev/amends/callback"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/charge-and-provision/outside"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store"
)

// settings are what a worker is told.
type settings struct {
	Database string
	Partners string        // where the partners are
	Public   string        // where we are called from outside
	Patience time.Duration // how long a server may take
}

// who says who a request is from. Here that is a password; a real program has a login, or a proxy that signs people in.
func who(r *http.Request) (name string, roles []string) {
	name, password, _ := r.BasicAuth()
	if password != outside.Password {
		return "", nil
	}
	return name, outside.Staff[name]
}

// work runs one worker until it is killed. It prints where it listens.
func work(ctx context.Context, s settings) (err error) {
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	client, err := sagahttp.New(s.Partners, nil)
	if err != nil {
		return err
	}
	d, err := chargeAndProvision(&partners{client, s.Public + "/callbacks/", s.Public + "/approvals"}, s.Patience)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, s.Database, &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := coordinator.New(db, &coordinator.Options{ //nolint:contextcheck // what it does is bounded by Run's context
		Log: log, Poll: 100 * time.Millisecond, Lease: 2 * time.Second, CallbackSecrets: [][]byte{[]byte("a secret of 16 random bytes, or more")},
	})
	if err != nil {
		return err
	}
	if err := c.Register(ctx, d); err != nil {
		return err
	}
	in, err := inbox.New(db, []*inbox.Source{{
		Name: "shop", Saga: "charge-and-provision", Apply: c.Apply,
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version"}),
			Secrets:  []webhook.Secret{{Name: "2026-11", Text: outside.Secret}},
		},
		Fetch: func(ctx context.Context, o inbox.Object) (f inbox.Fetched, err error) {
			answer, err := client.Do(ctx, sagahttp.Request{Method: http.MethodGet, Path: sagahttp.Path("shop", o.ID)})
			if err != nil {
				return f, err
			}
			return inbox.Fetched{Version: inbox.Counter(1), Body: answer.Body}, nil
		},
		Decide: func(o inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: o.Body}, nil },
	}}, &inbox.Options{Log: log, Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	receiver, err := webhook.New(in, &webhook.Options{Log: log})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/webhooks/", receiver)
	mux.Handle("/callbacks/", http.StripPrefix("/callbacks", callback.Handler(c, log)))
	mux.Handle("/approvals/", http.StripPrefix("/approvals", approval.Handler(c, who, log)))
	server := receiver.Server("")
	server.Handler = mux
	go func() { _ = server.Serve(listener) }() // until the process is killed
	fmt.Fprintln(os.Stdout, (&url.URL{Scheme: "http", Host: listener.Addr().String()}).String())
	return c.Run(ctx, in)
}
