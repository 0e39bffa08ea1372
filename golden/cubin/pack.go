package cubin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// maxImage bounds one kernel's machine code, in bytes.
const maxImage = 16 << 20

// Pack puts a kernel's machine code into one file, a tar archive that gzip has made small: sm_70.cubin and so on, in that order.
// The same code gives the same archive; how small gzip makes it may differ from one Go to the next.
func Pack(targets []string, images [][]byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for i, t := range targets {
		if err := w.WriteHeader(&tar.Header{Name: t + ".cubin", Mode: 0o644, Size: int64(len(images[i])), Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(images[i]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unpack gives the machine code for one target.
func Unpack(packed []byte, target string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("the archive has none for %s", target)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == target+".cubin" {
			return io.ReadAll(io.LimitReader(r, maxImage))
		}
	}
}
