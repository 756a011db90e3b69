package contest

import "slices"

// median is the middle of some figures, the mean of two middles.
func median(of []float64) float64 { return quantile(of, 0.5) }

// spread is the distance between the quartiles over the median.
func spread(of []float64) float64 {
	middle := median(of)
	if middle == 0 {
		return 0
	}
	return (quantile(of, 0.75) - quantile(of, 0.25)) / middle
}

// quantile is the figure that the share p of all lies below, with what lies between two figures
// interpolated; 0 of none.
func quantile(of []float64, p float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	place := p * float64(len(sorted)-1)
	i := int(place)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (place-float64(i))*(sorted[i+1]-sorted[i])
}

// quotients divides pairwise.
func quotients(x, y []float64) []float64 {
	q := make([]float64, len(x))
	for i := range x {
		q[i] = x[i] / y[i]
	}
	return q
}
