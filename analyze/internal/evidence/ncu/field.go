package ncu

// Field is a quantity that ncu measures of a launch. Values are in base units: ns, bytes, per second, ratios of 0 to 1,
// counts.
type Field int

// The fields that are taken from a report. Each has several names, listed in fieldNames.
const (
	Duration          Field = iota // ns
	SMRatio                        // throughput of the SMs, of its peak
	DRAMRatio                      // throughput of device memory, of its peak
	MemoryRatio                    // the busiest part of the memory system, caches included, of its peak
	L1Ratio                        // throughput of the L1 cache, of its peak
	L2Ratio                        // throughput of the L2 cache, of its peak
	MemBusy                        // busiest part of the cache and DRAM internals, of its peak
	MaxBandwidth                   // busiest link between SMs, caches and DRAM, of its peak
	L1Hits                         // hit rate
	L2Hits                         // hit rate
	LoadUse                        // bytes that loads from global memory ask for, of the sectors they fetch
	StoreUse                       // the same of stores
	LoadSectors                    // sectors of 32 bytes per request, of loads from global memory
	StoreSectors                   // the same of stores
	OccupancyPossible              // warps that fit on an SM, of those it can hold: "theoretical"
	Occupancy                      // warps that were active, of those it can hold: "achieved"
	Registers                      // per thread
	DRAMRead                       // bytes
	DRAMWrite                      // bytes
	DRAMBytes                      // bytes, both ways
	DRAMRate                       // bytes per second, both ways
	DRAMReadRate                   // bytes per second
	DRAMWriteRate                  // bytes per second
	TensorRatio                    // time the tensor cores were active
	GridSize                       // blocks
	BlockSize                      // threads per block
	Waves                          // of blocks per SM
	SMClock                        // Hz, as the Speed of Light section prints it
	SMClockPeak                    // Hz, of a roofline
	SMClockAchieved                // Hz, of a roofline's achieved value
	DRAMClock                      // Hz
	DRAMBytesPerCycle              // bytes per DRAM cycle at peak
	FFMAPerCycle                   // thread instructions per SM cycle at peak
	numFields
)

// want is the unit that a field requires.
var want = [numFields]dim{
	Duration: duration,
	SMRatio:  ratio, DRAMRatio: ratio, MemoryRatio: ratio, L1Ratio: ratio, L2Ratio: ratio, MemBusy: ratio,
	MaxBandwidth: ratio,
	L1Hits:       ratio, L2Hits: ratio, OccupancyPossible: ratio, Occupancy: ratio, TensorRatio: ratio,
	LoadUse: ratio, StoreUse: ratio, LoadSectors: thing, StoreSectors: thing,
	Registers: thing, GridSize: thing, BlockSize: thing, Waves: thing,
	DRAMRead: byteCount, DRAMWrite: byteCount, DRAMBytes: byteCount,
	DRAMRate: byteRate, DRAMReadRate: byteRate, DRAMWriteRate: byteRate,
	SMClock: frequency, SMClockPeak: frequency, SMClockAchieved: frequency, DRAMClock: frequency,
	DRAMBytesPerCycle: byteCycle, FFMAPerCycle: perCycle,
}

// fieldNames are the names of each field; if several are present, the first counts. A raw page names metrics
// (gpu__time_duration.sum). A details page names most by labels (Duration), in the words of its version; metrics that
// were requested one by one it names as a raw page does.
var fieldNames = [numFields][]string{
	Duration: {"gpu__time_duration.sum", "gpu__time_duration.avg", "Duration"},
	SMRatio: {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput",
		"Compute (SM) [%]", "SM Throughput", "SM [%]", "SOL SM"},
	DRAMRatio: {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput", "SOL DRAM",
		"dram__throughput.avg.pct_of_peak_sustained_elapsed"},
	MemoryRatio: {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory Throughput",
		"Memory [%]", "SOL Memory"},
	L1Ratio: {"l1tex__throughput.avg.pct_of_peak_sustained_active", "L1/TEX Cache Throughput",
		"SOL L1/TEX Cache", "SOL TEX", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"},
	L2Ratio:           {"lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput", "SOL L2 Cache", "SOL L2"},
	MemBusy:           {"gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed", "Mem Busy"},
	MaxBandwidth:      {"gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed", "Max Bandwidth"},
	L1Hits:            {"l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate", "L1 Hit Rate"},
	L2Hits:            {"lts__t_sector_hit_rate.pct", "L2 Hit Rate"},
	LoadUse:           {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"},
	StoreUse:          {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"},
	LoadSectors:       {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"},
	StoreSectors:      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"},
	OccupancyPossible: {"sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"},
	Occupancy:         {"sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"},
	Registers:         {"launch__registers_per_thread", "Registers Per Thread"},
	DRAMRead:          {"dram__bytes_read.sum"},
	DRAMWrite:         {"dram__bytes_write.sum"},
	DRAMBytes:         {"dram__bytes.sum"},
	DRAMRate:          {"dram__bytes.sum.per_second", "Memory Throughput", "DRAM Bandwidth"},
	DRAMReadRate:      {"dram__bytes_read.sum.per_second"},
	DRAMWriteRate:     {"dram__bytes_write.sum.per_second"},
	TensorRatio: {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
		"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
		"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
		"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"},
	GridSize:          {"launch__grid_size", "Grid Size"},
	BlockSize:         {"launch__block_size", "Block Size"},
	Waves:             {"launch__waves_per_multiprocessor", "Waves Per SM"},
	SMClock:           {"gpc__cycles_elapsed.avg.per_second", "SM Frequency"},
	SMClockPeak:       {"sm__cycles_elapsed.avg.per_second", rooflinePeak + "SM Frequency"},
	SMClockAchieved:   {"smsp__cycles_elapsed.avg.per_second", rooflineAchieved + "SM Frequency"},
	DRAMClock:         {"dram__cycles_elapsed.avg.per_second", "DRAM Frequency", rooflinePeak + "DRAM Frequency"},
	DRAMBytesPerCycle: {"dram__bytes.sum.peak_sustained", "Theoretical DRAM Bytes Accessible"},
	FFMAPerCycle: {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
		"Theoretical Predicated-On FFMA Thread Instructions Executed"},
}

// Prefixes that tell apart labels that occur twice in a roofline's section: the ceiling, and the achieved value.
const (
	rooflinePeak     = "peak of roofline: "
	rooflineAchieved = "achieved in roofline: "
)

// name is one name of a field.
type name struct {
	field Field
	rank  uint8 // the lower rank wins
}

// named finds the fields of a name: "Memory Throughput" is a share of the peak in one section and bytes per second in
// another.
var named = func() map[string][]name {
	m := map[string][]name{}
	for f, names := range fieldNames {
		for rank, n := range names {
			m[n] = append(m[n], name{Field(f), uint8(rank)})
		}
	}
	return m
}()

// fit is the scale for values of a field whose unit is s, and whether that unit fits the field. A percentage may lack
// its unit if the name of the metric says that it is one.
func (f Field) fit(s scale, metric string) (scale, bool) {
	switch {
	case s.dim == want[f], s.dim == none && want[f] == thing:
		return s, true
	case s.dim == none && want[f] == ratio && isPercent(metric):
		return scale{dim: ratio, exp: -2}, true
	}
	return s, false
}
