package agent

import (
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/report"
)

// maxPictured bounds the GPUs of which a case gets a page and pictures: a case may keep so many files and no more.
const maxPictured = 4

// goldenPage writes what golden runs found wrong, for people, beside a capture: a page, and two pictures of each such GPU's SMs. It
// gives their names and SHA-256; none where nothing was wrong.
func goldenPage(dir string, read *catalog.GoldenRead) (map[string]string, error) {
	if read == nil {
		return nil, nil
	}
	var wrong []golden.Result
	for _, gpu := range read.GPUs {
		r := read.Results[gpu.UUID].Result
		if v := golden.Judge(r, golden.Grades{Simulated: r.GPU.Simulated}); v.Outcome == golden.Wrong && len(wrong) < maxPictured {
			wrong = append(wrong, r)
		}
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	files, err := report.Files(wrong, "golden-")
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, f := range files {
		data[f.Name] = f.Data
	}
	return writeFiles(dir, data)
}
