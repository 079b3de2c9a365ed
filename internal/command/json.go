package command

import (
	_ "embed"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/docs"
)

// API is the version of the JSON: of what the verbs print with -o json, and of /api/v1. As long as it
// is the same, fields are added, and none is renamed, removed or given another meaning.
const API = "v1"

// jsonHelp is the promise, and every field.
//
//go:embed json.txt
var jsonHelp string

// topics are what amends help has beside the verbs.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "json", Short: "What -o json prints, field by field, and what is promised of it", Long: strings.TrimSpace(jsonHelp)},
		{Use: "situations", Short: "Every reason of a review and every finding of status: what happened, and what to do", Long: strings.TrimSpace(docs.Situations)},
	}
}

// shapes are what the verbs print with -o json, by their names.
var shapes = map[string]any{
	"status": statusJSON{}, "list": listing[headJSON]{}, "show": viewJSON{}, "history": historyJSON{}, "history of a scope": actsJSON{},
	"duplicates": duplicatesJSON{}, "acts": listing[deedJSON]{}, "approvals": listOf[approvalJSON]{}, "approval": approvalJSON{},
	"order": outcomeJSON{}, "orders": listOf[outcomeOfOneJSON]{}, "scope": scopeJSON{}, "deliver": ackJSON{},
	"destination list": destinationsJSON{}, "destination probe": probedJSON{},
	"inbox list": listing[deliveryJSON]{}, "inbox objects": listing[entryJSON]{}, "inbox counts": listOf[countJSON]{}, "inbox show": hearingJSON{}, "inbox replay": replayJSON{}, "inbox release": endedJSON{},
	"schedule list": boardJSON{}, "schedule run": runJSON{}, "schedule pause": pauseJSON{}, "schedule check": expressionJSON{},
	"reconcile runs": listing[runJSON]{}, "reconcile show": planJSON{}, "reconcile apply": appliedJSON{}, "reconcile approve": approvedJSON{},
	"drift list": listing[driftJSON]{}, "check": reportJSON{}, "catch-up": caughtUpJSON{}, "recover": recoveredJSON{}, "version": versionJSON{},
}

// Shape is the type of what a verb prints as JSON; nil where there is none of that name.
func Shape(name string) reflect.Type {
	v, known := shapes[name]
	if !known {
		return nil
	}
	return reflect.TypeOf(v)
}
