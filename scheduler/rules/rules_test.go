package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/scheduler/backfill"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/quota"
)

func site() File {
	return File{
		Priority:     &Priority{HalfLife: 14 * 24 * 3600, Classic: true},
		QOS:          []QOS{{Name: "high", Priority: 10, Preempts: []string{"normal"}, Limits: Limits{PerUser: "gpu=64", Wall: 7200}}},
		Accounts:     []Account{{Name: "physics", Parent: "science", Users: []User{{Name: "ann"}, {Name: "bob", Share: 3}}}, {Name: "science", Share: 10, Nominal: "gpu=64", Lend: "gpu=0", QOS: []string{"high", "normal"}}},
		Partitions:   []Partition{{Name: "long", Nodes: "n[1-2]", Default: true, AllowAccts: []string{"science"}, MaxTime: 86400}},
		Reservations: []Reservation{{Name: "course", Nodes: "n2", Start: time.Unix(1000, 0).UTC(), Duration: 100, Repeat: "daily", Accounts: []string{"science"}}},
	}
}

func TestBuild(t *testing.T) {
	b := NewBook().With(site()).Whole()
	c, tree, err := b.Build(Fleet{"n1": 8, "n2": 4, "n3": 8}, []Member{{"science", "carol"}, {"gone", "dave"}})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Partitions[0]
	if p.Total != (quota.Amounts{12, 2, 192, 0}) || strings.Join(p.AllowAcct, ",") != "physics,science" || p.MaxTime != 86400 || p.Billing[quota.GPUs] != 1 {
		t.Errorf("partition %+v", p)
	}
	if c.FairTree || c.HalfLife != 14*24*3600 || c.Weights.FairShare != 10000 {
		t.Errorf("priority %+v", c)
	}
	if q := c.QOS[0]; q.Name != "high" || q.UsageFactor != 1 || q.Limits.MaxPerUser[quota.GPUs] != 64 || q.Limits.MaxWall != 7200 || q.Limits.GrpJobs != quota.Unset {
		t.Errorf("QOS %+v", q)
	}
	bob, ok := tree.Find("physics/bob")
	if !ok || tree.Spec(bob).Shares != 3 {
		t.Errorf("bob: %+v", tree.Spec(bob))
	}
	if _, ok := tree.Find("science/carol"); !ok {
		t.Error("a user who came by a job has no place in the tree")
	}
	if s, _ := tree.Find("science"); tree.Spec(s).Lend[quota.GPUs] != 0 || tree.Spec(s).Nominal[quota.Nodes] != quota.Unset {
		t.Errorf("science: %+v", tree.Spec(s))
	}
	r := b.Reserve(3, func(n string) (int32, bool) { return int32(n[1] - '1'), n[0] == 'n' })
	if len(r) != 1 || !reflect.DeepEqual(r[0].Nodes, []int32{1}) || r[0].Start != 1000 || r[0].End != 1100 || r[0].Repeat != 86400 || len(r[0].Accounts) != 2 {
		t.Errorf("reservations %+v", r)
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	n := -1
	err := NewBook().With(File{
		Priority:     &Priority{Age: new(float64)},
		QOS:          []QOS{{Name: "a/b"}, {Name: "loop", Preempts: []string{"none"}, Limits: Limits{Jobs: &n}}},
		Accounts:     []Account{{Name: "x", Parent: "nowhere", Borrow: "gpu=1", QOS: []string{"gone"}, Limits: Limits{PerUser: "gpu=1"}}, {Name: "d1", Default: true}, {Name: "d2", Default: true}},
		Partitions:   []Partition{{Name: "p", State: "asleep", Nodes: "n[", DefaultTime: 2, MaxTime: 1, AllowAccts: []string{"nobody"}}},
		Reservations: []Reservation{{Name: "r"}},
	}).Check()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{`QOS "a/b"`, "limits.jobs: -1", "borrow and lend go with nominal", "names QOS gone", "per_user", "2 accounts are the default", "asleep", "partition p: nodes",
		"default_time 00:00:02 is above", "names account nobody", "reservation r: it needs a start"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in:\n%v", want, err)
		}
	}
	for want, f := range map[string]File{
		"its parent nowhere is not configured": {Accounts: []Account{{Name: "x", Parent: "nowhere"}}},
		"preempts none":                        {QOS: []QOS{{Name: "q", Preempts: []string{"none"}}}},
		"their own ancestors":                  {Accounts: []Account{{Name: "x", Parent: "y"}, {Name: "y", Parent: "x"}}},
		"names QOS none":                       {Partitions: []Partition{{Name: "p", QOS: "none"}}},
		"begins again before it has ended":     {Reservations: []Reservation{{Name: "r", Start: time.Unix(1, 0), Duration: 90000, Repeat: "daily", Maint: true}}},
		"for whom?":                            {Reservations: []Reservation{{Name: "r", Start: time.Unix(1, 0), Duration: 1}}},
	} {
		if err := NewBook().With(f).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	full := NewBook().With(site()).Whole()
	for _, tt := range []struct {
		b          Book
		user       string
		ask, place Place
		code       queue.Code
	}{
		{NewBook().Whole(), "ann", Place{}, Place{"batch", "all", "normal"}, ""},
		{full, "ann", Place{}, Place{"long", "physics", "high"}, ""},
		{full, "carol", Place{Account: "science", QOS: "normal"}, Place{"long", "science", "normal"}, ""},
		{full, "carol", Place{Account: "physics"}, Place{}, queue.InvalidAccount},
		{full, "carol", Place{}, Place{}, queue.InvalidAccount},
		{full, "ann", Place{QOS: "none"}, Place{}, queue.InvalidQOS},
		{full, "ann", Place{Partition: "batch"}, Place{}, queue.BadConstraints},
		{full, "ann", Place{Account: "root"}, Place{}, queue.InvalidAccount},
	} {
		got, why := tt.b.Complete(tt.user, tt.ask)
		want := tt.place
		if tt.code == "" && want.QOS == "high" {
			want.QOS = "normal" // the default, as long as the account may have it
		}
		if why.Code != tt.code || tt.code == "" && got != want {
			t.Errorf("%s %+v: %+v, %+v, want %+v %s", tt.user, tt.ask, got, why, want, tt.code)
		}
		if tt.code != "" && len(why.Text) < 10 {
			t.Errorf("%s: no sentence", why.Code)
		}
	}
}

// What is written is read back as the same.
func TestRoundTrip(t *testing.T) {
	want := NewBook().With(site())
	body, err := json.Marshal(want.File())
	if err != nil {
		t.Fatal(err)
	}
	var f File
	if err := json.Unmarshal(body, &f); err != nil {
		t.Fatal(err)
	}
	if got := NewBook().With(f); !reflect.DeepEqual(got, want) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, want)
	}
	if f.Accounts[0].Name != "science" {
		t.Errorf("accounts come as %+v: parents first", f.Accounts)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"7d", "1-12:00:00", "90", "30s", "gpu=8,node=1", "cpu=0.5", "parent", "10", "ann=3", "bob"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d Time
		if d.UnmarshalText([]byte(s)) == nil {
			text, _ := d.MarshalText()
			var again Time
			if err := again.UnmarshalText(text); err != nil || again != d {
				t.Fatalf("%q: %d, written %s, read back as %d, %v", s, d, text, again, err)
			}
		}
		var u User
		if u.UnmarshalText([]byte(s)) == nil {
			text, _ := u.MarshalText()
			var again User
			if err := again.UnmarshalText(text); err != nil || again != u {
				t.Fatalf("%q: %+v, written %s, read back as %+v, %v", s, u, text, again, err)
			}
		}
		var a Amounts
		if a.UnmarshalText([]byte(s)) == nil {
			for _, n := range a.must() {
				if n < quota.Unset {
					t.Fatalf("%q: %v", s, a.must())
				}
			}
		}
		var w Weights
		if w.UnmarshalText([]byte(s)) == nil {
			if v, err := w.values(); err != nil || fmt.Sprint(v) == "" {
				t.Fatalf("%q: %v, %v", s, v, err)
			}
		}
	})
}

// How starts are planned: defaults, and each key.
func TestPlan(t *testing.T) {
	if got, want := (&Priority{}).Plan(), backfill.DefaultOptions(); got != want {
		t.Errorf("nothing said: %+v, want %+v", got, want)
	}
	got := (&Priority{Backfill: "none", Depth: 50, Ahead: 14 * 24 * 3600, Renewed: true}).Plan()
	if want := (backfill.Options{Depth: 50, Window: 14 * 24 * 3600, Strict: true, Renew: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if o := (&Priority{Backfill: "easy"}).Plan(); !o.EASY || o.Strict {
		t.Errorf("easy: %+v", o)
	}
	book := NewBook().With(File{Priority: &Priority{Backfill: "greedy", Depth: -1, Ahead: 60}})
	err := book.Check()
	for _, want := range []string{`backfill "greedy"`, "plan_depth -1", "plan_ahead 00:01:00"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
}
