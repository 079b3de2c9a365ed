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

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

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
		p.Ledger, p.At = begin.Ledger, begin.At
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
	is := ExportEnd{p.Works, p.Records, p.Acts, p.SHA256}
	p.wrong(*e != is, "It says %v, and before it are %v: something was changed, added or taken away.", *e, is)
}
