package serverlog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// NoClock is the time of a line without one.
const NoClock int64 = math.MinInt64

// leapYear stands in for the year of a timestamp without one, so that 29 February is a valid date.
const leapYear = 2000

// clockText reads 2026-08-01 23:37:40 or 08-01 23:37:40, with T for the space and any fraction, which is dropped:
// seconds since 1970 as if the log were written in UTC. year says whether there was one.
func clockText(b []byte) (clock int64, year bool, rest []byte, ok bool) {
	y := int64(leapYear)
	if len(b) >= 19 && b[4] == '-' {
		if y, ok = fixed(b[:4]); !ok || y < 1970 {
			return NoClock, false, b, false
		}
		b, year = b[5:], true
	}
	if len(b) < 14 || b[2] != '-' || b[5] != ' ' && b[5] != 'T' || b[8] != ':' || b[11] != ':' {
		return NoClock, false, b, false
	}
	var part [5]int64
	for i := range part {
		if part[i], ok = fixed(b[3*i : 3*i+2]); !ok {
			return NoClock, false, b, false
		}
	}
	if part[0] < 1 || part[0] > 12 || part[1] < 1 || part[1] > 31 || part[2] > 23 || part[3] > 59 || part[4] > 60 {
		return NoClock, false, b, false
	}
	day := time.Date(int(y), time.Month(part[0]), int(part[1]), 0, 0, 0, 0, time.UTC)
	clock = day.Unix() + part[2]*3600 + part[3]*60 + part[4]
	b = b[14:]
	if len(b) > 1 && (b[0] == '.' || b[0] == ',') && isDigit(b[1]) {
		for b = b[1:]; len(b) > 0 && isDigit(b[0]); b = b[1:] {
		}
	}
	return clock, year, b, true
}

// fixed reads a number whose digits are all of b.
func fixed(b []byte) (v int64, ok bool) {
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// calendar keeps the times of one file in order. Timestamps without a year start again in January. Libraries write
// lines of their own into the log of a server, some with a year and some without: the first timestamp decides for all.
type calendar struct {
	last  int64
	added int64 // seconds to add for the years that passed
	any   bool
	year  bool // the file's times have one
}

const (
	halfYear = 183 * 86400
	fullYear = 366 * 86400
)

func (c *calendar) at(clock int64, year bool) int64 {
	if clock == NoClock {
		return NoClock
	}
	if !c.any {
		c.year = year
	}
	if year != c.year {
		clock = c.translate(clock)
	}
	if !c.year {
		clock += c.added
		if c.any && clock < c.last-halfYear {
			c.added += fullYear
			clock += fullYear
		}
		if c.any && clock > c.last+fullYear-86400 { // of the old year still, by another process
			clock -= fullYear
		}
	}
	c.last, c.any = clock, true
	return clock
}

// translate adds to a time the year that brings it closest to the time before, or removes its year.
func (c *calendar) translate(clock int64) int64 {
	t := time.Unix(clock, 0).UTC()
	in := func(year int) int64 { return t.AddDate(year-t.Year(), 0, 0).Unix() }
	if !c.year {
		return in(leapYear)
	}
	year := time.Unix(c.last, 0).UTC().Year()
	return slices.MinFunc([]int64{in(year), in(year - 1), in(year + 1)}, func(a, b int64) int {
		return cmp.Compare(max(a-c.last, c.last-a), max(b-c.last, c.last-b))
	})
}

// ClockText writes a time as the log does: with a year only where it has one. An unknown time is empty.
func ClockText(clock int64, year bool) string {
	if clock == NoClock {
		return ""
	}
	layout := "2006-01-02 15:04:05"
	if !year {
		layout = "01-02 15:04:05"
		const first = 10957 * 86400 // 1 January of leapYear
		clock = first + ((clock-first)%fullYear+fullYear)%fullYear
	}
	return time.Unix(clock, 0).UTC().Format(layout)
}

// written is the times, of one log, between which its lines lie.
type written struct {
	first, last int64
	year        bool
}

// oddZones are the time zones, in minutes from UTC, that are no whole hours.
var oddZones = []int64{-570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825}

// apartFrom is how long a log may be silent before or after a capture of the same run, in seconds.
const apartFrom = 60

// Apart says of a capture between two moments, in ns since 1970, that all logs were written at other times, whatever
// their time zone and, of a log without years, whatever the year. It is empty if that is not certain.
func (d *Data) Apart(begin, end int64) string {
	meets := func(w written) bool { return w.meets(begin/1e9, end/1e9+1) }
	if len(d.written) == 0 || slices.ContainsFunc(d.written, meets) {
		return ""
	}
	w := d.written[0]
	return fmt.Sprintf("The server log is of another time than the capture, so hardly of its run: %s to %s, "+
		"the capture is of %s UTC.", ClockText(w.first, w.year), ClockText(w.last, w.year), ClockText(begin/1e9, true))
}

// meets reports whether the log may have been written between two moments, in seconds since 1970.
func (w *written) meets(begin, end int64) bool {
	if w.first == NoClock || !w.year && w.last-w.first > halfYear {
		return true
	}
	years := []int64{0}
	if !w.year {
		years = []int64{-fullYear, 0, fullYear}
	}
	for zone := int64(-12 * 60); zone <= 14*60; zone += 15 {
		if zone%60 != 0 && !slices.Contains(oddZones, zone) {
			continue
		}
		at := begin + zone*60
		if t := time.Unix(at, 0).UTC(); !w.year {
			at = t.AddDate(leapYear-t.Year(), 0, 0).Unix()
		}
		for _, year := range years {
			if at+year <= w.last+apartFrom && at+year+end-begin >= w.first-apartFrom {
				return true
			}
		}
	}
	return false
}
