package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Sequences 1, 4, 4 of 8; tokens 512, 4, 4 of 1024; the last row has no limits and counts in the queues only.
func TestBatchUtilization(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "batch_utilization", report.OK, "")
	sectiontest.Metric(t, r, 0.375, "batch.seq_utilization")
	sectiontest.Metric(t, r, 0.125, "batch.seq_utilization", "phase", "prefill")
	sectiontest.Metric(t, r, 0.5, "batch.seq_utilization", "phase", "decode")
	nearly(t, r, 520.0/3/1024, "batch.token_utilization")
	sectiontest.Metric(t, r, 0.5, "batch.token_utilization", "phase", "prefill")
	sectiontest.Metric(t, r, 4.0/1024, "batch.token_utilization", "phase", "decode")
	nearly(t, r, 2.0/3, "batch.underutilized") // exactly half is not under half
	sectiontest.Metric(t, r, 3.5, "batch.running")
	sectiontest.Metric(t, r, 0.75, "batch.waiting")
	sectiontest.Metric(t, r, 0.5, "batch.waiting_ratio")
	unknownMetric(t, filesReport(t, map[string]string{"b.csv": batchHeader + "0.1,1,8,0,1,64,0,decode,1,0\n0.2,1,16,0,1,64,0,decode,1,0\n"}), "batch.max_num_seqs")
	sectiontest.Metric(t, r, 8, "batch.max_num_seqs")
	sectiontest.Metric(t, r, 1024, "batch.max_num_tokens")
	wantFindings(t, r, true, "batches_small", "requests_wait")
	wantFindings(t, r, false, "batches_full")
	if n := r.Environment.MaxNumSeqs; n == nil || *n != 8 {
		t.Errorf("environment: max_num_seqs %v", n)
	}
}

const batchHeader = "timestamp_sec,num_seqs,max_num_seqs,seq_utilization_pct,num_tokens,max_tokens,token_utilization_pct,phase,running_queue_len,waiting_queue_len\n"

func TestBatchUtilizationFull(t *testing.T) {
	r := filesReport(t, map[string]string{"b.csv": batchHeader + "0.1,8,8,100,1000,1024,97.66,prefill,8,0\n0.2,8,8,100,1024,1024,100,prefill,8,0\n"})
	wantFindings(t, r, true, "batches_full")
	wantFindings(t, r, false, "batches_small", "requests_wait")
	none := filesReport(t, map[string]string{"b.csv": batchHeader + "0.1,8,0,0,1000,0,0,prefill,8,0\n"})
	sectiontest.WantStatus(t, none, "batch_utilization", report.Partial, "")
	sectiontest.NoMetric(t, none, "batch.token_utilization")
}

func TestBatchUtilizationSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"s.json": `{"total_samples": 10, "mean_seq_utilization_pct": 40.0, "mean_token_utilization_pct": 75.0, "underutilization_events": 2, "prefill_avg_utilization": 0, "decode_avg_utilization": 0, "max_num_seqs": 64, "max_tokens": 8192}`})
	sectiontest.WantStatus(t, r, "batch_utilization", report.Partial, "")
	sectiontest.Metric(t, r, 0.75, "batch.token_utilization")
	sectiontest.Metric(t, r, 0.4, "batch.seq_utilization")
	sectiontest.Metric(t, r, 0.2, "batch.underutilized")
	if n := r.Environment.MaxNumSeqs; n == nil || *n != 64 {
		t.Errorf("environment: max_num_seqs %v", n)
	}
}
