package logic

// StopAsked reports whether an engine stops or has stopped.
func StopAsked(e *Engine) bool { return e.stopAsked() }
