package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// A code is a program written down: one entry of a PTX module.
type code struct {
	id     string
	tier   int
	text   string
	body   string // the step alone
	digest string // the first 16 bytes of the SHA-256 of text, in hex
}

// write writes the program down. Its name is made of its step's digest, so that one step has one name in every corpus.
func (p program) write() code {
	// The step's own text, with a name that stands for the entry's.
	const anon = "PROGRAM"
	e := newEmitter(anon, p.tier)
	p.step(e)
	step := e.b.String()
	h := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", p.tier, step))
	id := fmt.Sprintf("c%d_%s", p.tier, hex.EncodeToString(h[:6]))
	step = strings.ReplaceAll(step, anon, id)
	c := code{id: id, tier: p.tier, body: step}
	c.text = entry(id, step, e)
	d := sha256.Sum256([]byte(c.text))
	c.digest = hex.EncodeToString(d[:16])
	return c
}

// head begins a module.
func head(tier int) string {
	ptx := map[int]string{70: "6.3", 80: "7.0"}[tier]
	return fmt.Sprintf("// assay corpus, generator %s\n.version %s\n.target sm_%d\n.address_size 64\n", Version, ptx, tier)
}

// The lines that stand around a step, for who looks for it in the text.
const (
	stepBegins = "// step"
	stepEnds   = "// end of step"
)

// entry writes a whole kernel around a step: what golden.h does for the golden kernels, in PTX.
func entry(id, step string, e *emitter) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(\n\t.param .u64 out, .param .u64 in, .param .u64 claim, .param .u64 where,\n\t.param .u32 slots, .param .u32 want, .param .u32 steps, .param .u32 launch,\n\t.param .u32 inject_slot, .param .u32 inject_thread, .param .u32 inject_step, .param .u32 inject_mask\n)\n.maxntid 256, 1, 1\n{\n", id)
	b.WriteString("\t.reg .pred %q<8>;\n\t.reg .b32 %s<24>;\n\t.reg .b64 %a<16>;\n")
	fmt.Fprintf(&b, "\t.reg .b32 %%x<%d>, %%c<4>, %%v, %%i, %%t, %%n, %%last, %%own, %%shared, %%key, %%slot, %%strike;\n\t.reg .b64 %%scratch;\n", Words)
	for _, k := range []struct{ name, t string }{{"r", "b32"}, {"rd", "b64"}, {"h", "b16"}, {"p", "pred"}} {
		if n := e.n[k.name]; n > 0 {
			fmt.Fprintf(&b, "\t.reg .%s %%%s<%d>;\n", k.t, k.name, n)
		}
	}
	b.WriteString("\t.shared .align 4 .u32 mine;\n\t.shared .align 16 .b8 words[4096];\n")
	b.WriteString(strings.ReplaceAll(claimText, "$L", "$"+id))
	for w := range Words {
		keyOf(&b, w)
		fmt.Fprintf(&b, "\tmul.wide.u32 %%a2, %%s1, 4;\n\tadd.s64 %%a2, %%a2, %%a0;\n\tld.global.u32 %%s3, [%%a2];\n\txor.b32 %%x%d, %%s3, %%s2;\n", w)
	}
	b.WriteString(strings.ReplaceAll(loopText, "$L", "$"+id))
	b.WriteString("\t" + stepBegins + "\n" + step + "\t" + stepEnds + "\n")
	b.WriteString(strings.ReplaceAll(againText, "$L", "$"+id))
	for w := range Words {
		keyOf(&b, w)
		fmt.Fprintf(&b, "\tmul.wide.u32 %%a2, %%s1, 4;\n\tadd.s64 %%a2, %%a2, %%a1;\n\txor.b32 %%s3, %%x%d, %%s2;\n\tst.global.u32 [%%a2], %%s3;\n", w)
	}
	b.WriteString(strings.ReplaceAll(finishText, "$L", "$"+id))
	return b.String()
}

// keyOf computes the index of word w in %s1 and its key in %s2: ref.Mix(slot, w·n + t, launch).
func keyOf(b *strings.Builder, w int) {
	fmt.Fprintf(b, "\tmad.lo.u32 %%s0, %%n, %d, %%t;\n", w)
	b.WriteString("\tmul.lo.u32 %s1, %slot, %n;\n")
	fmt.Fprintf(b, "\tmad.lo.u32 %%s1, %%s1, %d, %%s0;\n", Words)
	b.WriteString("\tmul.lo.u32 %s2, %s0, 0x9E3779B9;\n\tmul.lo.u32 %s4, %slot, 0x85EBCA6B;\n\txor.b32 %s2, %s2, %s4;\n\tld.param.u32 %s4, [launch];\n\tmul.lo.u32 %s4, %s4, 0xC2B2AE35;\n\txor.b32 %s2, %s2, %s4;\n")
	b.WriteString("\tshr.u32 %s4, %s2, 16;\n\txor.b32 %s2, %s2, %s4;\n\tmul.lo.u32 %s2, %s2, 0x7FEB352D;\n\tshr.u32 %s4, %s2, 15;\n\txor.b32 %s2, %s2, %s4;\n\tmul.lo.u32 %s2, %s2, 0x846CA68B;\n\tshr.u32 %s4, %s2, 16;\n\txor.b32 %s2, %s2, %s4;\n")
}

