package declare

// SpreadFrom has the batch backend spread systems over the workers that are far smaller than what pays.
func (r *Runner) SpreadFrom(n int) {
	if b, ok := r.main.w.runner.(*batch); ok {
		b.spreadFrom = n
	}
}
