package ncu

// Field is a quantity that ncu measures of a launch. Values are in base units: ns, bytes, per second, ratios of 0 to 1,
// counts.
type Field int

// The fields that are taken from a report. Each has several names, listed in quantities.
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

// quantity says how files name a field, and the unit that it requires. If several names are present, the first counts.
// A raw page names metrics (gpu__time_duration.sum). A details page names most by labels (Duration), in the words of
// its version; metrics that were requested one by one it names as a raw page does.
type quantity struct {
	want  dim
	names []string
}

var quantities = [numFields]quantity{
	Duration: {duration, []string{"gpu__time_duration.sum", "gpu__time_duration.avg", "Duration"}},
	SMRatio: {ratio, []string{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput",
		"Compute (SM) [%]", "SM Throughput", "SM [%]", "SOL SM"}},
	DRAMRatio: {ratio, []string{"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput",
		"SOL DRAM", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}},
	MemoryRatio: {ratio, []string{"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
		"Memory Throughput", "Memory [%]", "SOL Memory"}},
	L1Ratio: {ratio, []string{"l1tex__throughput.avg.pct_of_peak_sustained_active", "L1/TEX Cache Throughput",
		"SOL L1/TEX Cache", "SOL TEX", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"}},
	L2Ratio: {ratio, []string{"lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput",
		"SOL L2 Cache", "SOL L2"}},
	MemBusy: {ratio, []string{"gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
		"Mem Busy"}},
	MaxBandwidth: {ratio, []string{"gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
		"Max Bandwidth"}},
	L1Hits:            {ratio, []string{"l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate", "L1 Hit Rate"}},
	L2Hits:            {ratio, []string{"lts__t_sector_hit_rate.pct", "L2 Hit Rate"}},
	LoadUse:           {ratio, []string{"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"}},
	StoreUse:          {ratio, []string{"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"}},
	LoadSectors:       {thing, []string{"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"}},
	StoreSectors:      {thing, []string{"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"}},
	OccupancyPossible: {ratio, []string{"sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"}},
	Occupancy:         {ratio, []string{"sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"}},
	Registers:         {thing, []string{"launch__registers_per_thread", "Registers Per Thread"}},
	DRAMRead:          {byteCount, []string{"dram__bytes_read.sum"}},
	DRAMWrite:         {byteCount, []string{"dram__bytes_write.sum"}},
	DRAMBytes:         {byteCount, []string{"dram__bytes.sum"}},
	DRAMRate:          {byteRate, []string{"dram__bytes.sum.per_second", "Memory Throughput", "DRAM Bandwidth"}},
	DRAMReadRate:      {byteRate, []string{"dram__bytes_read.sum.per_second"}},
	DRAMWriteRate:     {byteRate, []string{"dram__bytes_write.sum.per_second"}},
	TensorRatio: {ratio, []string{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
		"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
		"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
		"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"}},
	GridSize:    {thing, []string{"launch__grid_size", "Grid Size"}},
	BlockSize:   {thing, []string{"launch__block_size", "Block Size"}},
	Waves:       {thing, []string{"launch__waves_per_multiprocessor", "Waves Per SM"}},
	SMClock:     {frequency, []string{"gpc__cycles_elapsed.avg.per_second", "SM Frequency"}},
	SMClockPeak: {frequency, []string{"sm__cycles_elapsed.avg.per_second", rooflinePeak + "SM Frequency"}},
	SMClockAchieved: {frequency, []string{"smsp__cycles_elapsed.avg.per_second",
		rooflineAchieved + "SM Frequency"}},
	DRAMClock: {frequency, []string{"dram__cycles_elapsed.avg.per_second", "DRAM Frequency",
		rooflinePeak + "DRAM Frequency"}},
	DRAMBytesPerCycle: {byteCycle, []string{"dram__bytes.sum.peak_sustained",
		"Theoretical DRAM Bytes Accessible"}},
	FFMAPerCycle: {perCycle, []string{"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
		"Theoretical Predicated-On FFMA Thread Instructions Executed"}},
}

// Prefixes that tell apart labels that occur twice in a roofline's section: the ceiling, and the achieved value.
const (
	rooflinePeak     = "peak of roofline: "
	rooflineAchieved = "achieved in roofline: "
)

type name struct {
	field Field
	rank  uint8 // the lower rank wins
}

// named finds the fields of a name: "Memory Throughput" is a share of the peak in one section and bytes per second in
// another.
var named = func() map[string][]name {
	m := map[string][]name{}
	for f, q := range quantities {
		for rank, n := range q.names {
			m[n] = append(m[n], name{Field(f), uint8(rank)})
		}
	}
	return m
}()

// Column is the name of the field in the raw page.
func (f Field) Column() string { return quantities[f].names[0] }

// fit is the scale for values of a field whose unit is s, and whether that unit fits the field. A percentage may lack
// its unit if the name of the metric says that it is one.
func (f Field) fit(s scale, metric string) (scale, bool) {
	switch {
	case s.dim == quantities[f].want, s.dim == none && quantities[f].want == thing:
		return s, true
	case s.dim == none && quantities[f].want == ratio && isPercent(metric):
		return scale{dim: ratio, exp: -2}, true
	}
	return s, false
}
