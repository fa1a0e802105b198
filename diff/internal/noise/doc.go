// Package noise says of each change whether it is real: against the noise floor and an interval over the units where
// there is one capture a side, by a test over the captures if there are several. What a floor is comes from a
// calibration, which is worked out here too. It knows what two sides have in common, and neither rules that judge a
// change nor where it comes from.
package noise
