package authority

import (
	"crypto/x509"
	"fmt"
	"slices"
)

// A Role says what a person may do. Each role may do all that the ones before it may.
type Role string

const (
	RoleNone     Role = ""
	RoleViewer   Role = "viewer"   // reads everything and changes nothing
	RoleUser     Role = "user"     // submits jobs, and deals with its own
	RoleOperator Role = "operator" // deals with nodes, cases, tickets and jobs; freezes and thaws
	RoleAdmin    Role = "admin"    // says what the fleet is and who may act: policy, accounts, keys, people, who belongs to it
)

// Roles are all there are, the one that may least first.
var Roles = []Role{RoleViewer, RoleUser, RoleOperator, RoleAdmin}

// Covers reports whether r may do what needs the role need. RoleNone covers nothing, and nothing is covered by need none.
func (r Role) Covers(need Role) bool {
	have, want := slices.Index(Roles, r), slices.Index(Roles, need)
	return want >= 0 && have >= want
}

// ParseRole reads a role's name.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles, r) {
		return r, nil
	}
	return RoleNone, &RequestError{fmt.Sprintf("%.40q is no role: viewer, user, operator and admin are", text)}
}

// roleUnits are the organizational units of people's certificates. The one of operators is as old as this authority.
var roleUnits = map[Role]string{RoleViewer: "assay-viewer", RoleUser: "assay-user", RoleOperator: "assay-operator", RoleAdmin: "assay-admin"}

func roleOfUnit(unit string) Role {
	for r, u := range roleUnits {
		if u == unit {
			return r
		}
	}
	return RoleNone
}

// RoleOf is the role of the person a verified client certificate belongs to; RoleNone when it is not a person's.
func RoleOf(cert *x509.Certificate) Role {
	if kind, _ := Identity(cert); kind != Operator {
		return RoleNone
	}
	return roleOfUnit(cert.Subject.OrganizationalUnit[0])
}
