package noise

// UnitFloor is the noise floor of the mean unit.time, as a ratio: calibrated, or assumed.
func (x *Decider) UnitFloor() float64 {
	floor, _ := x.noise.Floor("unit.time.mean", nil)
	return floor
}
