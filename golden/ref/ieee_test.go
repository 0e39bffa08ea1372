package ref

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// exact is a·b + c in as many bits as it takes, rounded once by math/big.
func exact(a, b, c float64) *big.Float {
	const prec = 700
	p := new(big.Float).SetPrec(prec).Mul(new(big.Float).SetPrec(prec).SetFloat64(a), new(big.Float).SetPrec(prec).SetFloat64(b))
	return p.Add(p, new(big.Float).SetPrec(prec).SetFloat64(c))
}

func TestFMA32IsRoundedOnce(t *testing.T) {
	f := math.Float32frombits
	// A product in binary64 and a sum rounded there, then to binary32, gives 3f800002.
	a, b, c := math.Float32bits(float32(math.Ldexp(1+0x1p-23, -12))), math.Float32bits(float32(math.Ldexp(1-0x1p-23, -12))), uint32(0x3F800001)
	if got := binary32.fma(a, b, c); got != 0x3F800001 {
		t.Errorf("the counterexample of double rounding gives %08x", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.Uint32Range(0, 40)
		word := func(name string) uint32 {
			x := rapid.Uint32().Draw(t, name)
			if rapid.Bool().Draw(t, name+" near one") {
				x = x&0x807FFFFF | (107+near.Draw(t, name+" exponent"))<<23
			}
			return x
		}
		a, b, c := word("a"), word("b"), word("c")
		fa, fb, fc := float64(f(a)), float64(f(b)), float64(f(c))
		got := binary32.fma(a, b, c)
		for _, v := range []float64{fa, fb, fc} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				want := float32(math.FMA(fa, fb, fc)) // no rounding can matter
				if g := f(got); math.Float32bits(g) != math.Float32bits(want) && !(g != g && want != want && got == 0x7FFFFFFF) {
					t.Fatalf("fma(%08x, %08x, %08x) = %08x, want %v", a, b, c, got, want)
				}
				return
			}
		}
		want, _ := exact(fa, fb, fc).Float32()
		if want == 0 { // big has no sign of zero
			if got<<1 != 0 {
				t.Fatalf("fma(%08x, %08x, %08x) = %08x, want zero", a, b, c, got)
			}
			return
		}
		if f(got) != want {
			t.Fatalf("fma(%08x, %08x, %08x) = %08x, want %08x", a, b, c, got, math.Float32bits(want))
		}
	})
}

func half(x uint32) float64 {
	e, m := int(x>>10&31), float64(x&0x3FF)
	if e == 0 {
		m = math.Ldexp(m, -24)
	} else {
		m = math.Ldexp(m+1024, e-25)
	}
	if x&0x8000 != 0 {
		return -m
	}
	return m
}

// For binary16, the nearest of all 63,488 finite values decides.
func TestFMA16IsRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		a, b, c := r.Uint32()&0xFFFF, r.Uint32()&0xFFFF, r.Uint32()&0xFFFF
		if a>>10&31 == 31 || b>>10&31 == 31 || c>>10&31 == 31 {
			continue
		}
		got := binary16.fma(a, b, c)
		sum := exact(half(a), half(b), half(c))
		if got&0x7FFF == 0x7C00 {
			if v, _ := sum.Float64(); math.Abs(v) < 65520 {
				t.Fatalf("fma(%04x, %04x, %04x) overflows at %v", a, b, c, v)
			}
			continue
		}
		dist := func(x uint32) *big.Float {
			d := new(big.Float).SetPrec(700).SetFloat64(half(x))
			return d.Sub(d, sum).Abs(d)
		}
		d := dist(got)
		for _, n := range []uint32{got + 1, got - 1} {
			if n&0x7FFF >= 0x7C00 || got&0x7FFF == 0 && n == got-1 {
				continue
			}
			if c := dist(n).Cmp(d); c < 0 || c == 0 && got&1 == 1 {
				t.Fatalf("fma(%04x, %04x, %04x) = %04x, but %04x is nearer", a, b, c, got, n)
			}
		}
	}
}
