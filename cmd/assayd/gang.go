package main

import (
	"context"
	"os"
	"path/filepath"
)

// script is the gang's: each rank says where it is.
const script = `#!/bin/sh
#SBATCH --job-name=hello --nodes=2 --ntasks-per-node=2 --time=10
echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME, GPUs $CUDA_VISIBLE_DEVICES"
`

// gang runs one around all that is broken.
func (d *demonstration) gang(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "assay-gang")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hello.sh")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		return err
	}
	d.say("A gang of eight nodes would wait, and is told for what. One of two runs now: each node checks itself again, then all start.")
	d.command("assay job submit hello.sh --nodes 8 --dry-run")
	out, _ := d.lab.CLI(ctx, "job", "submit", path, "--nodes", "8", "--dry-run") // exit status 1: it would wait
	d.show("%s\n", out)
	d.command("assay job submit hello.sh --chdir / --wait")
	out, err = d.lab.CLI(ctx, "job", "submit", path, "--chdir", "/", "--wait")
	d.show("%s\n", out)
	return err
}
