package vectors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

func folder(t *testing.T, ids ...string) string {
	t.Helper()
	o := Options{By: "a test", Size: golden.Reduced, Seeds: []int{3, 60}}
	for _, id := range ids {
		k, ok := kernels.Lookup(id)
		if !ok {
			t.Fatalf("no kernel %s", id)
		}
		o.Kernels = append(o.Kernels, k)
	}
	dir := filepath.Join(t.TempDir(), "vectors")
	if _, err := Write(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Another tool reads the folder with nothing but what README.md says, runs the PTX in it, and gets the goldens in it. This
// reader shares no code with the writer: its types, its bytes, its keys and its inputs are its own.
func TestAnotherToolGetsTheSame(t *testing.T) {
	dir := folder(t, "k01_imad", "k10_shuffle", "k16_hbm", "k18i_mma_s8")
	file := func(path string) []byte {
		b, err := os.ReadFile(dir + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var m struct {
		Format, Threads int
		Kernels         []struct {
			ID, Code             string
			Words, Steps, Behind int
			Vectors              []struct {
				Seed                  uint64
				Input, Golden, Digest string
			}
		}
		Files map[string]struct {
			Bytes  int
			SHA256 string
		}
	}
	if err := json.Unmarshal(file("manifest.json"), &m); err != nil || m.Format != 1 || len(m.Kernels) != 4 {
		t.Fatalf("%v, %+v", err, m)
	}
	for path, f := range m.Files {
		if h := sha256.Sum256(file(path)); len(file(path)) != f.Bytes || hex.EncodeToString(h[:]) != f.SHA256 {
			t.Errorf("%s is not what the manifest says", path)
		}
	}
	le := func(w []uint32) (b []byte) {
		for _, x := range w {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return b
	}
	words := func(b []byte) (w []uint32) {
		for i := 0; i < len(b); i += 4 {
			w = append(w, uint32(b[i])|uint32(b[i+1])<<8|uint32(b[i+2])<<16|uint32(b[i+3])<<24)
		}
		return w
	}
	mix := func(slot, index, launch uint32) uint32 {
		x := index*0x9E3779B9 ^ slot*0x85EBCA6B ^ launch*0xC2B2AE35
		x = (x ^ x>>16) * 0x7FEB352D
		x = (x ^ x>>15) * 0x846CA68B
		return x ^ x>>16
	}
	const slots, launch = 2, 1234
	for _, k := range m.Kernels {
		module, err := ptxvm.Parse(string(file(k.Code)))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range k.Vectors {
			in, want := words(file(v.Input)), words(file(v.Golden))
			for i, w := range in {
				z := v.Seed*0x9E3779B97F4A7C15 + uint64(i)*0xD1B54A32D192ED03 + 0x632BE59BD9B4E019
				z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
				z = (z ^ z>>27) * 0x94D049BB133111EB
				if uint32((z^z>>31)>>32) != w {
					t.Fatalf("%s, seed %d: input word %d is not what the rule says", k.ID, v.Seed, i)
				}
			}
			d := ptxvm.NewDevice(ptxvm.Config{SMs: slots, Capability: 90, SharedSM: 16 << 10})
			put := func(w []uint32) uint64 {
				a := d.Alloc(4 * len(w))
				if err := d.Write(a, le(w)); err != nil {
					t.Fatal(err)
				}
				return a
			}
			var keyed []uint32
			for s := range uint32(slots) {
				for i, w := range in {
					keyed = append(keyed, w^mix(s, uint32(i), launch))
				}
			}
			out, where := put(make([]uint32, slots*(len(in)+k.Behind))), put(make([]uint32, slots*16))
			var p []byte
			for _, a := range []uint64{out, put(keyed), put(make([]uint32, slots+1)), where} {
				p = append(p, le([]uint32{uint32(a), uint32(a >> 32)})...)
			}
			p = append(p, le([]uint32{slots, slots, uint32(k.Steps), launch, 0xFFFFFFFF, 0, 0, 0})...)
			if err := d.Launch(module.Entries[k.ID], 2*slots, m.Threads, 12<<10, p); err != nil {
				t.Fatal(err)
			}
			got, at := make([]byte, 4*slots*len(in)), make([]byte, 4*slots*16)
			if d.Read(out, got) != nil || d.Read(where, at) != nil {
				t.Fatal("no output")
			}
			for s := range slots {
				if words(at)[16*s+3] != 0x600DD00D || words(at)[16*s] != uint32(s) || words(at)[16*s+1] != uint32(s) {
					t.Fatalf("%s: slot %d: %08x", k.ID, s, words(at)[16*s:][:4])
				}
				for i, w := range words(got)[s*len(in):][:len(in)] {
					if w^mix(uint32(s), uint32(i), launch) != want[i] {
						t.Fatalf("%s, seed %d: SM %d: word %d differs", k.ID, v.Seed, s, i)
					}
				}
			}
			if h := sha256.Sum256(file(v.Golden)); hex.EncodeToString(h[:16]) != v.Digest {
				t.Errorf("%s, seed %d: digest", k.ID, v.Seed)
			}
		}
	}
}

func TestVerify(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(dir string) error
		say    string // in the list, or after "error: "
	}{
		{"as it was written", func(string) error { return nil }, ""},
		{"a flipped bit", func(dir string) error {
			return edit(dir+"/data/k01_imad.3.out.bin", func(b []byte) []byte { b[7] ^= 1; return b })
		}, "data/k01_imad.3.out.bin: 2048 bytes with SHA-256"},
		{"a file less", func(dir string) error { return os.Remove(dir + "/source/golden.h") }, "golden.h"},
		{"a file more", func(dir string) error { return os.WriteFile(dir+"/data/x.bin", nil, 0o644) }, "data/x.bin: the manifest does not name it"},
		{"a link", func(dir string) error {
			if err := os.Remove(dir + "/README.md"); err != nil {
				return err
			}
			return os.Symlink("/etc/hostname", dir+"/README.md")
		}, "no plain file"},
		{"another format", manifest(`"format": 1`, `"format": 9`), "error: format 9"},
		{"a field nobody knows", manifest(`"format": 1`, `"format": 1, "colour": 2`), "error: json"},
		{"a path outside", manifest(`"README.md": {`, `"../README.md": {`), "error: file \"../README.md\""},
		{"a digest of something else", manifest(`"digest": "`, `"digest": "0`), "error: k01_imad, seed 3: digest"},
		{"another number of threads", manifest(`"threads": 128`, `"threads": 64`), "error: k01_imad: data/k01_imad.3.in.bin has 2048 bytes, want 1024"},
	} {
		dir := folder(t, "k01_imad")
		if err := tt.change(dir); err != nil {
			t.Fatal(err)
		}
		_, wrong, err := Verify(dir)
		got := strings.Join(wrong, "; ")
		if err != nil {
			got = "error: " + strings.TrimPrefix(err.Error(), filepath.Join(dir, ManifestFile)+": ")
		}
		if (tt.say == "") != (got == "") || !strings.Contains(got, tt.say) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.say)
		}
	}
}

func edit(path string, f func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, f(b), 0o644)
}

func manifest(from, to string) func(string) error {
	return func(dir string) error {
		return edit(dir+"/"+ManifestFile, func(b []byte) []byte { return []byte(strings.Replace(string(b), from, to, 1)) })
	}
}

// A folder that holds something is left alone, and an interrupted one is no folder of vectors.
func TestWriteLeavesOthersAlone(t *testing.T) {
	dir := folder(t, "k01_imad")
	k, _ := kernels.Lookup("k01_imad")
	if _, err := Write(t.Context(), dir, Options{Size: golden.Reduced, Seeds: []int{1}, Kernels: []kernels.Kernel{k}}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	half := filepath.Join(t.TempDir(), "half")
	if _, err := Write(ctx, half, Options{Size: golden.Reduced, Seeds: []int{1}, Kernels: []kernels.Kernel{k}}); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("%v", err)
	}
	if _, _, err := Verify(half); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":1,"threads":1,"kernels":[{"id":"k","code":"a","source":"a","vectors":[{"input":"a","golden":"a"}]}],"files":{"a":{"bytes":4,"sha256":""}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		for path := range m.Files {
			if err == nil && (strings.HasPrefix(path, "/") || strings.HasPrefix(path, "..")) {
				t.Errorf("%q", path)
			}
		}
	})
}
