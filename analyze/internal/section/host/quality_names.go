package host

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report/secret"
)

// names warns of ranges whose names may not be meant for every reader of the report. Ranges that only differ in
// counters count once.
func (c *checks) names() {
	count, total := map[secret.Kind]int64{}, int64(0)
	for _, n := range c.in.Trace.Ranges.Names {
		if kind := secret.Of(n.Text); kind != secret.None {
			count[kind]++
			total++
		}
	}
	if total == 0 {
		return
	}
	var kinds []string
	for _, k := range []secret.Kind{secret.Token, secret.Email, secret.Prompt} {
		if count[k] > 0 {
			kinds = append(kinds, formatCount(count[k])+" like "+k.Article())
		}
	}
	c.out.Warn("private_names", "Names of NVTX ranges that look private: "+strings.Join(kinds, ", ")+". Read them before you share this report, or report on a copy: explain scrub --names hash. Texts that look like a token are replaced by "+secret.Redacted+".")
}
