package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/bench/resume"
)

// resuming is what `bench resume` was asked for.
type resuming struct {
	rounds, instances int
	dir               string
	ledgers, steps    []string
}

func resumeCommand() *cobra.Command {
	var r resuming
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "kill -9 with many instances in flight: seconds until another process has finished them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&r.rounds, "rounds", 3, "rounds; the longest of them counts")
	f.IntVar(&r.instances, "instances", 2000, "instances in flight when the process is killed")
	f.StringVar(&r.dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	f.StringSliceVar(&r.ledgers, "ledgers", []string{onSQLite, onPostgres}, "where the ledger is")
	f.StringSliceVar(&r.steps, "steps", []string{resume.Idempotent, resume.Keyed, resume.Find, resume.AtMostOnce}, "what the step is")
	return cmd
}

// Who goes on for a process that was killed.
const (
	restart = "a restart on the same host"
	another = "another process, which runs already, of another host"
)

// resumeLine is one line of JSON.
type resumeLine struct {
	Ledger    string    `json:"ledger"`
	Step      string    `json:"step"`
	By        string    `json:"by"`
	Instances int       `json:"instances"`
	Seconds   []float64 `json:"seconds"` // of each round
	Most      float64   `json:"at_most,omitempty"`
}

// most is how many seconds it may take, 0 where a person is asked.
func (l *resumeLine) most() float64 {
	most := 5.0
	if l.By == another {
		most = 15 + 3
	}
	switch l.Step {
	case resume.Find:
		return most + 30
	case resume.AtMostOnce:
		return 0
	default:
		return most
	}
}

func (r resuming) run(ctx context.Context, out, people io.Writer) (err error) {
	s, err := openStage(ctx, r.dir, slices.Contains(r.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := heading(ctx, people, s); err != nil {
		return err
	}
	var lines []resumeLine
	var slow []error
	for _, ledger := range r.ledgers {
		for _, by := range []string{restart, another} {
			for _, step := range r.steps {
				if ledger == onSQLite && by == another {
					continue // there is only one
				}
				line := resumeLine{Ledger: ledger, Step: step, By: by, Instances: r.instances}
				line.Most = line.most()
				for range r.rounds {
					took, err := r.round(ctx, s, &line)
					if err != nil {
						return fmt.Errorf("%s on %s, %s: %w", step, ledger, by, err)
					}
					line.Seconds = append(line.Seconds, float64(took.Milliseconds())/1000)
				}
				if worst := slices.Max(line.Seconds); line.Most > 0 && worst > line.Most {
					slow = append(slow, fmt.Errorf("%s on %s, %s: %.1f s, at most %.0f", step, ledger, by, worst, line.Most))
				}
				fmt.Fprintf(people, "%s on %s, %s: %v s\n", step, ledger, by, line.Seconds)
				lines = append(lines, line)
			}
		}
	}
	writeResumed(people, lines)
	return errors.Join(append(slow, report.WriteJSON(out, lines))...)
}

// round kills a process with all its instances in flight, and waits until another has finished them.
func (r resuming) round(ctx context.Context, s *stage, line *resumeLine) (took time.Duration, err error) {
	address, remove, err := s.fresh(ctx, line.Ledger)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	p := resume.Process{Address: address, Step: line.Step, Start: r.instances}
	if line.By == another {
		p.LockDir = filepath.Join(os.DevNull, "none") // nothing is to be found on another host
	}
	first, err := begin(ctx, p, resume.InFlight)
	if err != nil {
		return 0, err
	}
	defer first.kill()
	p.Start = 0
	var second *process
	if line.By == another {
		if second, err = begin(ctx, p, resume.Running); err != nil {
			return 0, err
		}
		defer second.kill()
	}
	killed := time.Now()
	first.kill()
	if second == nil {
		if second, err = begin(ctx, p, ""); err != nil {
			return 0, err
		}
		defer second.kill()
	}
	if err := r.finished(ctx, line, address); err != nil {
		return 0, err
	}
	return time.Since(killed), nil
}

// finished waits until no instance is left that goes on.
func (r resuming) finished(ctx context.Context, line *resumeLine, address string) (err error) {
	db, err := openForReading(ctx, line.Ledger, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	status := "completed"
	if line.Step == resume.AtMostOnce {
		status = "review"
	}
	deadline := time.Now().Add(patience)
	for {
		var n int
		if err := db.GetContext(ctx, &n, `SELECT count(*) FROM amends_instances WHERE status = '`+status+`'`); err != nil {
			return err
		}
		if n == r.instances {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d are %s after %s", n, r.instances, status, patience)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openForReading opens the database of a ledger beside the processes that work on it.
func openForReading(ctx context.Context, ledger, address string) (*sqlx.DB, error) {
	if ledger == onPostgres {
		return sqlx.ConnectContext(ctx, "postgres", address)
	}
	return sqlx.ConnectContext(ctx, "sqlite", "file:"+filepath.ToSlash(address)+"?_pragma=busy_timeout(10000)&_pragma=query_only(1)")
}

// process is a process of a ledger that runs.
type process struct {
	cmd *exec.Cmd
}

// begin starts a process and waits until it says what is waited for, if anything is.
func begin(ctx context.Context, p resume.Process, until string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "resume-process", string(arg))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := &process{cmd}
	for said := bufio.NewScanner(out); until != "" && said.Scan(); {
		if strings.TrimSpace(said.Text()) == until {
			until = ""
		}
	}
	if until != "" {
		running.kill()
		return nil, fmt.Errorf("a process ended before it was %s", until)
	}
	return running, nil
}

// kill ends the process as kill -9 does, once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

func writeResumed(w io.Writer, lines []resumeLine) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ledger\tstep\tgoes on in\tseconds\tat most\t")
	for _, l := range lines {
		most := "a person is asked"
		if l.Most > 0 {
			most = fmt.Sprintf("%.0f", l.Most)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\t%s\t\n", l.Ledger, l.Step, l.By, slices.Max(l.Seconds), most)
	}
	_ = t.Flush() // it is for people, and they see that it ends
}

// resumeProcessCommand is one process of `bench resume`.
func resumeProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume-process", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p resume.Process
			if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
				return err
			}
			return p.Run(cmd.Context(), os.Stdout)
		},
	}
}
