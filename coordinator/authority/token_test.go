package authority

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTokenRoundTrip(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, now)
	urls := []string{"https://control1:7420", "https://control2:7420"}
	text, rec, err := a.NewToken(urls, "gpu001", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := ParseToken("  " + text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if tok.Node != "gpu001" || tok.CA != a.Fingerprint() || strings.Join(tok.URLs, " ") != strings.Join(urls, " ") {
		t.Errorf("token = %+v", tok)
	}
	if strings.Contains(rec.SecretHash, tok.Secret) || rec.Node != "gpu001" || !rec.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("record = %+v", rec)
	}
	if err := Check(rec, tok.Secret, now.Add(time.Hour-time.Nanosecond)); err != nil {
		t.Errorf("in time: %v", err)
	}
	var te *TokenError
	if err := Check(rec, tok.Secret, now.Add(time.Hour)); !errors.As(err, &te) || te.Status() != 403 {
		t.Errorf("at its end: %v, want a TokenError", err)
	}
	if err := Check(rec, tok.Secret+"x", now); !errors.As(err, &te) {
		t.Errorf("wrong secret: %v, want a TokenError", err)
	}
	if err := Check(TokenRecord{Expires: now.Add(time.Hour)}, "", now); !errors.As(err, &te) {
		t.Errorf("empty record: %v, want a TokenError", err)
	}
	again, _, err := a.NewToken(urls, "gpu001", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if again == text {
		t.Error("two tokens are the same")
	}
}

func TestParseTokenRefuses(t *testing.T) {
	enc := func(s string) string { return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(s)) }
	fp := strings.Repeat("ab", 32)
	for name, text := range map[string]string{
		"empty":              "",
		"another form":       "assay2.e30",
		"not base64":         "assay1.***",
		"cut":                enc(`{"urls":["https://c:1"],"ca":"` + fp)[:40],
		"no node":            enc(`{"urls":["https://c:1"],"ca":"` + fp + `","secret":"s"}`),
		"no secret":          enc(`{"urls":["https://c:1"],"ca":"` + fp + `","node":"n"}`),
		"no server":          enc(`{"ca":"` + fp + `","node":"n","secret":"s"}`),
		"server in the open": enc(`{"urls":["http://c:1"],"ca":"` + fp + `","node":"n","secret":"s"}`),
		"short fingerprint":  enc(`{"urls":["https://c:1"],"ca":"abcd","node":"n","secret":"s"}`),
	} {
		_, err := ParseToken(text)
		var te *TokenError
		if !errors.As(err, &te) {
			t.Errorf("%s: %v, want a TokenError", name, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("assay1.e30")
	f.Add("assay1." + base64.RawURLEncoding.EncodeToString([]byte(`{"urls":["https://c:1"],"ca":"`+strings.Repeat("ab", 32)+`","node":"n","secret":"s"}`)))
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := ParseToken(text)
		if err == nil && (!ValidName(tok.Node) || len(tok.CA) != 64 || tok.Secret == "" || len(tok.URLs) == 0) {
			t.Errorf("%q was read as %+v", text, tok)
		}
	})
}
