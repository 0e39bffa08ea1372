package certificate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// testKey is the key pair of a seed that is all of one byte.
func testKey(b byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	priv := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
	return priv.Public().(ed25519.PublicKey), priv
}

func example() Certificate {
	c := New(Screen{Level: checks.Standard, Tested: []string{"xid", "ecc"}, NotTested: []string{"nvlink"}, Suite: "5f2e", At: noon,
		Inventory: checks.Inventory{Node: "gpu001", BootID: "b1", NodeSerial: "H1", Driver: "550.54.15",
			GPUs: []checks.GPU{{UUID: "GPU-b"}, {UUID: "GPU-a"}}}}, policy.Default().Certificate)
	c.Serial = 42
	return c
}

// TestKnownAnswer pins payload and signature: a certificate signed by one release must verify in every later one.
func TestKnownAnswer(t *testing.T) {
	pub, priv := testKey(1)
	c, err := Sign(example(), "k1", priv)
	if err != nil {
		t.Fatal(err)
	}
	const payload = `assay certificate v1
serial 42
node "gpu001"
gpus 2
gpu "GPU-a"
gpu "GPU-b"
level 3
testeds 2
tested "ecc"
tested "xid"
not_testeds 1
not_tested "nvlink"
suite "5f2e"
driver "550.54.15"
boot_id "b1"
node_serial "H1"
adopted "false"
issued_at 1795953600 0
expires 1796040000 0
grace_until 1796083200 0
key_id "k1"
`
	if got := string(Payload(c)); got != payload {
		t.Errorf("payload:\n%s\nwant:\n%s", got, payload)
	}
	const signature = "70643840dfcd0c9a83e192d290cca6f3072fece23ab09f948cb7bcfa6a70d961a0d8f2aa53b0cd91a6b90102144d0b2cfbdee3555a6323bb0ee8e7e55655cf0c"
	if got := hex.EncodeToString(c.Signature); got != signature {
		t.Errorf("signature %s, want %s", got, signature)
	}
	if err := Verify(c, map[string][]byte{"k1": pub}); err != nil {
		t.Error(err)
	}
}

func TestNewSaysWhatWasScreened(t *testing.T) {
	c := example()
	want := Certificate{Serial: 42, Node: "gpu001", GPUs: []string{"GPU-a", "GPU-b"}, Level: checks.Standard, Tested: []string{"ecc", "xid"},
		NotTested: []string{"nvlink"}, Suite: "5f2e", Driver: "550.54.15", BootID: "b1", NodeSerial: "H1",
		IssuedAt: noon, Expires: noon.Add(24 * time.Hour), GraceUntil: noon.Add(36 * time.Hour)}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

func TestLifetimes(t *testing.T) {
	p := policy.Default().Certificate
	for level, want := range map[checks.Level]time.Duration{
		checks.NoLevel: 0, checks.QuickMIG: 12 * time.Hour, checks.Quick: 12 * time.Hour, checks.Standard: 24 * time.Hour,
		checks.Soak: 7 * 24 * time.Hour, checks.Intake: 30 * 24 * time.Hour, checks.Intake + 1: 0,
	} {
		if got := Lifetime(p, level); got != want {
			t.Errorf("%s: %s, want %s", level, got, want)
		}
	}
}

func TestWhenItHolds(t *testing.T) {
	c := example()
	for _, x := range []struct {
		name         string
		at           time.Time
		holds, hooks bool
	}{
		{"a clock before it was issued", noon.Add(-time.Nanosecond), false, false},
		{"when issued", noon, true, true},
		{"the last moment", c.Expires.Add(-time.Nanosecond), true, true},
		{"expired, in grace", c.Expires, false, true},
		{"the last moment of grace", c.GraceUntil.Add(-time.Nanosecond), false, true},
		{"grace over", c.GraceUntil, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := Holds(c, x.at); got != x.holds {
				t.Errorf("Holds %v, want %v", got, x.holds)
			}
			if got := HoldsForHooks(c, x.at); got != x.hooks {
				t.Errorf("HoldsForHooks %v, want %v", got, x.hooks)
			}
		})
	}
}

func TestMeets(t *testing.T) {
	c := example()
	for _, x := range []struct {
		name  string
		level checks.Level
		at    time.Time
		left  time.Duration
		want  bool
	}{
		{"the level it has", checks.Standard, noon, 0, true},
		{"a lower level", checks.Quick, noon, 0, true},
		{"a deeper level", checks.Soak, noon, 0, false},
		{"just long enough", checks.Quick, noon.Add(23 * time.Hour), time.Hour, true},
		{"a moment too short", checks.Quick, noon.Add(23*time.Hour + 1), time.Hour, false},
		{"grace never counts for placement", checks.Quick, c.Expires, 0, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := Meets(c, x.level, x.at, x.left); got != x.want {
				t.Errorf("got %v", got)
			}
		})
	}
	c.Level = checks.NoLevel
	if Meets(c, checks.NoLevel, noon, 0) {
		t.Error("a certificate of no level meets something")
	}
}

