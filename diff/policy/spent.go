package policy

// Spent is what of a budget that counts from an anchor was used up before the change that is judged.
type Spent struct {
	Ratio float64  // of the base's level to that of the anchor; 0 where it is not known
	SE    float64  // standard error of its ln, from the noise between runs; 0 where that is not known
	By    []string // what used it up, the largest first: 3f2a91c +2.0 %
	Why   string   // why the ratio is not known
}
