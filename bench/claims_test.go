package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/bench/claims"
	"github.com/amends-dev/amends/bench/cost"
)

// claimed are databases full of due instances, by whose they are; each run claims from a copy.
var claimed = map[string]string{}

// BenchmarkClaims is due instances claimed by 1, 4 and 16 processes, a hundred at a time, from amends' ledger on Postgres and by
// the four forms of a claim on a bare table; and again beside a process that stands still inside its transaction. One iteration
// claims INSTANCES (200,000): -benchtime 1x.
func BenchmarkClaims(b *testing.B) {
	n := number(b, "INSTANCES", 200_000)
	for _, claimers := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("from=amends/claimers=%d", claimers), func(b *testing.B) {
			claim(b, "amends", claimers, n,
				func(address string) error { return claims.Start(b.Context(), address, claims.Ours, n) },
				func(address string) claims.Source { return claims.Amends(address) })
		})
		for _, form := range claims.Forms {
			b.Run(fmt.Sprintf("from=%s/claimers=%d", form, claimers), func(b *testing.B) {
				claim(b, form.String(), claimers, n,
					func(address string) error {
						db := database(b, onPostgres, address, "")
						defer db.Close()
						return form.Fill(b.Context(), db, n)
					},
					func(address string) claims.Source {
						db := database(b, onPostgres, address, "")
						db.SetMaxIdleConns(claimers)
						b.Cleanup(func() { _ = db.Close() })
						return form.On(db)
					})
			})
		}
	}
}

func claim(b *testing.B, whose string, claimers, n int, fill func(address string) error, on func(address string) claims.Source) {
	b.Helper()
	b.StopTimer()
	if claimed[whose] == "" {
		claimed[whose] = kept(b, onPostgres)
		must(b, fill(claimed[whose]))
	}
	var all, beside claims.Claimed
	for range b.N {
		for _, part := range []struct {
			got   *claims.Claimed
			claim func(context.Context, claims.Source) (claims.Claimed, error)
		}{
			{&all, func(ctx context.Context, s claims.Source) (claims.Claimed, error) {
				return claims.Drain(ctx, s, claimers, n)
			}},
			{&beside, func(ctx context.Context, s claims.Source) (claims.Claimed, error) {
				return claims.Beside(ctx, s, claimers)
			}},
		} {
			source := on(copyOf(b, claimed[whose]))
			settle(b)
			b.StartTimer()
			c, err := part.claim(b.Context(), source)
			b.StopTimer()
			must(b, err)
			part.got.Instances, part.got.Wall, part.got.Longest = part.got.Instances+c.Instances, part.got.Wall+c.Wall, max(part.got.Longest, c.Longest)
		}
	}
	report(b, map[string]float64{
		"instances/s": float64(all.Instances) / all.Wall.Seconds(), "longest-ms": ms(all.Longest), "beside-stopped-longest-ms": ms(beside.Longest),
	})
}

// BenchmarkEmptyLook is what a process of fifty sagas in two versions costs the server that finds nothing due, on an empty ledger
// and beside a million instances each of another saga and of a version it does not know. One iteration is one look.
func BenchmarkEmptyLook(b *testing.B) {
	unknown := number(b, "INSTANCES", 1_000_000)
	addresses := map[int]string{}
	for _, n := range []int{0, unknown} {
		b.Run(fmt.Sprintf("unknown=%d", n), func(b *testing.B) {
			b.StopTimer()
			if addresses[n] == "" {
				addresses[n] = kept(b, onPostgres)
				must(b, fillUnknown(b, addresses[n], n))
			}
			settle(b)
			m, err := cost.OpenPostgres(b.Context(), addresses[n], place.pid)
			must(b, err)
			before, err := m.Read(b.Context())
			must(b, err)
			b.StartTimer()
			must(b, claims.Look(b.Context(), addresses[n], b.N))
			b.StopTimer()
			after, err := m.Read(b.Context())
			must(b, err, m.Close())
			report(b, map[string]float64{"db-cpu-ms/look": ms(after.Sub(before).DatabaseCPU) / float64(b.N)})
		})
	}
}

func fillUnknown(b *testing.B, address string, n int) error {
	b.Helper()
	if err := claims.Start(b.Context(), address, claims.Ours, 0); err != nil { // the schema
		return err
	}
	for _, v := range claims.Unknown {
		if err := claims.Start(b.Context(), address, v, n); err != nil {
			return err
		}
	}
	db, err := sqlx.Connect("postgres", address)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(b.Context(), "VACUUM ANALYZE") // or the server does it meanwhile, and it counts as looking
	return err
}
