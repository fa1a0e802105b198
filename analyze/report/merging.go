package report

// How a number of one capture becomes one of a whole run.
type How string

// Ways to merge.
const (
	HowSum        How = "sum"
	HowMax        How = "max"
	HowMin        How = "min"
	HowRatio      How = "ratio"
	HowPart       How = "part"
	HowMean       How = "mean"
	HowMedian     How = "median"
	HowPercentile How = "percentile"
	HowStep       How = "step"
	HowDevice     How = "device"
	HowOneDevice  How = "one_device"
	HowKey        How = "key"
	HowSame       How = "same"
	HowMost       How = "most"
	HowLeave      How = "leave"
)

// Merge is the rule by which a metric, or a column, is merged over the captures of one run. A test refuses its zero
// value: the author of a number knows its meaning for a run.
type Merge struct {
	How How
	// Of and Over are ids of metrics, or of columns of the same table: the two parts of a ratio, or the value and the
	// weight of a mean.
	Of, Over string
	// More says that a ratio may be over more than Over counts: how much follows from the ratio if that is not 0.
	More bool
	// Events is the family of events (kernel, api, memcpy) whose counted durations give percentiles; Sets are the sets
	// of labels that have them; nil means all.
	Events string
	Sets   []string
	At     float64 // of a percentile, 0 to 1
	Lead   bool    // rows with most of this column come first
}

// Rules that need nothing else.
var (
	// Sum adds up. With the label device a metric is of one GPU, and stays as it is under its number in the run.
	Sum = Merge{How: HowSum}
	Max = Merge{How: HowMax}
	Min = Merge{How: HowMin}
	// Device is of one GPU: a metric without the label device has no meaning for a run; a column holds the number of
	// its GPU in the run, which identifies the row.
	Device = Merge{How: HowDevice}
	// OneDevice is a column with the number in the run of the GPU that a row is of, unknown if it is of several.
	OneDevice = Merge{How: HowOneDevice}
	// OfStep describes one step: that of the capture in which it takes longest.
	OfStep = Merge{How: HowStep}
	// Key identifies rows of a table: rows with equal keys are merged.
	Key = Merge{How: HowKey}
	// Same is the value that all captures have, unknown if they differ.
	Same = Merge{How: HowSame}
	// OfMost is a text of the capture with most of the first column that adds up.
	OfMost = Merge{How: HowMost}
	// Leave marks a number without meaning for a run: it stays in the report of each capture.
	Leave = Merge{How: HowLeave}
)

// RatioOf is of over over. Of a metric of may be empty if no metric says it: it then follows in each capture from the
// ratio and over, which has no labels.
func RatioOf(of, over string) Merge { return Merge{How: HowRatio, Of: of, Over: over} }

// OrMore says that a ratio may be over more than the metric that it names counts.
func (m Merge) OrMore() Merge {
	m.More = true
	return m
}

// PartOf is the share of a metric with these labels in that without any, or of a cell in the sum of its column.
func PartOf(id string) Merge { return Merge{How: HowPart, Of: id, Over: id} }

// MeanBy is the mean of cells, weighted by another column.
func MeanBy(column string) Merge { return Merge{How: HowMean, Over: column} }

// MedianOf is the median duration of counted events.
func MedianOf(events string) Merge { return Merge{How: HowMedian, Events: events, At: 0.5} }

// PercentileOf is a percentile, at 0 to 1, of the durations of counted events whose name is the row's first key.
func PercentileOf(events string, at float64) Merge {
	return Merge{How: HowPercentile, Events: events, At: at}
}

// Counting gives a metric with one of these sets of labels the statistics of counted events.
func (m Merge) Counting(events string, sets ...string) Merge {
	m.Events, m.Sets = events, sets
	return m
}

// First puts rows with most of the column first.
func (m Merge) First() Merge {
	m.Lead = true
	return m
}

// Merged is the column with a rule.
func (c Column) Merged(m Merge) Column {
	c.Merge = m
	return c
}
