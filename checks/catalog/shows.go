package catalog

// shows gives what the snapshot shows of the numbers that nodes of one product have in common, by the policy's path. Only
// what was read is there.
func (s Snapshot) shows() map[string]int64 {
	out := map[string]int64{}
	if s.Init.OK && s.Count > 0 {
		out["inventory.count"] = int64(s.Count)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
