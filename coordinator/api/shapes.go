package api

import (
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A shape is what an endpoint reads and answers, as the schema publishes it. Body and answer are values of the types; nil:
// none. The router holds each answer, and each body it decodes, to it.
type shape struct {
	does   string
	body   any
	answer any
	query  []param
	stream bool // one JSON value a line
	bytes  bool // a file goes in or comes out
}

type param struct{ name, kind, text string }

var (
	pages   = []param{{"limit", "integer", "items of one page, 1 to 10000, by their keys; absent: the whole list"}, {"continue", "string", "the header " + wire.ContinueHeader + " of the page before"}}
	reading = append([]param{{"open", "boolean", "the open ones only"}}, pages...)
)

var shapes = map[string]shape{
	"POST " + wire.PathEnroll: {does: "Spend a token for a node's identity", body: wire.Enroll{}, answer: wire.Enrolled{}},

	"GET " + wire.PathStream:     {does: "Desired state, whole after each connect", answer: wire.Desired{}, stream: true},
	"POST " + wire.PathHeartbeat: {does: "Say that the agent lives", body: wire.Heartbeat{}},
	"POST " + wire.PathReports:   {does: "Report what a screen found; answered once it is durable", body: checks.Report{}, answer: wire.ReportAnswer{}},
	"POST " + wire.PathPermit:    {does: "Ask to exit 1 from a prolog", body: wire.PermitAsk{}, answer: wire.PermitAnswer{}},
	"POST " + wire.PathEffects:   {does: "Say how an effect ended", body: wire.EffectResult{}},
	"POST " + wire.PathGangs:     {does: "Say how a launch stands on a node", body: wire.GangStatus{}},

	"GET " + wire.PathFleet:                     {does: "The fleet in numbers", answer: wire.Fleet{}},
	"GET " + wire.PathNodes:                     {does: "Nodes", answer: []wire.Node{}, query: append([]param{{"names", "string", "only these, a hostlist"}}, pages...)},
	"GET " + wire.PathNodes + "/{node}":         {does: "A node", answer: wire.Node{}},
	"GET " + wire.PathNodes + "/{node}/history": {does: "A node's history", answer: []wire.HistoryEntry{}, query: pages},
	"GET " + wire.PathNodes + "/{node}/explain": {does: "Why a node is where it is", answer: wire.Explanation{}},
	"POST " + wire.PathNodes + "/{node}/{verb}": {does: "Order on a node: drain, resume, hold, unhold, retire, rma or repaired", body: wire.NodeVerb{}, answer: wire.Node{}},
	"GET " + wire.PathGuard:                     {does: "Budgets, storms and what is held back", answer: wire.Guard{}},
	"POST " + wire.PathGuard + "/{verb}":        {does: "Order to the guard: freeze, thaw or reset", body: wire.GuardVerb{}, answer: wire.Guard{}},
	"GET " + wire.PathCases:                     {does: "Cases", answer: []wire.Case{}, query: reading},
	"GET " + wire.PathCases + "/{id}":           {does: "A case with its timeline", answer: wire.Case{}},
	"POST " + wire.PathCases + "/{id}/{verb}":   {does: "Order on a case: take, give, note, extend or close", body: wire.CaseVerb{}, answer: wire.Case{}},
	"GET " + wire.PathCerts:                     {does: "Certificates", answer: []certificate.Certificate{}, query: pages},
	"GET " + wire.PathCerts + "/{node}":         {does: "A node's certificate", answer: certificate.Certificate{}},
	"GET " + wire.PathPolicy:                    {does: "The policy in force", answer: policy.Policy{}},
	"PUT " + wire.PathPolicy:                    {does: "Put a policy in force", body: policy.Policy{}, answer: policy.Policy{}},
	"GET " + wire.PathRollout:                   {does: "The rollout, if one is on", answer: wire.Rollout{}},
	"POST " + wire.PathRollout:                  {does: "Put a policy in force on a share of the nodes", body: wire.RolloutAsk{}, answer: wire.Rollout{}},
	"POST " + wire.PathRollout + "/{verb}":      {does: "End a rollout: promote or withdraw", body: wire.RolloutVerb{}, answer: policy.Policy{}},
	"GET " + wire.PathLearned:                   {does: "What the nodes of each product show", answer: []policy.Learned{}, query: pages},
	"GET " + wire.PathEvents: {does: "History, oldest first", answer: wire.HistoryEntry{}, stream: true, query: []param{
		{"after", "string", "after this cursor"}, {"last", "integer", "the newest so many"}, {"nodes", "string", "with last: of these nodes, a hostlist"}, {"follow", "boolean", "and then those to come"}}},

	"GET " + wire.PathKeys:              {does: "Keys that certificates are signed with", answer: wire.Keys{}},
	"POST " + wire.PathKeys + "/rotate": {does: "Have another key sign", body: wire.GuardVerb{}, answer: wire.Keys{}},
	"GET " + wire.PathAudit:             {does: "Whether the history that is stored is what was written", answer: wire.Audit{}},
	"GET " + wire.PathDrill:             {does: "The drill under way, or the last", answer: wire.Drill{}},
	"POST " + wire.PathDrill:            {does: "Send a made-up fault through the whole chain", body: wire.DrillAsk{}, answer: wire.Drill{}},
	"POST " + wire.PathEnrolment:        {does: "Make enrolment tokens", body: wire.EnrolAsk{}, answer: []wire.EnrolToken{}},
	"POST " + wire.PathOperators:        {does: "Sign a person's certificate", body: wire.OperatorAsk{}, answer: wire.Enrolled{}},

	"GET " + wire.PathRMA:                 {does: "RMA tickets", answer: []rma.Ticket{}, query: reading},
	"GET " + wire.PathRMA + "/{id}":       {does: "A ticket", answer: rma.Ticket{}},
	"POST " + wire.PathRMA + "/{id}":      {does: "Move a ticket", body: wire.TicketVerb{}, answer: rma.Ticket{}},
	"GET " + wire.PathParts:               {does: "Boards, and where they have been", answer: []rma.Part{}, query: append([]param{{"serials", "string", "only these, by comma"}}, pages...)},
	"GET " + wire.PathLemons:              {does: "Nodes that fail more than others", answer: []rma.Lemon{}, query: pages},
	"GET " + wire.PathEvidence + "/{sum}": {does: "A file of evidence", bytes: true},
	"PUT " + wire.PathKeep + "/{sum}":     {does: "Keep a file of evidence", answer: wire.EvidenceKept{}, bytes: true, query: []param{{"case", "string", "the case's id"}, {"name", "string", "the file's name"}}},
	"PUT " + wire.PathPeer + "/{sum}":     {does: "Keep another control host's copy", bytes: true},
	"GET " + wire.PathPeer + "/{sum}":     {does: "Fetch another control host's copy", bytes: true},

	"GET " + wire.PathJobs:                   {does: "Jobs", answer: []wire.Job{}, query: append([]param{{"all", "boolean", "those that have ended, too"}}, pages...)},
	"POST " + wire.PathJobs:                  {does: "Submit a job", body: wire.JobAsk{}, answer: wire.Job{}},
	"POST " + wire.PathJobs + "/plan":        {does: "Ask where a job would start now", body: wire.JobAsk{}, answer: wire.JobPlan{}},
	"POST " + wire.PathJobs + "/batch":       {does: "Submit many jobs", body: wire.Batch{}, answer: []wire.BatchAnswer{}},
	"GET " + wire.PathJobs + "/{id}":         {does: "A job", answer: wire.Job{}},
	"GET " + wire.PathJobs + "/{id}/logs":    {does: "The ends of what its ranks wrote", answer: wire.JobLogs{}},
	"POST " + wire.PathJobs + "/{id}/{verb}": {does: "Order to a job: cancel, hold, release or requeue", body: wire.JobVerb{}, answer: wire.Job{}},

	"GET " + wire.PathRules:                       {does: "Partitions, QOS, accounts and reservations", answer: rules.File{}, query: []param{{"whole", "boolean", "with what holds where nothing was kept"}}},
	"POST " + wire.PathRules:                      {does: "Keep records in place of those of the same names", body: rules.File{}, answer: rules.File{}},
	"DELETE " + wire.PathRules + "/{kind}/{name}": {does: "Delete a record", answer: rules.File{}},
	"GET " + wire.PathAccounts:                    {does: "Accounts and their users, and how they stand", answer: []wire.Account{}, query: pages},
}
