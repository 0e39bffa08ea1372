package ptxvm

import (
	"fmt"
	"strings"
)

// A token is a word of PTX: an identifier with its dots (as mad.wide.u32, %tid.x, .reg), a number, a string, or one
// character of punctuation.
type token struct {
	text string
	line int
}

func wordChar(c byte) bool {
	return c == '_' || c == '$' || c == '%' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex cuts PTX into tokens and drops comments.
func lex(src string) ([]token, error) {
	var out []token
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(src[i:], "//"):
			n := strings.IndexByte(src[i:], '\n')
			if n < 0 {
				n = len(src) - i
			}
			i += n
		case strings.HasPrefix(src[i:], "/*"):
			n := strings.Index(src[i:], "*/")
			if n < 0 {
				return nil, fmt.Errorf("line %d: comment without end", line)
			}
			line += strings.Count(src[i:i+n], "\n")
			i += n + 2
		case c == '"':
			n := strings.IndexByte(src[i+1:], '"')
			if n < 0 {
				return nil, fmt.Errorf("line %d: string without end", line)
			}
			out = append(out, token{src[i : i+n+2], line})
			line += strings.Count(src[i:i+n+2], "\n")
			i += n + 2
		case wordChar(c):
			j := i + 1
			for j < len(src) && (wordChar(src[j]) || src[j] == ':' && j+1 < len(src) && src[j+1] == ':') {
				if src[j] == ':' {
					j++
				}
				j++
			}
			out = append(out, token{src[i:j], line})
			i = j
		case strings.IndexByte("{}()[]<>,;:@!+-=*|", c) >= 0:
			out = append(out, token{src[i : i+1], line})
			i++
		default:
			return nil, fmt.Errorf("line %d: character %q", line, c)
		}
	}
	return out, nil
}
