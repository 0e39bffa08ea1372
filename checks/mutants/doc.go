// Package mutants proves that the tests of the checks would notice if a check went wrong.
//
// Its test rewrites the source of each check so that its Judge always says Pass, Fail or Unknown, and so that each policy
// threshold, where it is compared, and each default of the built-in policy is off by one unit. It builds the package's
// own tests on the rewritten source (go test -c -overlay: the files in the tree are not touched) and runs them once for
// each change. Tests that pass all the same are a fault, here reported with the place of the change.
package mutants
