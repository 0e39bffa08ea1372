package certificate

import (
	"crypto/ed25519"
	"fmt"

	"github.com/assay-gpu/assay/checks"
)

// Sign returns c with keyID and the ed25519 signature of its payload. It fails only on a key of the wrong length.
func Sign(c Certificate, keyID string, priv ed25519.PrivateKey) (Certificate, error) {
	if len(priv) != ed25519.PrivateKeySize {
		return c, fmt.Errorf("sign certificate %d of %s: key %q has %d bytes, want %d", c.Serial, c.Node, keyID, len(priv), ed25519.PrivateKeySize)
	}
	c.KeyID = keyID
	c.Signature = ed25519.Sign(priv, Payload(c))
	return c, nil
}

// Verify checks the signature with the public key that c names. The error is an *UnknownKeyError or a
// *BadSignatureError. Neither says anything of the hardware: both make the certificate Unknown, never a Fail.
func Verify(c Certificate, keys map[string][]byte) error {
	key, ok := keys[c.KeyID]
	if !ok {
		return &UnknownKeyError{Node: c.Node, Serial: c.Serial, KeyID: c.KeyID}
	}
	if len(key) != ed25519.PublicKeySize {
		return &UnknownKeyError{Node: c.Node, Serial: c.Serial, KeyID: c.KeyID, Bytes: len(key)}
	}
	if len(c.Signature) != ed25519.SignatureSize || !ed25519.Verify(key, Payload(c), c.Signature) {
		return &BadSignatureError{Node: c.Node, Serial: c.Serial, KeyID: c.KeyID}
	}
	return nil
}

// UnknownKeyError says that the key a certificate names is not held, or is no ed25519 public key.
type UnknownKeyError struct {
	Node   string
	Serial uint64
	KeyID  string
	Bytes  int // length of the key held, where it is wrong; 0: none held
}

func (e *UnknownKeyError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("certificate %d of %s: key %q has %d bytes, want %d", e.Serial, e.Node, e.KeyID, e.Bytes, ed25519.PublicKeySize)
	}
	return fmt.Sprintf("certificate %d of %s: signed with key %q, which is not known here", e.Serial, e.Node, e.KeyID)
}

// Verdict is Unknown: an unknown key says nothing of the hardware.
func (e *UnknownKeyError) Verdict() checks.Verdict { return checks.Unknown }

// Hint says what to do.
func (e *UnknownKeyError) Hint() string {
	return "keys come from the control plane with the desired state; wait for a reconnect, or screen the node again"
}

// BadSignatureError says that the signature is not the named key's signature of this certificate.
type BadSignatureError struct {
	Node   string
	Serial uint64
	KeyID  string
}

func (e *BadSignatureError) Error() string {
	return fmt.Sprintf("certificate %d of %s: not what key %q signed", e.Serial, e.Node, e.KeyID)
}

// Verdict is Unknown: a bad signature says nothing of the hardware.
func (e *BadSignatureError) Verdict() checks.Verdict { return checks.Unknown }

// Hint says what to do.
func (e *BadSignatureError) Hint() string {
	return "the certificate was altered or damaged; screen the node again"
}
