package command

import "reflect"

// shapes are what the verbs print with -o json, by their names.
var shapes = map[string]any{
	"status": statusJSON{}, "list": listing[headJSON]{}, "show": viewJSON{}, "history": historyJSON{}, "history of a scope": actsJSON{},
	"duplicates": duplicatesJSON{}, "acts": listing[deedJSON]{}, "approvals": listOf[approvalJSON]{}, "approval": approvalJSON{},
	"order": outcomeJSON{}, "orders": listOf[outcomeOfOneJSON]{}, "scope": scopeJSON{}, "deliver": ackJSON{},
	"destination list": destinationsJSON{}, "destination probe": probedJSON{},
	"inbox list": listing[deliveryJSON]{}, "inbox objects": listing[entryJSON]{}, "inbox counts": listOf[countJSON]{}, "inbox show": hearingJSON{}, "inbox replay": replayJSON{},
	"schedule list": boardJSON{}, "schedule run": runJSON{}, "schedule pause": pauseJSON{}, "schedule check": expressionJSON{},
	"reconcile runs": listing[runJSON]{}, "reconcile show": planJSON{}, "reconcile apply": appliedJSON{}, "reconcile approve": approvedJSON{},
	"drift list": listing[driftJSON]{}, "check": reportJSON{}, "catch-up": caughtUpJSON{}, "version": versionJSON{},
}

// Shape is the type of what a verb prints as JSON; nil where there is none of that name.
func Shape(name string) reflect.Type {
	v, known := shapes[name]
	if !known {
		return nil
	}
	return reflect.TypeOf(v)
}
