package machine_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/spin"
)

// The model of the protocol: as it stands it holds, and every mutant, which lacks one rule, is
// caught. The head of saga.pml says what is modelled and what each switch means.
var protocol = spin.Model{
	File: "saga.pml",
	Scenes: []spin.Scene{
		{Name: "pivot last", Full: "-DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=2"},
		{Name: "fallible step behind the pivot", Switches: "-DAFTER", Full: "-DAFTER -DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=2"},
		{Name: "cancel by key", Switches: "-DTOMB", Full: "-DTOMB -DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=1"},
		{Name: "fail-over", Switches: "-DREGRESS", Full: "-DREGRESS -DCRASHES=1 -DEARLY=1 -DLOSSES=2 -DAMBIG=1"},
		{Name: "fail-over, fallible step", Switches: "-DREGRESS -DAFTER -DAMBIG=0", Full: "-DREGRESS -DAFTER -DCRASHES=2 -DEARLY=1 -DLOSSES=2 -DAMBIG=1"},
		{Name: "a clock that runs ahead", Switches: "-DJUMP -DAMBIG=0", Full: "-DJUMP -DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=1"},
		{Name: "resolutions", Switches: "-DVERDICT -DEARLY=0 -DAMBIG=0", Full: "-DVERDICT"},
		{Name: "resolutions, fallible step", Switches: "-DVERDICT -DAFTER -DAMBIG=0", Full: "-DVERDICT -DAFTER"},
		{Name: "revisions", Switches: "-DREVISE -DEARLY=0 -DAMBIG=0", Full: "-DREVISE -DAMBIG=0"},
		{Name: "revisions, fallible step", Switches: "-DREVISE -DAFTER -DEARLY=0 -DAMBIG=0", Full: "-DREVISE -DAFTER -DAMBIG=0"},
		{Name: "revisions, all can be undone", Switches: "-DREVISE -DOPUNDO -DNOOPERATOR -DEARLY=0 -DAMBIG=0", Full: "-DREVISE -DOPUNDO -DCRASHES=2 -DLOSSES=2 -DEARLY=0 -DAMBIG=0"},
		{Name: "revisions, some need no undo", Switches: "-DREVISE -DNEEDLESS -DNOOPERATOR -DEARLY=0 -DAMBIG=0", Full: "-DREVISE -DNEEDLESS -DNOOPERATOR -DAMBIG=0"},
		{Name: "revisions, a step is removed", Switches: "-DREVISE -DREMOVED -DEARLY=0 -DAMBIG=0", Full: "-DREVISE -DREMOVED -DAMBIG=0"},
		{Name: "revisions, one deleted at the destination", Switches: "-DDELETED " + revise, Full: "-DDELETED -DREVISE -DEARLY=0 -DAMBIG=0"},
		{Name: "revisions, one deleted at the destination, fallible step", Switches: "-DDELETED -DAFTER " + revise, Full: "-DDELETED -DREVISE -DAFTER -DEARLY=0 -DAMBIG=0"},
		{Name: "revisions, stalled process", Switches: "-DREVISE -DNEWS=1 -DNOOPERATOR -DAMBIG=0", Full: "-DREVISE -DNEWS=1"},
		{Name: "lookups that lie", Switches: "-DLIES", Full: "-DLIES -DCRASHES=2 -DEARLY=2 -DLOSSES=2"},
		{Name: "lookups that lie, revisions", Switches: "-DLIES " + revise, Full: "-DLIES -DREVISE -DAMBIG=0"},
		{Name: "lookups that lie, revisions, all can be undone", Switches: "-DLIES -DOPUNDO " + revise, Full: "-DLIES -DREVISE -DOPUNDO -DCRASHES=2 -DLOSSES=2 -DEARLY=0 -DAMBIG=0"},
		{Name: "an old program", Switches: "-DTAKEOVER", Full: "-DTAKEOVER -DCRASHES=2 -DEARLY=2 -DLOSSES=2"},
		{Name: "an old program, fallible step", Switches: "-DTAKEOVER -DAFTER", Full: "-DTAKEOVER -DAFTER -DCRASHES=2 -DEARLY=2 -DLOSSES=2"},
		{Name: "rebuild", Switches: "-DREBUILD -DPEOPLE=0 -DAMBIG=0", Full: "-DREBUILD -DPEOPLE=0 -DCRASHES=2 -DLOSSES=2"},
		{Name: "rebuild, fallible step", Switches: "-DREBUILD -DAFTER -DPEOPLE=0 -DAMBIG=0", Full: "-DREBUILD -DAFTER -DPEOPLE=0 -DCRASHES=2 -DLOSSES=2"},
		{Name: "rebuild, a person's word", Switches: "-DREBUILD -DEARLY=0 -DAMBIG=0", Full: "-DREBUILD -DPEOPLE=2 -DEARLY=0 -DAMBIG=0"},
		{Name: "rebuild, a person's word, fallible step", Switches: "-DREBUILD -DAFTER -DEARLY=0 -DAMBIG=0", Full: "-DREBUILD -DAFTER -DPEOPLE=2 -DEARLY=0 -DAMBIG=0"},
		{Name: "people's hands", Switches: "-DHANDS -DEARLY=0 -DAMBIG=0", Full: "-DHANDS -DWORDS=3"},
		{Name: "people's hands, fallible step", Switches: "-DHANDS -DAFTER -DEARLY=0 -DAMBIG=0", Full: "-DHANDS -DAFTER -DWORDS=3"},
		{Name: "refusals that are saved under the key", Switches: "-DKEPT", Full: "-DKEPT -DCRASHES=2 -DEARLY=2 -DLOSSES=2"},
		{Name: "refusals that are saved under the key, fail-over", Switches: "-DKEPT -DREGRESS -DEARLY=0 -DAMBIG=0", Full: "-DKEPT -DREGRESS -DAFTER"},
		{Name: "crashes", Switches: "-DPOISON -DLIMIT=1 -DCRASHES=2 -DAMBIG=0", Full: "-DPOISON -DCRASHES=3 -DEARLY=2 -DLOSSES=2"},
		{Name: "crashes, fallible step", Switches: "-DPOISON -DAFTER -DCRASHES=3 -DEARLY=0 -DAMBIG=0", Full: "-DPOISON -DAFTER -DCRASHES=3 -DEARLY=2 -DLOSSES=2"},
	},
	Live: []spin.Scene{
		{Name: "every fair execution ends", Switches: "-DLIVE"},
		{Name: "every fair execution ends, after crashes", Switches: "-DLIVE -DPOISON -DLIMIT=1 -DCRASHES=2 -DAMBIG=0"},
		{Name: "every revision ends", Switches: "-DLIVE -DREVISE -DOPUNDO -DEARLY=0 -DAMBIG=0"},
	},
	Mutants: []spin.Mutant{
		{Name: "NOFENCE", Breaks: "finishedIsFinal"},
		{Name: "TOKENONLY", Scene: "-DREGRESS", Breaks: "noLostWork"},
		{Name: "NOINTENT", Breaks: "compensatedIsClean"},
		{Name: "NOMARGIN", Scene: "-DREGRESS", Breaks: "compensatedIsClean"},
		{Name: "LATEGATE", Breaks: "noDoubleEffect"},
		{Name: "FALSELOCK", Breaks: "noDoubleEffect"},
		{Name: "BELIEVED", Scene: "-DJUMP", Breaks: "noDoubleEffect"},
		{Name: "NOSETTLE", Breaks: "compensatedIsClean"},
		{Name: "DONEONLY", Breaks: "compensatedIsClean"},
		{Name: "BLIND", Breaks: "noDoubleEffect"},
		{Name: "TRUSTREFUSAL", Breaks: "compensatedIsClean"},
		{Name: "NOQUAR", Scene: "-DREGRESS", Breaks: "compensatedIsClean"},
		{Name: "LATECANCEL", Breaks: "noWayBackAfterPivot"},
		{Name: "NOWAIT", Scene: "-DREGRESS", Breaks: "compensatedIsClean"},
		{Name: "DROPRESULT", Breaks: "nothingDropped"},
		{Name: "DROPSTALE", Breaks: "nothingDropped"},
		{Name: "DROPLATE", Breaks: "nothingDropped"},
		{Name: "OLDLATE", Breaks: "compensatedIsClean"},
		{Name: "RESEND", Breaks: "compensatedIsClean"},
		{Name: "RETRYWRITE", Breaks: "noDoubleEffect"},
		{Name: "FORGETMAYBE", Scene: "-DLOSSES=2", Breaks: "compensatedIsClean"},
		{Name: "UNDOAFTER", Scene: "-DAFTER", Breaks: "noWayBackAfterPivot"},
		{Name: "TURNARM", Scene: "-DREGRESS", Breaks: "chainTellsTheTruth"},
		{Name: "TAILONLY", Scene: "-DREGRESS", Breaks: "noDoubleEffect"},
		{Name: "HASTY", Scene: "-DVERDICT -DEARLY=0 -DAMBIG=0", Breaks: "noDoubleEffect"},
		{Name: "OLDVERDICT", Scene: "-DVERDICT -DAFTER -DAMBIG=0", Breaks: "noDoubleEffect"},

		{Name: "ANYKEPT", Scene: "-DKEPT", Breaks: "compensatedIsClean"},
		{Name: "UNKEPT", Scene: "-DKEPT", Breaks: "compensatedIsClean"},

		{Name: "RETRYSENDS", Scene: hands, Breaks: "noDoubleEffect"},
		{Name: "OLDSKIP", Scene: hands, Breaks: "completedIsWhole"},
		{Name: "PAUSEUNDO", Scene: hands, Breaks: "heedsPause"},
		{Name: "PAUSETURN", Scene: hands, Breaks: "noLostWork"},

		{Name: "CRASHLOOP", Scene: crashes, Breaks: "noCrashLoop"},
		{Name: "UNDOLOOP", Scene: crashes, Breaks: "noCrashLoop"},
		{Name: "POISONOUT", Scene: crashes, Breaks: "chainTellsTheTruth"},
		{Name: "POISONDEAF", Scene: "-DPOISON -DLIMIT=1 -DCRASHES=2 -DAMBIG=0", Breaks: "noNeedlessReview"},

		{Name: "OLDREV", Scene: revise, Breaks: "newestWins"},
		{Name: "REVINDOUBT", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "REVONCOMP", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "NOREVSETTLE", Scene: revise, Breaks: "neverOlder"},
		{Name: "LATEUNDO", Scene: revise, Breaks: "completedIsWhole"},
		{Name: "TWINREV", Scene: revise, Breaks: "neverOlder"},
		{Name: "TWINUNDO", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "FORGETPREV", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "FINDOLD", Scene: revise, Breaks: "completedIsWhole"},
		{Name: "OLDREVLATE", Scene: "-DREVISE -DNOOPERATOR -DAMBIG=0 -DNEWS=1", Breaks: "compensatedIsClean"},
		{Name: "REVOPAQUE", Scene: revise, Breaks: "chainTellsTheTruth"},
		{Name: "REVBACK", Scene: revise, Breaks: "noWayBackAfterPivot"},
		{Name: "UNDOONLYNEW", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "GONEBLIND", Scene: revise + " -DREMOVED", Breaks: "compensatedIsClean"},
		{Name: "FORGETGONE", Scene: revise + " -DREMOVED", Breaks: "newestWins"},
		{Name: "REDONEEDLESS", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "DOUBTOPAQUE", Scene: revise, Breaks: "compensatedIsClean"},
		{Name: "GONETRUSTED", Scene: "-DDELETED " + revise, Breaks: "compensatedIsClean"},
		{Name: "FORGETDOUBT", Scene: revise + " -DNEEDLESS", Breaks: "chainTellsTheTruth"},

		{Name: "NEVERASK", Scene: "-DTAKEOVER", Breaks: "noDoubleEffect"},
		{Name: "EARLYASK", Scene: "-DTAKEOVER", Breaks: "noDoubleEffect"},
		{Name: "LOOKSEND", Scene: "-DLIES", Breaks: "noDoubleEffect"},
		{Name: "HALFSEND", Scene: "-DLIES", Breaks: "noDoubleEffect"},
		{Name: "REVUNFOUND", Scene: "-DLIES " + revise, Breaks: "chainTellsTheTruth"},
		{Name: "BACKUNFOUND", Scene: "-DLIES -DOPUNDO " + revise, Breaks: "noDoubleEffect"},

		{Name: "BEGINRUNNING", Scene: rebuild, Breaks: "noDoubleEffect"},
		{Name: "MAILAGAIN", Scene: rebuild, Breaks: "noDoubleEffect"},
		{Name: "HURRIED", Scene: rebuild, Breaks: "compensatedIsClean"},
		{Name: "UNASKED", Scene: rebuild, Breaks: "noDoubleEffect"},
		{Name: "OLDWORD", Scene: rebuild + " -DPEOPLE=2", Breaks: "noDoubleEffect"},
		{Name: "WORDSENDS", Scene: rebuild + " -DPEOPLE=2", Breaks: "noDoubleEffect"},
		{Name: "WORDDEAF", Scene: rebuild, Breaks: "nothingDropped"},
		{Name: "STAYSDONE", Scene: rebuild, Breaks: "completedIsWhole"},
	},
}