func TestCovers(t *testing.T) {
	c := example()
	for _, x := range []struct {
		name string
		gpus []string
		want bool
	}{
		{"no GPU", nil, true},
		{"one of them", []string{"GPU-b"}, true},
		{"all", []string{"GPU-b", "GPU-a"}, true},
		{"one that is not covered", []string{"GPU-a", "GPU-c"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := Covers(c, x.gpus); got != x.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	now := func(edit func(*checks.Inventory)) checks.Inventory {
		inv := checks.Inventory{Node: "gpu001", BootID: "b1", NodeSerial: "H1", Driver: "550.54.15", GPUs: []checks.GPU{{UUID: "GPU-a"}, {UUID: "GPU-b"}}}
		edit(&inv)
		return inv
	}
	for _, x := range []struct {
		name, want string
		edit       func(*checks.Inventory)
	}{
		{"nothing changed", "", func(*checks.Inventory) {}},
		{"counted anew", "", func(v *checks.Inventory) { v.GPUs[0], v.GPUs[1] = v.GPUs[1], v.GPUs[0] }},
		{"nothing could be read", "", func(v *checks.Inventory) { *v = checks.Inventory{} }},
		{"new boot", "new boot", func(v *checks.Inventory) { v.BootID = "b2" }},
		{"driver", "driver changed from 550.54.15 to 570.1", func(v *checks.Inventory) { v.Driver = "570.1" }},
		{"host", "host swapped: serial H1 is now H2", func(v *checks.Inventory) { v.NodeSerial = "H2" }},
		{"a GPU gone", "the GPUs are not those covered", func(v *checks.Inventory) { v.GPUs = v.GPUs[:1] }},
		{"a GPU swapped", "the GPUs are not those covered", func(v *checks.Inventory) { v.GPUs[1].UUID = "GPU-c" }},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := Ended(example(), now(x.edit)); got != x.want {
				t.Errorf("got %q, want %q", got, x.want)
			}
		})
	}
}

func TestVerifySaysWhatIsWrong(t *testing.T) {
	pub, priv := testKey(1)
	other, _ := testKey(2)
	c, err := Sign(example(), "k1", priv)
	if err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownKeyError
	var bad *BadSignatureError
	for _, x := range []struct {
		name string
		keys map[string][]byte
		as   any
	}{
		{"no keys", nil, &unknown},
		{"another key's name", map[string][]byte{"k2": pub}, &unknown},
		{"half a key", map[string][]byte{"k1": pub[:16]}, &unknown},
		{"another key", map[string][]byte{"k1": other}, &bad},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := Verify(c, x.keys)
			if !errors.As(err, x.as) {
				t.Fatalf("%v is no %T", err, x.as)
			}
			// Neither says anything of the hardware.
			if v := err.(interface{ Verdict() checks.Verdict }).Verdict(); v != checks.Unknown {
				t.Errorf("verdict %s", v)
			}
			if err.(interface{ Hint() string }).Hint() == "" || err.Error() == "" {
				t.Error("no hint or no text")
			}
		})
	}
	if _, err := Sign(c, "k1", priv[:10]); err == nil {
		t.Error("signed with half a key")
	}
}

// TestEveryFieldIsSigned changes one field after another: each change must break the signature.
func TestEveryFieldIsSigned(t *testing.T) {
	pub, priv := testKey(1)
	c, err := Sign(example(), "k1", priv)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]byte{"k1": pub, "k2": pub}
	typ := reflect.TypeFor[Certificate]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		x := c
		f := reflect.ValueOf(&x).Elem().Field(i)
		switch v := f.Interface().(type) {
		case uint64:
			f.SetUint(v + 1)
		case checks.Level:
			f.SetUint(uint64(v) + 1)
		case string:
			f.SetString("k2")
		case bool:
			f.SetBool(!v)
		case []string:
			f.Set(reflect.ValueOf(append([]string{"x"}, v...)))
		case time.Time:
			f.Set(reflect.ValueOf(v.Add(1)))
		case []byte:
			f.SetBytes(append([]byte{v[0] ^ 1}, v[1:]...))
		default:
			t.Fatalf("field %s of type %T: say here how to change it", name, v)
		}
		if err := Verify(x, keys); err == nil {
			t.Errorf("%s changed, and still it verifies", name)
		}
	}
}

// TestPayloadTellsListsApart: no two certificates that differ share a payload, however hostile their texts.
func TestPayloadTellsListsApart(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "a\ngpu \"b", "a\"", "\n", "gpus 2"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Certificate {
			return Certificate{Node: text.Draw(t, label), GPUs: rapid.SliceOfN(text, 0, 3).Draw(t, label), Tested: rapid.SliceOfN(text, 0, 3).Draw(t, label),
				NotTested: rapid.SliceOfN(text, 0, 3).Draw(t, label), Suite: text.Draw(t, label)}
		}
		a, b := draw("a"), draw("b")
		if reflect.DeepEqual(a, b) != bytes.Equal(Payload(a), Payload(b)) {
			t.Fatalf("%+v\n%+v\nshare a payload, or one has two", a, b)
		}
	})
}

func TestSurvivesJSON(t *testing.T) {
	pub, priv := testKey(1)
	rapid.Check(t, func(t *rapid.T) {
		c := example()
		c.Serial = rapid.Uint64().Draw(t, "serial")
		c.Level = checks.Level(rapid.IntRange(0, int(checks.Intake)).Draw(t, "level"))
		c.Driver = rapid.String().Draw(t, "driver")
		c.IssuedAt = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(time.FixedZone("x", 3600))
		c, err := Sign(c, "k1", priv)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Certificate
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if err := Verify(back, map[string][]byte{"k1": pub}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzVerify: whatever arrives as JSON, only what the key signed verifies.
func FuzzVerify(f *testing.F) {
	pub, priv := testKey(1)
	c, err := Sign(example(), "k1", priv)
	if err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"serial":1,"key_id":"k1","signature":"AAAA"}`))
	f.Add([]byte(`{"level":"intake"}`))
	signed := string(Payload(c))
	f.Fuzz(func(t *testing.T, data []byte) {
		var x Certificate
		if err := json.Unmarshal(data, &x); err != nil {
			return
		}
		if err := Verify(x, map[string][]byte{"k1": pub}); err == nil && string(Payload(x)) != signed {
			t.Fatalf("verifies, and was never signed: %s", data)
		}
	})
}
