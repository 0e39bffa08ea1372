// Package backfill decides who starts now and who starts when.
//
// Plan goes through the jobs in their order. Each is placed now if that takes nothing from a job before it. If not, the
// first thousand jobs, and every gang larger than a leaf, get the earliest start that the running jobs and the jobs before
// them leave, and keep its nodes free from then on; the rest are tried for now, once for each shape. So whatever stands
// behind a job, its start is the same: nobody who comes later makes anybody wait longer. Slurm calls this conservative
// backfill. With EASY only the first job that waits keeps its nodes.
//
// Between two plans the order is frozen, and Update goes through it again with the starts planned before: an event only
// frees nodes, starts a job sooner, or drops a start that can no longer be kept.
//
// The story in files: plan.go what goes in and out, pass.go the walk, time.go when nodes are free, spot.go where a gang
// goes at a given time, why.go what a job waits for. All is pure.
package backfill
