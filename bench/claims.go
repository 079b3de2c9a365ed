package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/claims"
	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/internal/pgtest"
)

// claiming is what `bench claims` was asked for.
type claiming struct {
	rounds, instances, unknown, looks int
	claimers                          []int
	dir, against                      string
}

func claimsCommand() *cobra.Command {
	var c claiming
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Due instances claimed per second, beside the four forms of a claim on a bare table, and what an empty look costs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.rounds, "rounds", 3, "interleaved rounds; figures are their medians")
	f.IntVar(&c.instances, "instances", 200_000, "instances that are due")
	f.IntVar(&c.unknown, "unknown", 1_000_000, "due instances of each definition that no claimer knows, for the empty look")
	f.IntVar(&c.looks, "looks", 1000, "empty looks")
	f.IntSliceVar(&c.claimers, "claimers", []int{1, 4, 16}, "processes that claim at the same time, one load each")
	f.StringVar(&c.dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	f.StringVar(&c.against, "against", "", "another build of this program: its ledger is claimed from, too, in turn")
	return cmd
}

// claimLine is one line of JSON. Figures are medians of the rounds.
type claimLine struct {
	What      string  `json:"what"`
	Claimers  int     `json:"claimers,omitempty"`
	PerSecond float64 `json:"instances_per_second,omitempty"`
	Longest   float64 `json:"longest_claim_ms,omitempty"`
	Beside    float64 `json:"longest_beside_a_stopped_one_ms,omitempty"`
	Look      float64 `json:"server_cpu_us_each_look,omitempty"`
	Rounds    int     `json:"rounds"`
}

// claimSubject is whose claims are measured.
type claimSubject struct {
	name  string
	fill  func(ctx context.Context, address string) error
	drain func(ctx context.Context, address string, n int, beside bool) (claims.Claimed, error)

	filled string // a database that is copied for each round
	drop   func(context.Context) error
}

func (c *claimSubject) prepare(ctx context.Context, s *stage) (err error) {
	if c.filled, c.drop, err = pgtest.Database(ctx, s.cluster.URL()); err != nil {
		return err
	}
	return errors.Join(c.fill(ctx, c.filled), s.settle(ctx))
}

func dropAll(ctx context.Context, subjects []claimSubject) error {
	var faults []error
	for _, c := range subjects {
		if c.drop != nil {
			faults = append(faults, c.drop(ctx))
		}
	}
	return errors.Join(faults...)
}

