package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/internal/serving"
)

// pages is the console of a run; the zero value is none.
type pages struct {
	url   string
	ended chan error
	stop  context.CancelFunc
	rec   *records
}

// serve opens a console on the ledger, with -console, and says where.
func serve(ctx context.Context, o options, out io.Writer) (*pages, error) {
	if !o.console {
		return &pages{}, nil
	}
	rec, err := openRecords(ctx, o.db)
	if err != nil {
		return nil, err
	}
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	p := &pages{ended: make(chan error, 1), rec: rec}
	ctx, p.stop = context.WithCancel(ctx)
	ready := make(chan string, 1)
	reg := prometheus.NewRegistry()
	amendsprom.Ledger(reg, rec.DB, nil)
	go func() {
		p.ended <- console.Serve(ctx, &serving.Console{
			DB: rec.DB, Listener: at, Own: "you", Ready: func(url string) error { ready <- url; return nil },
		}, promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	}()
	select {
	case p.url = <-ready:
	case err := <-p.ended:
		return nil, errors.Join(err, rec.Close())
	}
	fmt.Fprintf(out, "Watch it in a browser: %s\n\n", p.url)
	return p, nil
}

func (p *pages) close() error {
	if p.url == "" {
		return nil
	}
	p.stop()
	return errors.Join(<-p.ended, p.rec.Close())
}
