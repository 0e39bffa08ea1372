package wire

import (
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// Paths of the built-in scheduler's rules.
const (
	PathRules    = "/v1/rules"    // GET → rules.File as kept, ?whole=true with what holds where nothing was kept; POST rules.File → rules.File, its records kept in place of those of the same names; DELETE /{kind}/{name} → rules.File
	PathAccounts = "/v1/accounts" // GET → []Account
)

// An Account is an account, or a user of one, and how it stands now.
type Account struct {
	rules.Account
	User     string         `json:"user,omitempty"` // of a user: his name; Account is then only his account's name and his share
	Standing queue.Standing `json:"standing"`
}
