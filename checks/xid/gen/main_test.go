package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTableIsWhatTheDataSays(t *testing.T) {
	xids, err := os.ReadFile("../xid.csv")
	if err != nil {
		t.Fatal(err)
	}
	sxids, err := os.ReadFile("../sxid.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(xids, sxids)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../table_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("table_gen.go is not what xid.csv and sxid.txt say; run go generate ./checks/xid")
	}
	again, err := generate(xids, sxids)
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("a second run gave another table (%v)", err)
	}
}

func TestBadDataIsRefused(t *testing.T) {
	const head, good = "xid,name,severity,action,notes\n", "1,a,app,ignore,n\n"
	for _, tt := range []struct{ name, xids, sxids, want string }{
		{"no header", good, "", "want a header"},
		{"a code that is no number", head + "x,a,b,c,d\n", "", `code "x"`},
		{"a code given twice", head + good + good, "", `code "1" after 1`},
		{"a row too short", head + "1,a\n", "", "wrong number of fields"},
		{"an unknown severity", head + good, "grave 1", `severity "grave"`},
		{"a range that falls", head + good, "fatal 5-3", `"5-3"`},
		{"a switch code given twice", head + good, "fatal 5 3-6", "5 given twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := generate([]byte(tt.xids), []byte(tt.sxids)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}
