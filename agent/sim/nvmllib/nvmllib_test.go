package nvmllib

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The library exports what functions.def lists, no more and no less, and asks for nothing but the C library.
func TestBuildExportsWhatItNames(t *testing.T) {
	out := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := Build(out); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "nvml") {
			exported = append(exported, s.Name)
		}
	}
	want := slices.Sorted(slices.Values(Functions))
	slices.Sort(exported)
	if !slices.Equal(exported, want) {
		t.Errorf("exported %v\nwant     %v", exported, want)
	}
	if len(Functions) < 15 || len(Functions) > 64 {
		t.Errorf("%d functions: nvml.calls has room for 64", len(Functions))
	}
	libs, err := f.ImportedLibraries()
	if err != nil || !slices.Equal(libs, []string{"libc.so.6"}) {
		t.Errorf("needs %v, %v", libs, err)
	}
	if names, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(names, []string{"libnvidia-ml.so.1"}) {
		t.Errorf("soname %v, %v", names, err)
	}
}

func TestBuildSaysWhatTheCompilerSaid(t *testing.T) {
	err := Build(filepath.Join(t.TempDir(), "none", "lib.so"))
	if err == nil || !strings.Contains(err.Error(), "lib.so") {
		t.Errorf("got %v", err)
	}
	t.Setenv("CC", "/nonexistent/cc")
	if err := Build(filepath.Join(t.TempDir(), "lib.so")); err == nil || !strings.Contains(err.Error(), "/nonexistent/cc") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat("/nonexistent/cc"); err == nil {
		t.Error("/nonexistent/cc is there")
	}
}
