package caller

// Scan is scan with the name of Within.
func Scan(text string, id uintptr) (found bool, others int) {
	return scan([]byte(text), withinName(), id)
}

// WithinName is withinName.
var WithinName = withinName

// Trace is trace of the calling goroutine.
func Trace() string { return string(trace(false)) }
