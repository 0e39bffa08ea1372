package report

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/golden"
)

// A File is one file of a report.
type File struct {
	Name string
	Data []byte
}

// Files gives the report on several GPUs: two pictures of each, and the page, last. They are named by number, since a UUID may
// come from any file; prefix stands before every name.
func Files(rs []golden.Result, prefix string) ([]File, error) {
	var out []File
	var page strings.Builder
	for i, r := range rs {
		name := fmt.Sprintf("%sgpu%d", prefix, i)
		picture, err := PNG(r)
		if err != nil {
			return nil, err
		}
		out = append(out, File{name + ".svg", []byte(SVG(r))}, File{name + ".png", picture})
		page.WriteString(Text(r, name+".svg"))
	}
	return append(out, File{prefix + "report.md", []byte(page.String())}), nil
}
