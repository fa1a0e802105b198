package comparison

// Kinds of attribution rows.
const (
	KindClass    = "class"
	KindCategory = "category"
	KindKernel   = "kernel"
	KindCause    = "idle_cause"
	KindHost     = "host_cause"
	KindCall     = "host_call"
	KindOthers   = "others"
)

// Classes of a unit's time, the rows of KindClass.
const (
	ClassCompute = "compute"
	ClassComm    = "exposed_comm"
	ClassCopy    = "exposed_copy"
	ClassIdle    = "idle"
)

// Status of a waiver after a comparison.
const (
	WaiverApplied = "applied" // it accepted what some gates found
	WaiverUnused  = "unused"  // nothing was there to accept: it warns, so that it is taken out
	// its day has passed: it accepts nothing, and what it would have accepted fails again
	WaiverExpired   = "expired"
	WaiverExceeded  = "exceeded"   // what it covers went beyond its ceiling, and fails
	WaiverNotJudged = "not_judged" // what it covers could not be judged this time
)

// DefaultFloor is the noise floor of a metric that nobody calibrated: 5 %.
const DefaultFloor = 0.05

// Ways in which kernels of two sides are paired, the surest first.
const (
	ByExact     = "exact"     // equal names
	ByCanonical = "canonical" // equal without addresses, sizes and counters
	ByFamily    = "family"    // of one library, operation and type, nearest in the unit
	ByPosition  = "position"  // of one category, between the same neighbours in the unit, run equally often
)

// Levels of a rule.
const (
	LevelError = "error" // a change beyond the rule fails the comparison
	LevelWarn  = "warn"  // it is shown and fails nothing
	LevelOff   = "off"   // what the rule selects is not judged
)

// MetricStructure is what a rule on the structural findings of a comparison names: a new blocking call, lost graph
// coverage, and the like.
const MetricStructure = "structure"

// Identifiers of structural findings. Those of calls and copies go on with a slash and the name of the call, or the
// direction of the copies.
const (
	FoundBlocking      = "blocking_call"
	FoundPageable      = "pageable_copies"
	FoundCopies        = "copies"
	FoundLaunches      = "launches_per_unit"
	FoundStorm         = "launch_storm"
	FoundGraphs        = "graph_coverage"
	FoundCommunication = "communication"
)

// Metrics that rules can judge and reports do not hold: of each kind of decode step whose batch size is known, its time
// by its batch, and the tokens per second by the number of GPUs.
const (
	MetricToken     = "unit.time_per_output_token"
	MetricTokenRate = "unit.tokens_per_second_per_gpu"
)

// MetricWork is the row of the whole workload: the base's work at the head's prices.
const MetricWork = "work.time"

// Identifiers of what is shown and never judged.
const (
	TimePerToken  = "time_per_output_token" // of decode units, by their batch size
	TimePerPrompt = "time_per_sequence"     // of prefill units
	BeforeUnits   = "before_units"          // of the window, the load
	BetweenUnits  = "between_units"         // a gap, on average
	AfterUnits    = "after_units"           // the tail
	Clocks        = "clocks"                // of the GPU while it worked, Hz
)
