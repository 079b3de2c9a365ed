package plan

// Risk groups actions by what they can break.
type Risk string

// The risks, each but the first with a bound of its own.
const (
	Harmless Risk = ""        // nothing, look, resume, adopt, review: no document is made, changed or undone
	Create   Risk = "create"  // a document is made
	Update   Risk = "update"  // a document that stands is changed
	Destroy  Risk = "destroy" // what stands is undone
)

// Risks are those that have a bound, the worst first.
var Risks = []Risk{Destroy, Create, Update}

// Risk returns what carrying out the finding can break. An action that runs a work again makes a
// document where none stands, and changes it where one does.
func (f *Finding) Risk() Risk {
	switch {
	case f.Action == Withdraw:
		return Destroy
	case f.Action == Start, (f.Action == Revise || f.Action == Again) && len(f.Documents) == 0:
		return Create
	case f.Action == Revise, f.Action == Again, f.Action == Adopt && len(f.Changes) > 0: // it is brought up to date at once
		return Update
	default:
		return Harmless
	}
}
