package registry

// OldLook is a snapshot of the same frame by a reader that found its buffers of three frames gone. It
// holds nothing itself.
func OldLook(s *Snapshot) *Snapshot {
	return &Snapshot{token: token{r: s.r, kind: snapshotToken}, frame: s.frame, storage: s.storage, kept: s.kept}
}
