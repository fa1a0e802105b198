package history

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/nsys-llm/explain/analyze/report"
)

// maxReport bounds the packed report of a run, in bytes: a run may take 100,000 bytes in the store, and its points and
// keys need the rest.
const maxReport = 80_000

// maxUnpacked bounds the size of an unpacked report, in bytes.
const maxUnpacked = 64 << 20

// keptTables are the tables that a comparison reads, by their ids.
var keptTables = []string{
	"unit_groups", "unit_kernels", "units", "kernels", "iteration_groups", "iteration_units", "serving_samples",
}

// Keep returns a copy of a report with only what a comparison reads: metrics, units, and the tables that name kernels
// and kinds of unit.
func Keep(r *report.Report) *report.Report {
	k := *r
	k.Findings, k.Sections = []report.Finding{}, []report.Section{}
	k.Unit.Cuts = nil
	k.Metrics = slices.Clone(r.Metrics)
	for i := range k.Metrics {
		k.Metrics[i].Histogram = nil
		k.Metrics[i].Source.Query = ""
	}
	for _, s := range r.Sections {
		tables := slices.DeleteFunc(slices.Clone(s.Tables),
			func(t report.Table) bool { return !slices.Contains(keptTables, t.ID) })
		if len(tables) == 0 {
			continue
		}
		s.Tables, s.Charts, s.Notes, s.Derivation = tables, []report.Chart{}, []string{}, ""
		k.Sections = append(k.Sections, s)
	}
	return &k
}

// pack packs a kept report into at most maxReport bytes. If it is larger, pack removes the steps and parts of units,
// then every second unit of the series until it fits, and last the totals of single kernels, ranges and processes,
// which no comparison reads.
func pack(r *report.Report) ([]byte, error) {
	k := *r
	for {
		var b bytes.Buffer
		if err := report.Write(&b, &k); err != nil {
			return nil, err
		}
		packed := packer().EncodeAll(b.Bytes(), nil)
		if len(packed) <= maxReport {
			return packed, nil
		}
		if !thin(&k) {
			return nil, fmt.Errorf("the report of %s takes %d bytes in the history, and %d are allowed: make it of a part of "+
				"the capture, with --from and --to or --steady", r.Trace.Name, len(packed), maxReport)
		}
	}
}

// fewestUnits is the size of a unit series up to which all units are kept.
const fewestUnits = 256

// thin makes a report smaller; false if nothing is left to remove.
func thin(k *report.Report) bool {
	if k.Unit.Steps != nil || k.Unit.Parts != nil {
		k.Unit.Steps, k.Unit.Parts = nil, nil
		return true
	}
	if s := k.Unit.Series; s != nil && s.Count > fewestUnits {
		units, err := s.Decode()
		if err == nil {
			half := make([]report.UnitPoint, 0, len(units)/2+1)
			for i := 0; i < len(units); i += 2 {
				half = append(half, units[i])
			}
			fewer := report.NewUnitSeries(half)
			fewer.Every = s.Every * 2
			k.Unit.Series = fewer
			return true
		}
	}
	single := func(m report.Metric) bool {
		_, device := m.Labels["device"]
		return m.Scale == report.Total && len(m.Labels) > 0 && !(device && len(m.Labels) == 1)
	}
	if !slices.ContainsFunc(k.Metrics, single) {
		return false
	}
	k.Metrics = slices.DeleteFunc(slices.Clone(k.Metrics), single)
	return true
}

func unpack(packed []byte) (*report.Report, error) {
	b, err := unpacker().DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("the report in the history cannot be unpacked: %w", err)
	}
	return report.Read(bytes.NewReader(b))
}

// Both use one goroutine: their states are large, and commands are short. Neither can fail with these options.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
		return z
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		return z
	})
)
