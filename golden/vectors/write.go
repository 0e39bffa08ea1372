package vectors

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

//go:embed README.md
var readme []byte

// Options say what to write.
type Options struct {
	By      string // program and version
	Size    golden.Size
	Seeds   []int
	Kernels []kernels.Kernel
}

// ManifestFile names what the folder holds.
const ManifestFile = "manifest.json"

// Write writes vectors into dir, which must not be there or be empty. The manifest comes last: without it a folder holds no
// vectors. Each golden is computed here and held to the one that is embedded; a CPU that disagrees is an error.
func Write(ctx context.Context, dir string, o Options) (Manifest, error) {
	m := Manifest{Format: Format, By: o.By, Size: o.Size.Name, Threads: o.Size.Threads, Files: map[string]File{}}
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return m, fmt.Errorf("%s is not empty", dir)
	}
	put := func(path string, b []byte) error {
		at := filepath.Join(dir, filepath.FromSlash(path))
		m.Files[path] = File{len(b), sha(b)}
		return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, b, 0o644))
	}
	if err := errors.Join(put("README.md", readme), put("source/golden.h", kernels.CUDA("golden.h"))); err != nil {
		return m, err
	}
	for _, k := range o.Kernels {
		v := Kernel{
			ID: k.ID, Rule: k.Rule, Unit: k.Unit, Step: k.Does, Exact: k.Exact, Blind: k.Blind, Target: k.Target, PTX: k.PTX, MinCC: k.MinCC,
			Words: k.Words, Steps: o.Size.Steps(k), Behind: k.Behind(o.Size.Threads), Code: "kernels/" + k.ID + ".ptx", Source: "source/" + k.ID + ".cu",
		}
		if err := errors.Join(put(v.Code, []byte(k.Source())), put(v.Source, kernels.CUDA(k.ID+".cu"))); err != nil {
			return m, err
		}
		for _, seed := range o.Seeds {
			if ctx.Err() != nil {
				return m, fmt.Errorf("stopped at %s, seed %d: %w", k.ID, seed, context.Cause(ctx))
			}
			in := make([]uint32, k.Words*o.Size.Threads)
			for i := range in {
				in[i] = ref.Input(uint64(seed), i)
			}
			out := ref.Block(k.ID, uint64(seed), o.Size.Threads, v.Steps)
			want, err := golden.Known(k.ID, o.Size, seed)
			if err != nil {
				return m, err
			}
			if got := golden.DigestOf(out); got != want {
				return m, fmt.Errorf("this CPU computes %s for %s, seed %d, where the embedded golden is %s", got, k.ID, seed, want)
			}
			name := fmt.Sprintf("data/%s.%d.", k.ID, seed)
			vec := Vector{Seed: seed, Input: name + "in.bin", Golden: name + "out.bin", Digest: want.String()}
			if err := errors.Join(put(vec.Input, littleEndian(in)), put(vec.Golden, littleEndian(out))); err != nil {
				return m, err
			}
			v.Seeds = append(v.Seeds, vec)
		}
		m.Kernels = append(m.Kernels, v)
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	return m, os.WriteFile(filepath.Join(dir, ManifestFile), append(b, '\n'), 0o644)
}

func littleEndian(w []uint32) []byte {
	b := make([]byte, 0, 4*len(w))
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
