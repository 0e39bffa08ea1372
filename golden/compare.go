package golden

import "github.com/assay-gpu/assay/golden/ref"

// Unkey takes the key of a slot and launch off words that a kernel stored, in place.
func Unkey(words []uint32, slot, launch uint32) {
	for i := range words {
		words[i] ^= ref.Mix(slot, uint32(i), launch)
	}
}

// Compare gives what is wrong with a block's words, nil when nothing is. Words are word-major: word w of thread t is at
// w·threads + t.
func Compare(got, want []uint32, threads int) *Mismatch {
	var m Mismatch
	for t := range threads {
		bad := false
		for i := t; i < len(want); i += threads {
			if got[i] == want[i] {
				continue
			}
			if m.Words == 0 {
				m.First = Word{t, i / threads, want[i], got[i]}
			}
			m.Words++
			bad = true
		}
		if bad && len(m.Threads) < 64 {
			m.Threads = append(m.Threads, t)
		}
	}
	if m.Words == 0 {
		return nil
	}
	return &m
}

// FirstWrong finds the smallest number of steps after which wrong holds, which must hold after high steps. It calls wrong
// about log2(high) times.
func FirstWrong(high int, wrong func(steps int) (bool, error)) (int, error) {
	low := 0 // after 0 steps nothing has been computed
	for high-low > 1 {
		mid := low + (high-low)/2
		bad, err := wrong(mid)
		if err != nil {
			return 0, err
		}
		if bad {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}

// Locate turns a block's mismatch after the first wrong step into its origin.
func Locate(m *Mismatch, steps int) *Origin {
	return &Origin{
		Step: steps - 1, Thread: m.First.Thread, Partition: m.First.Thread / 32 % 4, Lane: m.First.Thread % 32,
		Word: m.First.Word, Expected: m.First.Expected, Got: m.First.Got, Threads: len(m.Threads),
	}
}
