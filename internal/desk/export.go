package desk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
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
	Newest, After, N, Error struct{} `flag:"-"` // pages, and what no filter of a ledger knows

	Bodies   bool              `json:"-" flag:"bodies" doc:"export inputs and results, too"`
	Ledger   string            `flag:"-"` // its address
	To       io.Writer         `flag:"-"`
	Progress func(works int64) `flag:"-"` // is told how far it has come
}

// Exported is what an export has, and whether it is sound.
type Exported struct {
	Ledger string     `json:"ledger"`
	At     *time.Time `json:"at"`    // when it was begun
	Whole  bool       `json:"whole"` // no filter narrowed it
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
	whole := f == ledger.Filter{Limit: f.Limit}
	if err := e.line(ExportLine{Kind: "export", Export: &ExportBegin{exportFormat, in.Ledger, utc(now), whole, in.Bodies}}); err != nil {
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
	return &Exported{in.Ledger, utc(now), whole, *reportOf(&r), digest}, nil
}

// exporter writes the lines of an export.
type exporter struct {
	lines  *json.Encoder
	bodies bool
}

func (e *exporter) line(l ExportLine) error { return e.lines.Encode(&l) }

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
			r.Digests.Body, r.Digests.Snapshot, r.Body, r.Snapshot = rest.Digests.Body, rest.Digests.Snapshot, nil, nil
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
	if l.Body != "" { // an empty one is none
		r.Body = json.RawMessage(l.Body)
	}
	if l.Snapshot != "" {
		r.Snapshot = json.RawMessage(l.Snapshot)
	}
	return r
}

// VerifyIn says where an export is read from.
type VerifyIn struct {
	From     io.Reader         `flag:"-"`
	Progress func(works int64) `flag:"-"` // is told how far it has come
}

// Verified is what was found in an export.
type Verified struct{ Exported }

// Alarm is the finding that an export is not sound, or nil.
func (v *Verified) Alarm() error {
	n := len(v.Findings)
	return alarm(n, "the export is not sound: "+count(n, "finding"), "do not rely on what it says; compare its digest with the one that amends export printed, or export again")
}

// mostFindings is how many findings of one export are told. What is none has one in every line.
const mostFindings = 1000

// Verify computes again everything that an export says of itself. It needs no database, and has one work at a time in memory.
func (d *Desk) Verify(ctx context.Context, in *VerifyIn) (*Verified, error) {
	p, from := &proof{sum: sha256.New()}, bufio.NewReader(in.From)
	for !p.foreign && len(p.Findings) < mostFindings {
		line, err := from.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			p.line++
			p.examine()
			p.wrong(!p.ended, "It is cut off: the line that ends an export is missing.")
			break
		}
		if err = cmp.Or(ctx.Err(), Either(errors.Is(err, io.EOF), nil, err)); err != nil {
			return nil, fmt.Errorf("read the export: %w", err)
		}
		p.line++
		if err := p.read(line); err != nil {
			return nil, err
		}
		in.Progress(p.Works)
	}
	p.Sound = len(p.Findings) == 0
	p.Findings = append([]CheckFinding{}, p.Findings...) // never null
	return &p.Verified, nil
}

// proof is an export that is verified.
type proof struct {
	Verified
	sum     hash.Hash // of the lines so far
	line    int64     // the number of the one that is read
	foreign bool      // it is no export
	headed  bool      // the line behind the acts was
	ended   bool      // its last line was read
	links   ledger.ActLinks

	work    *ExportWork // whose records are read; nil: none are
	at      int64       // its line
	records []machine.Record
}

// wrong is a finding about the line that is read.
func (p *proof) wrong(is bool, format string, args ...any) {
	if is {
		p.found(p.line, ledger.Finding{What: fmt.Sprintf(format, args...)})
	}
}

func (p *proof) found(line int64, all ...ledger.Finding) {
	for _, f := range reportOf(&ledger.Report{Findings: all}).Findings {
		f.Where = fmt.Sprintf("line %d", line) + When(f.WorkID != "" || f.Act > 0, ", "+f.Where)
		f.Line, f.Do = line, "" // what is to be done about a ledger is no advice about a file
		p.Findings = append(p.Findings, f)
	}
}

// read reads a line. The error is that of a format which is not known.
func (p *proof) read(line []byte) error {
	var l ExportLine
	err := json.Unmarshal(line, &l)
	begin := l.Export
	if p.foreign = p.line == 1 && begin == nil; p.foreign {
		p.wrong(true, "It is not the first line of an export: this is none, or it was changed.")
		return nil
	}
	if begin != nil && begin.Format > exportFormat {
		return &Failure{
			Code: Failed, What: fmt.Sprintf("the export has format %d, and this amends knows those up to %d", begin.Format, exportFormat),
			Stands: "it was not verified", Next: "verify it with an amends as new as the one that wrote it",
		}
	}
	p.wrong(p.ended, "It is behind the line that ends the export.")
	if l.End == nil {
		p.sum.Write(line)
	}
	switch {
	case err != nil:
	case begin != nil:
		p.Ledger, p.At, p.Whole = begin.Ledger, begin.At, begin.Whole
	case cmp.Or(l.Act, l.Acts) != nil:
		err = p.act(cmp.Or(l.Act, l.Acts), l.Acts != nil)
	case l.Work != nil:
		p.examine()
		p.work, p.at, p.records = l.Work, p.line, nil
		p.Works, p.Moving = p.Works+1, p.Moving+Either[int64](l.Work.Moving, 1, 0)
	case l.Record != nil:
		p.wrong(p.work == nil || p.work.WorkID != l.Record.WorkID || p.work.Saga != l.Record.Saga, "It is a record of %s %s, and not behind the line of that work.", l.Record.Saga, l.Record.WorkID)
		p.records, p.Records = append(p.records, l.Record.record()), p.Records+1
	case l.End != nil:
		p.end(l.End, line)
	default:
		p.wrong(true, "An export has no kind %q.", l.Kind)
	}
	p.wrong(err != nil, "It cannot be read: %v.", err)
	return nil
}

// act verifies an act, or that the one before was the last.
func (p *proof) act(l *ExportAct, last bool) error {
	a, err := l.act()
	if last {
		p.headed = true
		p.links.End(a)
	} else {
		p.links.Add(a)
		p.Acts++
	}
	p.found(p.line, p.links.Found...)
	p.links.Found = nil
	return err
}

// examine verifies the work whose records were read.
func (p *proof) examine() {
	if p.work == nil {
		return
	}
	for _, f := range ledger.Examine(p.work.head(), p.records, p.work.Moving) {
		n := slices.IndexFunc(p.records, func(r machine.Record) bool { return r.Seq == f.Seq }) // -1: it is about the head
		p.found(p.at+int64(n)+1, f)
	}
	p.work = nil
}

// end compares the last line with what was read. The digest does not cover this line: it has to be just as an export writes it.
func (p *proof) end(e *ExportEnd, line []byte) {
	p.examine()
	p.ended, p.SHA256 = true, hex.EncodeToString(p.sum.Sum(nil))
	written, _ := json.Marshal(&ExportLine{Kind: "end", End: e})
	p.wrong(!bytes.Equal(append(written, '\n'), line), "It is not as an export writes it: it was changed, or cut off.")
	p.wrong(p.Whole && !p.headed, "The line behind the acts of people is missing, and no filter narrowed it.")
	is := ExportEnd{p.Works, p.Records, p.Acts, p.SHA256}
	p.wrong(*e != is, "It says %v, and before it are %v: something was changed, added or taken away.", *e, is)
}