const crashes = "-DPOISON -DCRASHES=3 -DEARLY=0 -DAMBIG=0"

const hands = "-DHANDS -DAFTER -DEARLY=0 -DAMBIG=0"

const rebuild = "-DREBUILD -DNOOPERATOR -DEARLY=0 -DAMBIG=0"

const revise = "-DREVISE -DNOOPERATOR -DEARLY=0 -DAMBIG=0"

// The model of what waits. The head of waits.pml says what is modelled and what each switch means.
var waits = spin.Model{
	File: "waits.pml",
	Scenes: []spin.Scene{
		{Name: "waits", Full: "-DWORDS=2 -DNEWS=2"},
		{Name: "waits, the clock steps back", Switches: "-DBACK"},
		{Name: "waits, outages", Switches: "-DAWAY=2 -DCRASHES=2 -DHALTS=0", Full: "-DAWAY=2 -DCRASHES=2 -DNEWS=2 -DHALTS=0"},
		{Name: "answers from outside", Switches: messages, Full: messages + " -DCRASHES=2"},
		{Name: "messages that two may mean", Switches: pair, Full: pair + " -DCRASHES=2"},
		{Name: "votes of people", Switches: votes, Full: votes + " -DCRASHES=2"},
		{Name: "votes of people over two runs", Switches: runs},
	},
	Mutants: []spin.Mutant{
		{Name: "NODUE", Breaks: "noLostWork"},
		{Name: "REASKED", Breaks: "neverRestarted"},
		{Name: "HURRY", Breaks: "neverEarly"},
		{Name: "RESTART", Breaks: "neverRestarted"},
		{Name: "REDONE", Breaks: "neverRestarted"},
		{Name: "FRESHLINE", Breaks: "inTime"},
		{Name: "DEAF", Breaks: "inTime"},
		{Name: "ONLYWAIT", Breaks: "inTime"},
		{Name: "INLINE", Breaks: "inTime"},
		{Name: "BEHINDBACK", Breaks: "notBehindOnesBack"},
		{Name: "SAGABACK", Breaks: "notBehindOnesBack"},
		{Name: "PIVOTBACK", Breaks: "noWayBackAfterPivot"},
		{Name: "WAKEPAUSED", Breaks: "heedsPause"},
		{Name: "ASKWHEN", Breaks: "asIsSaid"},

		{Name: "LOOKFIRST", Scene: messages, Breaks: "neverLost"},
		{Name: "RECORDFIRST", Scene: messages, Breaks: "neverLost"},
		{Name: "FINDFIRST", Scene: messages, Breaks: "neverLost"},
		{Name: "TWICE", Scene: messages, Breaks: "answeredOnce"},
		{Name: "FOREIGN", Scene: messages, Breaks: "ofThisRevision"},
		{Name: "RACING", Scene: messages, Breaks: "saidInTime"},
		{Name: "DROPLATE", Scene: messages, Breaks: "successKept"},
		{Name: "INFLIGHT", Scene: messages, Breaks: "jobStays"},

		{Name: "SILENT", Scene: messages, Breaks: "onRecord"},
		{Name: "ENDINLINE", Scene: messages, Breaks: "noLostWork"},
		{Name: "UNPUT", Scene: messages, Breaks: "notUnasked"},
		{Name: "PAIDAGAIN", Scene: messages, Breaks: "answerStays"},

		{Name: "NOCAS", Scene: pair, Breaks: "usedOnce"},
		{Name: "POSTUSES", Scene: pair, Breaks: "notRobbed"},
		{Name: "NOOFFER", Scene: pair, Breaks: "heard"},
		{Name: "LATEOFFER", Scene: pair, Breaks: "heard"},
		{Name: "ROBBER", Scene: pair, Breaks: "notRobbed"},
		{Name: "ONELOOK", Scene: pair, Breaks: "notStranded"},
		{Name: "MUTE", Scene: pair, Breaks: "heard"},

		{Name: "ANYDIGEST", Scene: votes, Breaks: "ofWhatIsShown"},
		{Name: "KEEPVOTES", Scene: votes, Breaks: "ofWhatIsShown"},
		{Name: "ONETWICE", Scene: votes, Breaks: "byTwo"},
		{Name: "DESPITE", Scene: votes, Breaks: "heedsRejection"},
		{Name: "ENDFIRST", Scene: votes, Breaks: "voteKept"},
		{Name: "LATE", Scene: votes, Breaks: "beforeEnd"},
		{Name: "MEANWHILE", Scene: votes, Breaks: "notMeanwhile"},
		{Name: "SAMEDIGEST", Scene: runs, Breaks: "ofThisRun"},
		{Name: "OWNVERSION", Scene: votes, Breaks: "notOwn"},
		{Name: "OVERRULED", Scene: votes, Breaks: "heedsRejection"},
	},
}

const messages = "-DMESSAGES"

const pair = "-DPAIR"

const votes = "-DVOTES"

const runs = votes + " -DRUNS=1 -DCRASHES=0"

// Rule: the protocol holds in every scene, whatever the faults within the budget.
func TestModelHolds(t *testing.T) {
	spin.Asked(t)
	t.Parallel()
	protocol.Holds(t)
	waits.Holds(t)
}

// Rule: no rule of the protocol is idle. Without it, something that must hold breaks.
func TestModelMutants(t *testing.T) {
	spin.Asked(t)
	t.Parallel()
	protocol.Breaks(t)
	waits.Breaks(t)
}

// Rule: every mutant that saga.pml or waits.pml names is run, and every one that is run is explained there.
func TestModelNamesItsMutants(t *testing.T) { t.Parallel(); protocol.Explains(t); waits.Explains(t) }
