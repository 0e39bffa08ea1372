package catalog

import "github.com/assay-gpu/assay/checks"

// ofEarlierBoots marks what was said in boots that are over: it is kept and shown, and asks for nothing any more. Whether it
// came to stay, such as a row that could not be remapped, the state of the GPU says in this boot. fs is changed.
func ofEarlierBoots(fs []checks.Finding, past func(boot string) bool) []checks.Finding {
	for i, f := range fs {
		if !past(f.BootID) {
			continue
		}
		if f.Verdict != checks.NotApplicable {
			fs[i].Verdict, fs[i].Action, fs[i].Hard = checks.NotApplicable, checks.Watch, false
		}
		fs[i].Reason += "; of an earlier boot"
	}
	return fs
}
