package render

import (
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/diff/comparison"
)

// whereLine says where in the step the change is, in one line; none where the step did not change or no place stands out.
func whereLine(c *comparison.Comparison) []doc.Block {
	if c.Step == nil || c.Step.Where == "" || !c.Comparable || !moved(c) {
		return nil
	}
	return []doc.Block{doc.P(doc.Strong("where:"), doc.Text(" "+clip(c.Step.Where)))}
}