// claimText claims the SM, as golden.h does. A block that finds its SM taken stays resident until all are claimed or 2 ms have
// passed.
const claimText = `	mov.u32 %t, %tid.x;
	mov.u32 %n, %ntid.x;
	setp.ne.u32 %q0, %t, 0;
	@%q0 bra $L_join;
	ld.param.u64 %a3, [claim];
	cvta.to.global.u64 %a3, %a3;
	ld.param.u64 %a4, [where];
	cvta.to.global.u64 %a4, %a4;
	ld.param.u32 %s5, [slots];
	mul.wide.u32 %a5, %s5, 4;
	add.s64 %a5, %a5, %a3;
	mov.u32 %s6, %smid;
	mov.u32 %s7, 0xFFFFFFFF;
	setp.ge.u32 %q1, %s6, %s5;
	@%q1 bra $L_lost;
	mul.wide.u32 %a6, %s6, 4;
	add.s64 %a6, %a6, %a3;
	mov.u32 %s8, %ctaid.x;
	add.u32 %s9, %s8, 1;
	atom.global.cas.b32 %s10, [%a6], 0, %s9;
	setp.ne.u32 %q2, %s10, 0;
	@%q2 bra $L_lost;
	mov.u64 %a7, %clock64;
	mov.u64 %a8, %globaltimer;
	atom.global.add.u32 %s11, [%a5], 1;
	mul.wide.u32 %a9, %s6, 64;
	add.s64 %a9, %a9, %a4;
	st.global.u32 [%a9], %s6;
	st.global.u32 [%a9+8], %s8;
	mov.b64 {%s12, %s13}, %a7;
	st.global.u32 [%a9+16], %s12;
	st.global.u32 [%a9+20], %s13;
	mov.b64 {%s12, %s13}, %a8;
	st.global.u32 [%a9+32], %s12;
	st.global.u32 [%a9+36], %s13;
	mov.u32 %s7, %s6;
	bra $L_claimed;
$L_lost:
	mov.u64 %a10, %globaltimer;
	ld.param.u32 %s14, [want];
$L_wait:
	nanosleep.u32 1000;
	ld.relaxed.gpu.global.u32 %s15, [%a5];
	setp.ge.u32 %q3, %s15, %s14;
	@%q3 bra $L_claimed;
	mov.u64 %a11, %globaltimer;
	sub.s64 %a11, %a11, %a10;
	setp.lt.u64 %q4, %a11, 2000000;
	@%q4 bra $L_wait;
$L_claimed:
	st.shared.u32 [mine], %s7;
$L_join:
	bar.sync 0;
	ld.shared.u32 %slot, [mine];
	setp.eq.u32 %q5, %slot, 0xFFFFFFFF;
	@%q5 bra $L_end;
	ld.param.u64 %a0, [in];
	cvta.to.global.u64 %a0, %a0;
	ld.param.u64 %a1, [out];
	cvta.to.global.u64 %a1, %a1;
	mul.lo.u32 %s16, %slot, %n;
	mad.lo.u32 %s16, %s16, 8, %t;
	mul.wide.u32 %scratch, %s16, 4;
	add.s64 %scratch, %scratch, %a1;
	mul.lo.u32 %key, %slot, 0x85EBCA6B;
	sub.u32 %last, %n, 1;
	mov.u32 %shared, words;
	mad.lo.u32 %own, %t, 16, %shared;
	ld.param.u32 %s17, [inject_slot];
	ld.param.u32 %s18, [inject_thread];
	ld.param.u32 %s19, [inject_step];
	setp.eq.u32 %q6, %slot, %s17;
	setp.eq.and.u32 %q6, %t, %s18, %q6;
	selp.b32 %strike, %s19, 0xFFFFFFFF, %q6;
	ld.param.u32 %s20, [steps];
	ld.param.u32 %s21, [inject_mask];
`

const loopText = `	mov.u32 %i, 0;
	setp.ge.u32 %q7, %i, %s20;
	@%q7 bra $L_store;
$L_step:
`

const againText = `	setp.eq.u32 %q7, %i, %strike;
	selp.b32 %s22, %s21, 0, %q7;
	xor.b32 %x0, %x0, %s22;
	add.u32 %i, %i, 1;
	setp.lt.u32 %q7, %i, %s20;
	@%q7 bra $L_step;
$L_store:
`

const finishText = `	bar.sync 0;
	setp.ne.u32 %q0, %t, 0;
	@%q0 bra $L_end;
	ld.param.u64 %a4, [where];
	cvta.to.global.u64 %a4, %a4;
	mul.wide.u32 %a9, %slot, 64;
	add.s64 %a9, %a9, %a4;
	mov.u64 %a7, %clock64;
	mov.u64 %a8, %globaltimer;
	mov.u32 %s6, %smid;
	st.global.u32 [%a9+4], %s6;
	mov.b64 {%s12, %s13}, %a7;
	st.global.u32 [%a9+24], %s12;
	st.global.u32 [%a9+28], %s13;
	mov.b64 {%s12, %s13}, %a8;
	st.global.u32 [%a9+40], %s12;
	st.global.u32 [%a9+44], %s13;
	mov.u32 %s23, 0x600DD00D;
	st.global.u32 [%a9+12], %s23;
$L_end:
	ret;
}
`
