package desk

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// exportFormat is the version of the lines of an export. It changes when what a reader has to know does.
const exportFormat = 1

// ExportLine is a line of an export: its kind, and under the same name what it has.
type ExportLine struct {
	Kind   string        `json:"kind"`             // export, act, acts, work, record or end
	Export *ExportBegin  `json:"export,omitempty"` // the first line
	Act    *ExportAct    `json:"act,omitempty"`    // what a person did
	Acts   *ExportAct    `json:"acts,omitempty"`   // behind the acts: number and hash of the last one, as the ledger counts them
	Work   *ExportWork   `json:"work,omitempty"`   // the head of a work, whose records follow
	Record *ExportRecord `json:"record,omitempty"`
	End    *ExportEnd    `json:"end,omitempty"` // the last line
}

// ExportBegin says what an export is of.
type ExportBegin struct {
	Format int        `json:"format"` // of the lines: 1
	Ledger string     `json:"ledger"` // its address, without a password
	At     *time.Time `json:"at"`     // when it was begun
	Whole  bool       `json:"whole"`  // no filter narrows it, and the acts of people are in it
	Bodies bool       `json:"bodies"` // inputs and results are in it
}

// ExportAct is an act of a person.
type ExportAct struct {
	Hash string `json:"hash"` // SHA-256
	Body string `json:"body"` // what was said
	ledger.Act
}

// ExportWork is the head of a work.
type ExportWork struct {
	WorkID string       `json:"workId"`
	Saga   string       `json:"saga"`
	Moving bool         `json:"moving"` // it moved all the while: the head may not show what the records say
	Salt   machine.Hash `json:"salt"`   // of the digests of its records
	ledger.Instance
}

// ExportRecord is a record. Its digests are of what is not here.
type ExportRecord struct {
	WorkID   string `json:"workId"`
	Saga     string `json:"saga"`
	Body     string `json:"body,omitempty"`     // with --bodies: its text
	Snapshot string `json:"snapshot,omitempty"` // with --bodies: its text
	machine.Record
}

// ExportEnd says what an export has.
type ExportEnd struct {
	Works   int64  `json:"works"`
	Records int64  `json:"records"`
	Acts    int64  `json:"acts"`
	SHA256  string `json:"sha256"` // of all bytes before this line
}

func (e ExportEnd) String() string {
	return fmt.Sprintf("%d works, %d records, %d acts and the digest %s", e.Works, e.Records, e.Acts, e.SHA256)
}

// ExportIn says what is exported, and where to. An export has no pages.
type ExportIn struct {
	ListIn
	Newest, After, N struct{} `flag:"-"`

	Bodies   bool              `json:"-" flag:"bodies" doc:"export inputs and results, too"`
	Ledger   string            `flag:"-"` // its address
	To       io.Writer         `flag:"-"`
	Progress func(works int64) `flag:"-"` // is told how far it has come
}

// Exported is what an export has, and whether it is sound.
type Exported struct {
	Ledger string     `json:"ledger"`
	At     *time.Time `json:"at"` // when it was begun
	Report
	SHA256 string `json:"sha256"` // of all lines but the last
}

// Export writes works, record by record, so that they can be verified without the database. What is not sound is written as it is, and found.
func (d *Desk) Export(ctx context.Context, in *ExportIn) (*Exported, error) {
	now := d.now()
	f, err := in.filter(now)
	if err != nil {
		return nil, err
	}
	sum, to := sha256.New(), bufio.NewWriter(in.To)
	e := exporter{json.NewEncoder(io.MultiWriter(sum, to)), in.Bodies}
	e.lines.SetEscapeHTML(false)
	if err := e.line(ExportLine{Kind: "export", Export: &ExportBegin{exportFormat, in.Ledger, utc(now), f == ledger.Filter{Limit: f.Limit}, in.Bodies}}); err != nil {
		return nil, err
	}
	r, err := ledger.Check(ctx, d.db, &ledger.CheckOptions{
		Filter: f, ChainsOnly: true, Acts: e.acts, Work: e.work, Progress: func(r ledger.Report) { in.Progress(r.Works) },
	})
	if err != nil {
		return nil, fmt.Errorf("the export is cut off, and amends verify will say so: %w", err)
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if err := cmp.Or(e.line(ExportLine{Kind: "end", End: &ExportEnd{r.Works, r.Records, r.Acts, digest}}), to.Flush()); err != nil {
		return nil, err
	}
	return &Exported{in.Ledger, utc(now), *reportOf(&r), digest}, nil
}

// exporter writes the lines of an export.
type exporter struct {
	lines  *json.Encoder
	bodies bool
}

func (e *exporter) line(l ExportLine) error {
	if err := e.lines.Encode(&l); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

func (e *exporter) acts(page []ledger.Act, head *ledger.Act) error {
	for _, a := range page {
		a.At = a.At.UTC()
		if err := e.line(ExportLine{Kind: "act", Act: &ExportAct{hex.EncodeToString(a.Hash), string(a.Body), a}}); err != nil {
			return err
		}
	}
	if len(page) > 0 {
		return nil
	}
	return e.line(ExportLine{Kind: "acts", Acts: &ExportAct{Hash: hex.EncodeToString(head.Hash), Act: *head}})
}

func (e *exporter) work(head *ledger.Instance, records []machine.Record, moving bool) error {
	h := *head
	inUTC(&h.Due, &h.Deadline, &h.Created, &h.Updated, &h.Finished)
	if err := e.line(ExportLine{Kind: "work", Work: &ExportWork{h.ID.Work, h.ID.Saga, moving, machine.Hash(h.Salt), h}}); err != nil {
		return err
	}
	for _, r := range records {
		if !e.bodies { // in the hash their digests stand for them
			rest := r
			rest.Erase(h.Salt)
			r.Erased.Body, r.Erased.Snapshot, r.Body, r.Snapshot = rest.Erased.Body, rest.Erased.Snapshot, nil, nil
		}
		inUTC(&r.At, &r.Until)
		if err := e.line(ExportLine{Kind: "record", Record: &ExportRecord{h.ID.Work, h.ID.Saga, string(r.Body), string(r.Snapshot), r}}); err != nil {
			return err
		}
	}
	return nil
}

func inUTC(times ...*time.Time) {
	for _, t := range times {
		*t = t.UTC()
	}
}

// act is the one that a line tells.
func (l *ExportAct) act() (*ledger.Act, error) {
	a, err := l.Act, error(nil)
	a.Body = json.RawMessage(l.Body)
	a.Hash, err = hex.DecodeString(l.Hash)
	return &a, err
}

// head is the one that a line tells.
func (l *ExportWork) head() *ledger.Instance {
	h := l.Instance
	h.ID, h.Salt = saga.ID{Saga: l.Saga, Work: l.WorkID}, machine.Salt(l.Salt)
	return &h
}

// record is the one that a line tells.
func (l *ExportRecord) record() machine.Record {
	r := l.Record
	r.Body, r.Snapshot = json.RawMessage(l.Body), json.RawMessage(l.Snapshot)
	return r
}
