package queue

// A Code says why a job waits, in the word that Slurm uses in squeue, and where Slurm has none, in one like it.
type Code string

// The codes.
const (
	NoReason                 Code = ""
	Resources                Code = "Resources"
	PriorityReason           Code = "Priority"
	DependencyReason         Code = "Dependency"
	DependencyNeverSatisfied Code = "DependencyNeverSatisfied"
	BeginTime                Code = "BeginTime"
	DeadlineReason           Code = "DeadLine"
	JobHeldUser              Code = "JobHeldUser"
	JobHeldAdmin             Code = "JobHeldAdmin"
	JobHoldMaxRequeue        Code = "JobHoldMaxRequeue"
	JobArrayTaskLimit        Code = "JobArrayTaskLimit"
	ReservationReason        Code = "Reservation"
	ReservationDeleted       Code = "ReservationDeleted"
	ReqNodeNotAvail          Code = "ReqNodeNotAvail"
	BadConstraints           Code = "BadConstraints"

	PartitionDown      Code = "PartitionDown"
	PartitionInactive  Code = "PartitionInactive"
	PartitionTimeLimit Code = "PartitionTimeLimit"
	PartitionNodeLimit Code = "PartitionNodeLimit"
	InvalidQOS         Code = "InvalidQOS"
	InvalidAccount     Code = "InvalidAccount"

	QOSMaxJobsPerUserLimit         Code = "QOSMaxJobsPerUserLimit"
	QOSMaxSubmitJobPerUserLimit    Code = "QOSMaxSubmitJobPerUserLimit"
	QOSMaxWallDurationPerJobLimit  Code = "QOSMaxWallDurationPerJobLimit"
	QOSGrpJobsLimit                Code = "QOSGrpJobsLimit"
	QOSGrpSubmitJobsLimit          Code = "QOSGrpSubmitJobsLimit"
	MaxJobsPerAccount              Code = "MaxJobsPerAccount"
	MaxSubmitJobsPerAccount        Code = "MaxSubmitJobsPerAccount"
	AssocGrpJobsLimit              Code = "AssocGrpJobsLimit"
	AssocGrpSubmitJobsLimit        Code = "AssocGrpSubmitJobsLimit"
	AssocMaxJobsLimit              Code = "AssocMaxJobsLimit"
	AssocMaxSubmitJobLimit         Code = "AssocMaxSubmitJobLimit"
	AssocMaxWallDurationPerJob     Code = "AssocMaxWallDurationPerJobLimit"
	AssocQuota                     Code = "AssocQuota" // nominal quota and what can be borrowed; Slurm has none
	JobLaunchFailure               Code = "JobLaunchFailure"
	ReservedForPreemptor           Code = "ReservedForPreemptor"
	qosMax, qosGrp, maxAcct        Code = "QOSMax", "QOSGrp", "Max"
	assocGrp, assocMax             Code = "AssocGrp", "AssocMax"
	perUser, perAccount, perJob    Code = "PerUser", "PerAccount", "PerJob"
	runMinutes, minutes, perJobMax Code = "RunMinutes", "Minutes", "PerJobLimit"
)

// tresCode is the word by which Slurm's codes name a resource.
var tresCode = [...]Code{"GRES", "Node", "Cpu", "Mem"}

// A Reason is a code and one sentence for people: who or what, how many are there, how many are asked.
type Reason struct {
	Code Code
	Text string
}
