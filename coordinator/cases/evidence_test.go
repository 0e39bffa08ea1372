package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestEvidenceIsFoundByWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Put(sum("line\n"), strings.NewReader("line\n")); err != nil {
		t.Fatal(err)
	}
	if err := e.Put(sum("line\n"), strings.NewReader("never read")); err != nil {
		t.Fatal(err)
	}
	f, size, err := e.Get(sum("line\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(f)
	f.Close()
	if string(got) != "line\n" || size != 5 {
		t.Errorf("got %q of %d bytes", got, size)
	}

	var mismatch *MismatchError
	if err := e.Put(sum("a"), strings.NewReader("b")); !errors.As(err, &mismatch) || e.Has(sum("a")) {
		t.Errorf("another content: %v, kept: %v", err, e.Has(sum("a")))
	}
	for _, bad := range []string{"", "../../etc/passwd", strings.ToUpper(sum("a")), sum("a")[:63]} {
		if _, _, err := e.Get(bad); !errors.Is(err, fs.ErrNotExist) || e.Has(bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSweepKeepsWhatCasesName(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "e1"), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new", "*")); len(left) > 0 {
		t.Errorf("an interrupted write is still there: %v", left)
	}
	for _, s := range []string{"named", "not named"} {
		if err := e.Put(sum(s), strings.NewReader(s)); err != nil {
			t.Fatal(err)
		}
	}
	named := func(s string) bool { return s == sum("named") }
	if n, err := e.Sweep(named, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("fresh files: %d removed, %v", n, err)
	}
	if n, err := e.Sweep(named, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if !e.Has(sum("named")) || e.Has(sum("not named")) {
		t.Error("the wrong one is gone")
	}
}
