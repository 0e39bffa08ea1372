package dcgm

import (
	"os"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	p := policy.Default().DCGM
	diag := func(file string) []checks.Finding {
		text, err := os.ReadFile("testdata/dcgm/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return Judge("n", nil, Parse(string(text)), p)
	}
	checktest.Three(t, ID, diag("01-v2-r1-pass.json"), diag("02-v2.4-r2-memory-fail.json"), diag("04-v3.3.1-r3-all-skip.json"))

	gpu := []HealthGPU{{0, "GPU-a", "0000:1b:00.0"}}
	checktest.Three(t, HealthID,
		JudgeHealth("n", nil, Health{Have: checks.Read, Watched: time.Hour, GPUs: gpu}, p),
		JudgeHealth("n", nil, Health{Have: checks.Read, Watched: time.Hour, GPUs: gpu, Incidents: []Incident{{0x10, 20, 4, "DBE", OfGPU, 0}}}, p),
		JudgeHealth("n", nil, Health{Err: "connection refused"}, p))
}
