package stat

// Middle is the median of a list that is not empty, which it reorders. Between two in the middle it is halfway, rounded
// towards the lower one. It takes time in proportion to the list, as a rule: Hoare's Algorithm 65, FIND (1961).
func Middle(list []int64) int64 {
	k := len(list) / 2
	upper := selected(list, k)
	if len(list)%2 == 1 {
		return upper
	}
	lower := list[0]
	for _, v := range list[1:k] {
		lower = max(lower, v)
	}
	return lower + (upper-lower)/2
}

// selected is the element that would be at k if the list was sorted. No element before k is greater afterwards.
func selected(list []int64, k int) int64 {
	lo, hi := 0, len(list)-1
	for lo < hi {
		a, b, c := list[lo], list[lo+(hi-lo)/2], list[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for list[i] < pivot {
				i++
			}
			for list[j] > pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return list[k]
		}
	}
	return list[k]
}
