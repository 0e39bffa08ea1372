package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// tokenPrefix names the form of a token's text, so that a later form can be told apart.
const tokenPrefix = "assay1."

// A Token is what the text of an enrolment token holds: where to go, whom to trust there, who one is, and the proof.
type Token struct {
	URLs   []string `json:"urls"`
	CA     string   `json:"ca"` // SHA-256 of the authority's certificate in DER, hex
	Node   string   `json:"node"`
	Secret string   `json:"secret"`
}

// A TokenRecord is what the control plane keeps of a token: enough to check it, too little to use it. Adopt, Leaf and
// By are the caller's to fill in.
type TokenRecord struct {
	Node       string    `json:"node"`
	SecretHash string    `json:"secret_hash"` // SHA-256, hex; the secret is 256 random bits and needs no salt
	Expires    time.Time `json:"expires"`
	Adopt      bool      `json:"adopt,omitempty"`
	Leaf       string    `json:"leaf,omitempty"`
	By         string    `json:"by,omitempty"`
}

// NewToken makes a token for one node. Deleting the record once it has been used is what makes it work once.
func (a *Authority) NewToken(urls []string, node string, now time.Time, ttl time.Duration) (text string, record TokenRecord, err error) {
	if !ValidName(node) {
		return "", TokenRecord{}, &RequestError{fmt.Sprintf("%q cannot name a node", node)}
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", TokenRecord{}, fmt.Errorf("draw a secret: %w", err)
	}
	t := Token{URLs: urls, CA: a.Fingerprint(), Node: node, Secret: base64.RawURLEncoding.EncodeToString(secret)}
	body, err := json.Marshal(t)
	if err != nil {
		return "", TokenRecord{}, fmt.Errorf("encode token: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(body), TokenRecord{Node: node, SecretHash: hashSecret(t.Secret), Expires: now.Add(ttl)}, nil
}

// A TokenError says why a token was refused. It never repeats the token.
type TokenError struct{ Why string }

func (e *TokenError) Error() string { return "enrolment token refused: " + e.Why }

// Hint says how to get another.
func (e *TokenError) Hint() string {
	return "make a new one on the control host: assay node enroll NODE"
}

// Status is the HTTP status of the refusal.
func (e *TokenError) Status() int { return 403 }

// ParseToken reads a token's text. White space around it is ignored.
func ParseToken(text string) (Token, error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return Token{}, &TokenError{"it does not begin with " + tokenPrefix}
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Token{}, &TokenError{"it is cut or mangled"}
	}
	var t Token
	if err := json.Unmarshal(raw, &t); err != nil {
		return Token{}, &TokenError{"it is cut or mangled"}
	}
	if !ValidName(t.Node) || t.Secret == "" || len(t.URLs) == 0 {
		return Token{}, &TokenError{"it names no node, no secret or no server"}
	}
	for _, u := range t.URLs {
		if p, err := url.Parse(u); err != nil || p.Scheme != "https" || p.Host == "" {
			return Token{}, &TokenError{fmt.Sprintf("%q is no https URL", u)}
		}
	}
	if fp, err := hex.DecodeString(t.CA); err != nil || len(fp) != sha256.Size {
		return Token{}, &TokenError{"its authority fingerprint is no SHA-256"}
	}
	return t, nil
}

// Check reports whether secret is the one the record was made with and still in time. The comparison takes as long
// for a wrong secret as for a right one.
func Check(r TokenRecord, secret string, now time.Time) error {
	if subtle.ConstantTimeCompare([]byte(hashSecret(secret)), []byte(r.SecretHash)) != 1 {
		return &TokenError{"its secret is wrong, or it was used before"}
	}
	if !now.Before(r.Expires) {
		return &TokenError{"it expired at " + r.Expires.UTC().Format(time.RFC3339)}
	}
	return nil
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
