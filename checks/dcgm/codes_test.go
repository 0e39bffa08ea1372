package dcgm

import "testing"

func TestCodes(t *testing.T) {
	for code := range 133 {
		m, ok := Means(code)
		if !ok || m.Name == "" || m.Since == "" || m.Severity <= NoSeverity || m.Severity > Reset {
			t.Errorf("%d: %+v, %v", code, m, ok)
		}
	}
	if n := len(meanings()); n != 133 {
		t.Errorf("%d codes, want the 133 of 4.6.0", n)
	}
	for code, want := range map[int]Meaning{
		52:  {52, "FAULTY_MEMORY", Isolate, 10, "2.1.4"},
		29:  {29, "PERSISTENCE_MODE", Config, SoftwareOther, "2.1.4"},
		132: {132, "UNCORRECTABLE_ROW_REMAP_LIMIT", Triage, 10, "4.6.0"},
	} {
		if got, _ := Means(code); got != want {
			t.Errorf("%d: got %+v, want %+v", code, got, want)
		}
	}
	if m, ok := Means(133); ok {
		t.Errorf("a code that does not exist means %+v", m)
	}
	for code := range own {
		if _, ok := Means(code); !ok {
			t.Errorf("a rule for %d, which is no code", code)
		}
	}
}

func TestABadCodeLineIsRefused(t *testing.T) {
	for _, line := range []string{"", "1\t2", "x\tA\t1\t1\t4.0", "1\tA\ty\t1\t4.0", "1\tA\t1\tz\t4.0"} {
		if m, err := parseMeaning(line); err == nil {
			t.Errorf("%q is read as %+v", line, m)
		}
	}
}

func TestSeverityNames(t *testing.T) {
	for s, want := range map[Severity]string{Unsaid: "unsaid", NoSeverity: "none", Isolate: "isolate", Reset: "reset", Reset + 1: "unsaid", -2: "unsaid"} {
		if got := s.String(); got != want {
			t.Errorf("%d is %q, want %q", int(s), got, want)
		}
	}
}

func TestExitText(t *testing.T) {
	for status, want := range map[int]string{
		0: "exit status 0", 1: "exit status 1", 205: "exit status 205: it ran and reports an error that asks for isolation",
		226: "exit status 226: it ran and reports an error", 250: "exit status 250: DCGM error -6", 256: "exit status 256",
	} {
		if got := ExitText(status); got != want {
			t.Errorf("%d: got %q, want %q", status, got, want)
		}
	}
}
