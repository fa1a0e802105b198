package noise

// UnitFloor returns the noise floor of the mean unit.time as a ratio: calibrated, else set by the policy, else assumed.
func (x *Decider) UnitFloor() float64 {
	floor, measured := x.noise.Floor("unit.time.mean", nil)
	if own := x.Policy.Stats.Floor; own > 0 && !measured {
		return own
	}
	return floor
}
