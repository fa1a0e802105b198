package main

import (
	"bytes"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
)

// The files that say how a comparison is judged: policies and noise floors.

// policyFile reads a policy file; without a path there is none. What is wrong with it is wrong usage.
func policyFile(path string) (*policy.Policy, error) {
	if path == "" {
		return nil, nil
	}
	b, err := readLimited(path)
	if err != nil {
		return nil, usagef("policy: %w", err)
	}
	return policyText(path, b)
}

// policyText reads a policy; name stands in errors.
func policyText(name string, b []byte) (*policy.Policy, error) {
	p, err := policy.Read(bytes.NewReader(b), metricFacts())
	if err != nil {
		return nil, usagef("policy %s: %w", name, err)
	}
	return p, nil
}

// readNoise reads the noise block of --noise.
func readNoise(path string) (*diff.Noise, error) {
	b, err := readLimited(path)
	if err != nil {
		return nil, usagef("--noise: %w", err)
	}
	n, err := diff.ReadNoise(bytes.NewReader(b))
	if err != nil {
		return nil, usagef("--noise %s: %w; explain calibrate writes one", path, err)
	}
	return n, nil
}

// metricFacts is what the rules of a comparison are held to.
func metricFacts() []policy.MetricFacts {
	var list []policy.MetricFacts
	for _, m := range analyze.Metrics() {
		list = append(list, policy.MetricFacts{
			ID: m.ID, Unit: m.Unit, Better: report.Direction(m.Better),
			Scale: report.Scale(m.Scale), Stats: m.Stats, Labels: m.Labels,
		})
	}
	return list
}
