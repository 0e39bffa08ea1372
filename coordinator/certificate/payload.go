package certificate

import (
	"strconv"
	"time"
)

// payloadHeader keeps a signature on a certificate from being taken for one on anything else.
const payloadHeader = "assay certificate v1\n"

// Payload is what is signed: every field but the signature, one a line, quoted, in a fixed order. Two certificates have
// the same payload only if they say the same; a nil list says the same as an empty one.
func Payload(c Certificate) []byte {
	b := make([]byte, 0, 512)
	b = append(b, payloadHeader...)
	b = appendUint(b, "serial", c.Serial)
	b = appendText(b, "node", c.Node)
	b = appendList(b, "gpu", c.GPUs)
	b = appendUint(b, "level", uint64(c.Level))
	b = appendList(b, "tested", c.Tested)
	b = appendList(b, "not_tested", c.NotTested)
	b = appendText(b, "suite", c.Suite)
	b = appendText(b, "driver", c.Driver)
	b = appendText(b, "boot_id", c.BootID)
	b = appendText(b, "node_serial", c.NodeSerial)
	b = appendText(b, "adopted", strconv.FormatBool(c.Adopted))
	b = appendTime(b, "issued_at", c.IssuedAt)
	b = appendTime(b, "expires", c.Expires)
	b = appendTime(b, "grace_until", c.GraceUntil)
	return appendText(b, "key_id", c.KeyID)
}

func appendText(b []byte, name, v string) []byte {
	b = append(b, name...)
	b = append(b, ' ')
	b = strconv.AppendQuoteToASCII(b, v)
	return append(b, '\n')
}

func appendUint(b []byte, name string, v uint64) []byte {
	b = append(b, name...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, v, 10)
	return append(b, '\n')
}

func appendList(b []byte, name string, vs []string) []byte {
	b = appendUint(b, name+"s", uint64(len(vs)))
	for _, v := range vs {
		b = appendText(b, name, v)
	}
	return b
}

// appendTime writes seconds and nanoseconds of Unix time, so that a zone or a monotonic reading changes nothing.
func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(b, name...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, t.Unix(), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(t.Nanosecond()), 10)
	return append(b, '\n')
}
