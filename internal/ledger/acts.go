package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/saga"
)

// Act is what a person did, or looked at, as it is on record: a link of the one chain of all acts.
type Act struct {
	Control        // of what is no control, Version is a random number
	Number  int64  `json:"number,string"` // from 1 on, without a gap, in the order of being stored
	Hash    []byte `json:"-"`             // see Sum
}

// Sum computes the act's hash as the successor of the one with hash prev, nil for the first. The
// layout is a format: its version and all numbers in 8 bytes each, then prev and all texts, each
// with its length before it. What may name a person enters by its digest, so that it can be erased.
func (a *Act) Sum(prev []byte) []byte {
	b := make([]byte, 0, 512)
	for _, n := range [...]int64{1, a.Number, a.At.UnixMicro(), int64(a.Session), a.Version, a.Nonce} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	for _, s := range [...]string{string(prev), string(a.Kind), a.digest(a.Name), a.digest(string(a.Body)), a.Actor, a.digest(a.Reason)} {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// erasedText begins what is left of a text of an act that was erased: its digest is behind it.
const erasedText = "erased:"

// digest is by what a text of the act enters its hash.
func (a *Act) digest(text string) string {
	if digest, is := erased(text); is {
		return digest
	}
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(a.Number)), text...))
	return hex.EncodeToString(sum[:])
}

// Erase takes the texts out of the act that name a work: with its saga, or by its id alone, where that is long enough to be no other
// word. Its hash stays. It reports whether there was anything.
func (a *Act) Erase(id saga.ID) (changed bool) {
	for _, text := range []*string{&a.Name, &a.Reason} {
		if NamesWork(*text, id) {
			*text, changed = erasedText+a.digest(*text), true
		}
	}
	escaped, _ := json.Marshal(id.Work) //nolint:errchkjson // texts always encode
	if body := string(a.Body); NamesWork(body, id) || NamesWork(body, saga.ID{Saga: id.Saga, Work: string(escaped[1 : len(escaped)-1])}) {
		a.Body, changed = json.RawMessage(strconv.Quote(erasedText+a.digest(body))), true
	}
	return changed
}

// erased is the digest of a text that was erased. A body is JSON.
func erased(text string) (digest string, is bool) {
	digest, is = strings.CutPrefix(strings.Trim(text, `"`), erasedText)
	b, err := hex.DecodeString(digest)
	return digest, is && err == nil && len(b) == sha256.Size
}

// NamesWork reports whether a text names a work: with its saga, or by its id alone, where that is long enough to be no other word.
func NamesWork(text string, id saga.ID) bool {
	if _, is := erased(text); is {
		return false
	}
	return HasWord(text, id.Saga+" "+id.Work) || HasWord(text, id.Saga+"/"+id.Work) || Names(text, id.Work)
}

// Names reports whether a text has a name as a word, where that is long enough to be no other one.
func Names(text, name string) bool {
	const tellsItself = 5
	return len(name) >= tellsItself && HasWord(text, name)
}

// HasWord reports whether a text has the word: between spaces, marks and slashes.
func HasWord(text, word string) bool {
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(word):])
		if !ofWord(before) && !ofWord(after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(rest[i:])
		rest = rest[i+size:]
	}
}

// ofWord reports whether a word that has r beside it goes on there. Nothing beside it is an error of decoding.
func ofWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

const doAct = "Compare table amends_audit with a backup, and ask who can write to the database. No instance depends on it."

// acts verifies the chain of acts. It only grows: what is stored meanwhile is on a later page, and
// each page comes with the head of its moment.
func (c *checker) acts(ctx context.Context) error {
	var links ActLinks
	for {
		page, head, err := c.ActChain(ctx, links.last.Number, 1000)
		if err != nil {
			return fmt.Errorf("read the acts behind number %d: %w", links.last.Number, err)
		}
		for i := range page {
			links.Add(&page[i])
		}
		if c.Acts != nil {
			if err := c.Acts(page, &head); err != nil {
				return err
			}
		}
		c.report.Acts += int64(len(page))
		if len(page) > 0 {
			continue
		}
		links.End(&head)
		c.report.Findings = append(c.report.Findings, links.Found...)
		return nil
	}
}

// ActLinks verifies the chain of acts, one after the other. The zero value is before the first.
type ActLinks struct {
	Found []Finding
	last  Act

	erased  int64 // the first act of which a text was erased
	because bool  // a person had something erased
}

// Add verifies the next act. The stored hash of its predecessor counts, so that an edited one is named
// itself; behind a gap there is none to go by.
func (l *ActLinks) Add(a *Act) {
	last := l.last
	l.last = *a
	for _, text := range []string{a.Name, string(a.Body), a.Reason} {
		if _, is := erased(text); is && l.erased == 0 {
			l.erased = a.Number
		}
	}
	l.because = l.because || a.Kind == DeedErase
	if a.Number != last.Number+1 {
		l.findf(last.Number+1, "There is a gap: after act %d comes act %d, which %s did at %s. What was between them was deleted.", last.Number, a.Number, a.Actor, stamp(a.At))
		return
	}
	if sum := a.Sum(last.Hash); !bytes.Equal(sum, a.Hash) {
		l.findf(a.Number, "It says: %s by %s at %s (%s). Its hash is %x, but its content and predecessor give %x: it was edited.", a.Kind, a.Actor, stamp(a.At), a.Name, a.Hash, sum)
	}
}

// End compares the last act with the head of the chain.
func (l *ActLinks) End(head *Act) {
	if l.erased > 0 && !l.because {
		l.findf(l.erased, "A text of it was erased, and no act says that a person had something erased: it was taken out by hand.")
	}
	switch last := &l.last; {
	case head.Number > last.Number:
		l.findf(last.Number+1, "The last acts are missing: the ledger counts %d, and none is behind number %d.", head.Number, last.Number)
	case head.Number < last.Number:
		l.findf(head.Number+1, "The ledger counts %d acts, and number %d is there: it was put there by hand, or the count was changed.", head.Number, last.Number)
	case !bytes.Equal(head.Hash, last.Hash):
		l.findf(last.Number, "Its hash is %x, but the ledger says that the last act has %x: one of them was edited.", last.Hash, head.Hash)
	}
}

func (l *ActLinks) findf(number int64, format string, args ...any) {
	l.Found = append(l.Found, Finding{Act: number, What: fmt.Sprintf(format, args...), Do: doAct})
}
