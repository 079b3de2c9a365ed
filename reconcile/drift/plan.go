package drift

// Plan says what a comparison found and what would be done about it. Its findings are kept beside it, in the order
// of their keys. Equal sides give an equal plan, byte for byte: it holds no time and no chance.
type Plan struct {
	ID         string   `json:"id"` // over everything below and every finding; an approval names it
	Job        string   `json:"job"`
	Mapping    string   `json:"mapping"` // version of what Want makes of objects
	Generation int64    `json:"generation"`
	Census     Census   `json:"census"`
	Tallies    []Tally  `json:"tallies"`            // by class and verb; what is in sync, too
	Withheld   []Excess `json:"withheld,omitempty"` // what the bounds keep from being done without an approval
	Refused    string   `json:"refused,omitempty"`  // why nothing of it may be done: the diagnosis
}

// Census counts the sides.
type Census struct {
	Source      int64 `json:"source"`
	Destination int64 `json:"destination"`
	Ledger      int64 `json:"ledger"`
	Keys        int64 `json:"keys"`             // that any side has
	Before      int64 `json:"before,omitempty"` // objects of the source in the last complete listing
}

// Tally counts the findings of one class for which one thing is to be done.
type Tally struct {
	Class Class `json:"class"`
	Do    Verb  `json:"do"`
	Count int64 `json:"count"`
}

// Risk groups verbs by what they can break.
type Risk string

// The risks, each with a bound of its own.
const (
	Harmless Risk = "harmless" // nothing, look, resume, adopt, review: no document is made, changed or undone
	Create   Risk = "create"
	Update   Risk = "update"
	Destroy  Risk = "destroy"
)

// Excess is a kind of action that is over its bound and is withheld.
type Excess struct {
	Risk  Risk   `json:"risk"`
	Count int64  `json:"count"`
	Limit int64  `json:"limit"`
	Why   string `json:"why"`
}
