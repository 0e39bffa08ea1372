package importrules

import (
	"io/fs"
	"os"
)

// packageDir is the folder of the package under test: go test runs each package's tests there.
func packageDir() fs.FS { return os.DirFS(".") }