func (c claiming) run(ctx context.Context, out, people io.Writer) (err error) {
	if c.rounds < 1 || c.looks < 1 || c.instances < 20*claims.Limit*slices.Max(c.claimers) {
		return fmt.Errorf("--rounds and --looks must be at least 1, --instances %d for each claimer", 20*claims.Limit)
	}
	stage, err := openStage(ctx, c.dir, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var lines []claimLine
	subjects := c.subjects()
	defer func() { err = errors.Join(err, dropAll(context.WithoutCancel(ctx), subjects)) }()
	for i := range subjects {
		if err := subjects[i].prepare(ctx, stage); err != nil {
			return fmt.Errorf("%s: %w", subjects[i].name, err)
		}
	}
	for _, n := range c.claimers {
		drained, err := c.drains(ctx, people, stage, subjects, n)
		if err != nil {
			return err
		}
		lines = append(lines, drained...)
	}
	looked, err := c.look(ctx, people, stage)
	if err != nil {
		return err
	}
	lines = append(lines, looked...)
	writeClaims(people, lines)
	return report.WriteJSON(out, lines)
}

// subjects are amends, by this build and the other, and the four forms.
func (c claiming) subjects() (all []claimSubject) {
	programs := map[string]string{"amends": ""}
	names := []string{"amends"}
	if c.against != "" {
		names, programs["amends before"] = append(names, "amends before"), c.against
	}
	for _, name := range names {
		program := programs[name]
		all = append(all, claimSubject{name: name,
			fill: func(ctx context.Context, address string) error {
				_, err := claimCell{Fill: c.instances, Address: address}.start(ctx, program)
				return err
			},
			drain: func(ctx context.Context, address string, n int, beside bool) (claims.Claimed, error) {
				return claimCell{Address: address, Claimers: n, Beside: beside, Instances: c.instances}.start(ctx, program)
			},
		})
	}
	for _, f := range claims.Forms {
		all = append(all, claimSubject{name: f.String(),
			fill: func(ctx context.Context, address string) error {
				return onDatabase(ctx, address, func(db *sqlx.DB) error { return f.Fill(ctx, db, c.instances) })
			},
			drain: func(ctx context.Context, address string, n int, beside bool) (got claims.Claimed, err error) {
				err = onDatabase(ctx, address, func(db *sqlx.DB) error {
					db.SetMaxIdleConns(n)
					if beside {
						got, err = claims.Beside(ctx, f.On(db), n)
					} else {
						got, err = claims.Drain(ctx, f.On(db), n, c.instances)
					}
					return err
				})
				return got, err
			},
		})
	}
	return all
}

// drains measures all subjects with n claimers, in turn; in every second round in the other order.
func (c claiming) drains(ctx context.Context, people io.Writer, s *stage, subjects []claimSubject, n int) (lines []claimLine, err error) {
	whole, beside := make([][]claims.Claimed, len(subjects)), make([][]claims.Claimed, len(subjects))
	for round := range c.rounds {
		for k := range subjects {
			if round%2 == 1 {
				k = len(subjects) - 1 - k
			}
			one, other, err := c.drain(ctx, s, subjects[k], n)
			if err != nil {
				return nil, fmt.Errorf("%s, %d claimers: %w", subjects[k].name, n, err)
			}
			whole[k], beside[k] = append(whole[k], one), append(beside[k], other)
			fmt.Fprintf(people, "round %d/%d  %-28s %3d claimers  %8.0f instances/s, longest %4.0f ms, beside a stopped one %4.0f ms; load average %s\n", round+1, c.rounds,
				subjects[k].name, n, perSecond(one), milliseconds(one.Longest), milliseconds(other.Longest), loadAverage())
		}
	}
	for k := range subjects {
		longest := func(c claims.Claimed) float64 { return milliseconds(c.Longest) }
		lines = append(lines, claimLine{What: subjects[k].name, Claimers: n, Rounds: c.rounds,
			PerSecond: middle(whole[k], perSecond), Longest: middle(whole[k], longest), Beside: middle(beside[k], longest)})
	}
	return lines, nil
}

func perSecond(c claims.Claimed) float64 { return float64(c.Instances) / c.Wall.Seconds() }

// drain lets claimers take all of what is in a copy of the subject's database, and some of another
// beside one that stands still.
func (c claiming) drain(ctx context.Context, s *stage, what claimSubject, n int) (whole, beside claims.Claimed, err error) {
	for _, part := range []struct {
		got    *claims.Claimed
		beside bool
	}{{&whole, false}, {&beside, true}} {
		address, remove, err := s.copy(ctx, what.filled)
		if err != nil {
			return whole, beside, err
		}
		if err = s.settle(ctx); err == nil {
			*part.got, err = what.drain(ctx, address, n, part.beside)
		}
		if err := errors.Join(err, remove(ctx)); err != nil {
			return whole, beside, err
		}
	}
	return whole, beside, nil
}

// look measures what an empty look costs the server, on an empty ledger and beside what no claimer
// knows.
func (c claiming) look(ctx context.Context, people io.Writer, s *stage) (lines []claimLine, err error) {
	address, remove, err := pgtest.Database(ctx, s.cluster.URL())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := claims.Start(ctx, address, claims.Ours, 1); err != nil { // the schema
		return nil, err
	}
	name := "empty look, 50 sagas in 2 versions"
	for range 2 {
		var each []float64
		for range c.rounds {
			us, err := c.looked(ctx, s, address)
			if err != nil {
				return nil, err
			}
			each = append(each, us)
		}
		lines = append(lines, claimLine{What: name, Look: middle(each, func(us float64) float64 { return us }), Rounds: c.rounds})
		fmt.Fprintf(people, "%s: %.0f µs of the server\n", name, lines[len(lines)-1].Look)
		if len(lines) == 2 {
			break
		}
		for _, v := range claims.Unknown {
			if err := claims.Start(ctx, address, v, c.unknown); err != nil {
				return nil, err
			}
		}
		vacuum := func(db *sqlx.DB) error { _, err := db.ExecContext(ctx, "VACUUM ANALYZE"); return err }
		if err := onDatabase(ctx, address, vacuum); err != nil { // or the server does it meanwhile, and it counts as looking
			return nil, err
		}
		name = fmt.Sprintf("the same beside %d of another saga and %d of an unknown version", c.unknown, c.unknown)
	}
	return lines, nil
}

func (c claiming) looked(ctx context.Context, s *stage, address string) (us float64, err error) {
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	meter, err := cost.OpenPostgres(ctx, address, s.postmaster)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, meter.Close()) }()
	before, err := meter.Read(ctx)
	if err != nil {
		return 0, err
	}
	if err := claims.Look(ctx, address, c.looks); err != nil {
		return 0, err
	}
	after, err := meter.Read(ctx)
	return milliseconds(after.Sub(before).DatabaseCPU) * 1000 / float64(c.looks), err
}

// onDatabase runs fn with a pool on a database.
func onDatabase(ctx context.Context, address string, fn func(*sqlx.DB) error) error {
	db, err := sqlx.ConnectContext(ctx, "postgres", address)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

func writeClaims(w io.Writer, lines []claimLine) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "claimers\tinstances/s\tlongest ms\tbeside a stopped one ms\tserver µs a look\t\t")
	for _, l := range lines {
		cell := func(v float64) string {
			if v == 0 {
				return ""
			}
			return fmt.Sprintf("%.0f", v)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t  %s\t\n", cell(float64(l.Claimers)), cell(l.PerSecond), cell(l.Longest), cell(l.Beside), cell(l.Look), l.What)
	}
	_ = t.Flush() // it is for people, and they see that it ends
}

// claimCell is what one build does with the ledger of a database, in a process of its own.
type claimCell struct {
	Address   string
	Fill      int // start so many instances, and no more
	Instances int
	Claimers  int
	Beside    bool
}

func (c claimCell) start(ctx context.Context, program string) (got claims.Claimed, err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return got, err
		}
	}
	arg, err := json.Marshal(c)
	if err != nil {
		return got, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "claims-cell", string(arg))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return got, err
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}

func (c claimCell) measure(ctx context.Context) (claims.Claimed, error) {
	switch {
	case c.Fill > 0:
		return claims.Claimed{}, claims.Start(ctx, c.Address, claims.Ours, c.Fill)
	case c.Beside:
		return claims.Beside(ctx, claims.Amends(c.Address), c.Claimers)
	default:
		return claims.Drain(ctx, claims.Amends(c.Address), c.Claimers, c.Instances)
	}
}

func claimsCellCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "claims-cell JSON",
		Short:  "Fill a ledger or claim from it; bench claims starts this",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c claimCell
			if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
				return err
			}
			got, err := c.measure(cmd.Context())
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(got)
		},
	}
}
