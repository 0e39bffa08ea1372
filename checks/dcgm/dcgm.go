// Package dcgm judges what NVIDIA's Data Center GPU Manager says of a node: the output of its diagnostic and its health
// watches.
//
// The diagnostic's output is read in every form from 2.x to 4.6 (Parse); what an error means is read from its own severity
// where it has one, in the numbering of its generation, and from the table of error codes otherwise. A test that was
// skipped proves nothing, nor does one that passed and complains all the same.
// Sources: the JSON writer dcgmi/Diag.cpp and the table dcgm_errors.h of the NVIDIA/DCGM tags v2.1.4 to v4.6.0.
package dcgm

// Ids of the package's checks in the catalog.
const (
	ID       = "dcgm"        // the diagnostic
	HealthID = "dcgm_health" // the health watches
)

// A Report is what one or more runs of the diagnostic said, put together.
type Report struct {
	Version string   // of DCGM, as 3.3.1; empty when the output does not say
	Driver  string   // kernel driver version; empty when the output does not say
	Tests   []Test   // in the order of the output
	Missing string   // why there is no dcgmi on the node; empty: there is one
	Runtime []string // why the diagnostic could not be run
	Overall string   // of iterated runs: "Overall Result"; empty when there is none
	GPUs    []Device // named by the output, by index
	Runs    int      // results found: documents, iterations, tables
	Table   bool     // read from the table that dcgmi prints for people, which carries no error codes
	Cut     bool     // the output ends in the middle of a result
	Broken  int      // bytes into the output where it stops being JSON; 0 for not at all
	Exit    *int     // the exit status of dcgmi; nil when not known
}

// A Device is a GPU as the diagnostic names it.
type Device struct {
	Index  int
	Serial string // of the board; empty when the output does not say
}

// A Test is one test with its results.
type Test struct {
	Category string // Deployment, Hardware, Integration, Stress …
	Name     string
	Rows     []Row
}

// A Row is a test's result on one entity.
type Row struct {
	Entity Entity
	Status Status
	Errors []Error
	Info   []string
}

// An Entity is what a result is about. The zero value is the node as a whole.
type Entity struct {
	Group Group
	ID    int
}

// A Group is the kind of an entity, numbered as dcgm_field_entity_group_t.
type Group int

const (
	OfNode   Group = 0 // DCGM_FE_NONE
	OfGPU    Group = 1 // DCGM_FE_GPU
	OfSwitch Group = 3 // DCGM_FE_SWITCH
	OfCPU    Group = 7 // DCGM_FE_CPU
)

// A Status is what a test says of itself. The zero value is one that is not known.
type Status int

const (
	StatusUnknown Status = iota
	Passed
	Warned // passed, with warnings
	Failed
	Skipped // also not run
)

// An Error is one complaint of a test.
type Error struct {
	Code     int      // dcgmError_t; -1 when the output does not say
	Category int      // dcgmErrorCategory_t; -1 when the output does not say
	Severity Severity // Unsaid when the output does not say
	Text     string   // one line
}

// A Severity is what DCGM says should follow from an error, in the numbering since 3.3, less one.
type Severity int

const (
	Unsaid     Severity = iota - 1
	NoSeverity          // 0 NONE
	Monitor             // 1 can go on working; watch it
	Isolate             // 2 cannot do its work; take it out
	Unsure              // 3 UNKNOWN
	Triage              // 4 look into it
	Config              // 5 a setting
	Reset               // 6 a reset will do
)

var severityNames = [...]string{"unsaid", "none", "monitor", "isolate", "unknown", "triage", "config", "reset"}

func (s Severity) String() string {
	if s >= Unsaid && int(s+1) < len(severityNames) {
		return severityNames[s+1]
	}
	return severityNames[0]
}

// numbering is how a generation numbers severities.
type numbering int

const (
	numbersSince33  numbering = iota
	numbersBefore33           // MONITOR 0, ISOLATE 1, UNKNOWN 2
)

// severity gives the meaning of a number in the output.
func (n numbering) severity(number int) Severity {
	if n == numbersBefore33 {
		switch number {
		case 0:
			return Monitor
		case 1:
			return Isolate
		case 2:
			return Unsure
		}
		return Unsaid
	}
	if number < int(NoSeverity) || number > int(Reset) {
		return Unsaid
	}
	return Severity(number)
}
