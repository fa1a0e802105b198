package trace

import (
	"cmp"
	"slices"
)

// GPU is what the capture says of a device: the one adapter that can be it. Adapters that cannot run CUDA (no
// multiprocessors) share device number 0 with the ones that can. Where several could be it, nothing is known.
func (t *Trace) GPU(device int32) GPUInfo {
	var list []GPUInfo
	for _, a := range t.GPUs {
		if a.CUDADevice == int64(device) && a.Name != "" {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b GPUInfo) int { return cmp.Compare(b.SMs, a.SMs) })
	if len(list) == 0 || len(list) > 1 && list[1].SMs > 0 && list[1].Name != list[0].Name {
		return GPUInfo{}
	}
	return list[0]
}

// separateDevices tells GPUs apart that processes number alike. A device number is the process's own: ranks that each
// see one GPU (CUDA_VISIBLE_DEVICES) all call it 0. Where the capture says which adapter a process's device is, and two
// processes use one number for two adapters, devices are renumbered by adapter; else the numbers of the rows stand.
func (l *loader) separateDevices() error {
	table, ok := l.tables[RoleDevices]
	if !ok {
		return nil
	}
	t := l.trace
	type key struct{ pid, device int64 }
	adapter := map[key]int64{}
	err := l.scan(table, table.Known([]string{"gpuId", "cudaId", "pid"}), func(row []cell) error {
		gpu, ok1 := row[0].Whole()
		device, ok2 := row[1].Whole()
		pid, ok3 := row[2].Whole()
		if ok1 && ok2 && ok3 {
			adapter[key{pid, device}] = gpu
		}
		return nil
	})
	if err != nil {
		return err
	}
	of := map[int64]int64{}
	conflict := false
	for k, gpu := range adapter {
		if seen, ok := of[k.device]; ok && seen != gpu {
			conflict = true
		}
		of[k.device] = gpu
	}
	if !conflict {
		return nil
	}
	for _, w := range []*Work{&t.Kernels.Work, &t.Copies.Work, &t.Sets.Work, &t.Graphs.Work} {
		for i := range w.places {
			p := &w.places[i]
			if p.proc.index != None {
				if gpu, ok := adapter[key{t.Procs[p.proc.index].PID, int64(p.device)}]; ok {
					p.device = int32(gpu)
				}
			}
		}
	}
	for i := range t.GPUs {
		t.GPUs[i].CUDADevice = t.GPUs[i].ID
	}
	return nil
}
