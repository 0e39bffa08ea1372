package dcgmlib

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// It exports what assay calls, and asks for nothing but the C library.
func TestBuild(t *testing.T) {
	out := filepath.Join(t.TempDir(), "libdcgm.so.4")
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
	var have []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "dcgm") {
			have = append(have, s.Name)
		}
	}
	slices.Sort(have)
	want := []string{
		"dcgmConnect_v2", "dcgmDisconnect", "dcgmGetDeviceAttributes", "dcgmGetEntityGroupEntities", "dcgmHealthCheck", "dcgmHealthGet", "dcgmHealthSet_v2",
		"dcgmHostengineVersionInfo", "dcgmInit", "dcgmPolicyGet", "dcgmShutdown", "dcgmStartEmbedded", "dcgmStopEmbedded", "dcgmUpdateAllFields", "dcgmVersionInfo",
	}
	if !slices.Equal(have, want) {
		t.Errorf("exports\n%v\nwant\n%v", have, want)
	}
	if libs, err := f.ImportedLibraries(); err != nil || !slices.Equal(libs, []string{"libc.so.6"}) {
		t.Errorf("needs %v, %v", libs, err)
	}
}

func TestBuildSaysWhatTheCompilerSaid(t *testing.T) {
	t.Setenv("CC", "/nonexistent/cc")
	if err := Build(filepath.Join(t.TempDir(), "lib.so")); err == nil || !strings.Contains(err.Error(), "/nonexistent/cc") {
		t.Errorf("got %v", err)
	}
}
