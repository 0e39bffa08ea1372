package agent

import "testing"

// Nothing of a process name stays, whatever it holds, and all of the driver's words do.
func TestProcessNamesAreLeftOut(t *testing.T) {
	for line, want := range map[string]string{
		"Xid (PCI:0000:52:00): 43, pid=991234, name=ray::alice fn, Ch 00000008":                        "Xid (PCI:0000:52:00): 43, pid=991234, name=redacted, Ch 00000008",
		"Xid (PCI:0000:52:00): 13, pid=77, name=al, secretproj, Graphics SM Warp Exception on (GPC 0)": "Xid (PCI:0000:52:00): 13, pid=77, name=redacted, Graphics SM Warp Exception on (GPC 0)",
		"Xid (PCI:0000:52:00): 31, pid=77, name=a, Ch 00000008, intr 00000000. MMU Fault":              "Xid (PCI:0000:52:00): 31, pid=77, name=redacted, Ch 00000008, intr 00000000. MMU Fault",
		"Xid (PCI:0000:52:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: bank full":           "Xid (PCI:0000:52:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: bank full",
		"Xid (PCI:0000:52:00): 45, pid=1, name='<unknown>', Ch 00000010":                               "Xid (PCI:0000:52:00): 45, pid=1, name='<unknown>', Ch 00000010",
		"Xid (PCI:0000:52:00): 45, pid=1, name=bob":                                                    "Xid (PCI:0000:52:00): 45, pid=1, name=redacted",
		"Xid (PCI:0000:52:00): 45, pid=1, name=":                                                       "Xid (PCI:0000:52:00): 45, pid=1, name=",
		"no process in it":                                                                             "no process in it",
	} {
		if got := redactProcess(line); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}
