// Package noise decides whether each change is real or noise. With one capture a side it compares the change with the
// noise floor and with an interval over the units; with several it tests over the captures. It also computes
// calibrations, which set the floors. Rules that judge a change, and the search for its cause, are in other packages.
package noise
