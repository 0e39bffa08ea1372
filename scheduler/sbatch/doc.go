// Package sbatch reads the job scripts that people have: their #SBATCH lines, and the same options on a command line.
//
// What assay cannot honour is refused, never passed over: a job that asks for a container and gets none has been lied to.
// What does not matter to where and when a gang runs, as mail or a comment, is taken and told.
// Source of the options: sbatch(1) of Slurm 22.05.
package sbatch
