// Package quota holds the one tree of accounts: what each may use now, and what each has used.
//
// A tree has a root, accounts below it, and users as leaves. An account has a share, which says how much of the past it
// ought to have had (fair share), and a quota, which says how much of the fleet it may hold now. Other schedulers have
// other names for the parts of a quota:
//
//	here              Slurm            Kueue                       Volcano            KAI
//	account           account          ClusterQueue, LocalQueue    queue              queue
//	inner account     account          Cohort                      parent queue       parent queue
//	share             RawShares        fairSharing.weight          weight             overQuotaWeight
//	nominal           none             nominalQuota                deserved           deserved, quota
//	nominal - lend    none             nominalQuota-lendingLimit   guarantee          none
//	nominal + borrow  GrpTRES          nominalQuota+borrowingLimit capability, cap    limit
//
// An account that uses less than its nominal quota lends the rest to its siblings, at most its lending limit; what it
// does not lend is guaranteed to it. One that uses more borrows, at most its borrowing limit. An account without a nominal
// quota has none of its own and draws on its parent's; a root without one has no end.
//
// Three values keep this: Tree is what was configured, Ledger what is held now, History what was used, decayed. All are
// plain values without a clock. Times are in seconds, amounts are whole GPUs, nodes, CPUs and MiB.
package quota
