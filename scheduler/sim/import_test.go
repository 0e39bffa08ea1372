package sim

import (
	"reflect"
	"strings"
	"testing"
)

// Headers are those that the traces have; rows are made up.
const (
	alibabaText = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,100,1100,200
p1,6000,12288,1,460,G2|T4,BE,Succeeded,50,90,60
p2,6000,12288,0,0,,LS,Running,50,90,60
p3,6000,12288,8,1000,,LS,Pending,70,,
p4,6000,12288,x,1000,,LS,Running,70,80,75
`
	serenText = `job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
j1,u1,4,32,512,Pretrain,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:20:22+08:00,2023-03-01 01:20:22+08:00,3600,120,115200
j2,u2,1,0,8,Debug,COMPLETED,2023-03-01 00:18:23+08:00,2023-03-01 00:20:22+08:00,2023-03-01 01:20:22+08:00,3600,120,0
`
	kalosText = `job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
j1,u1,1,4,64,100,10,Eval,FAILED,2023-05-01 00:00:00+00:00,2023-05-01 00:00:10+00:00,2023-05-01 00:01:10+00:00,,,60,10,240
`
	heliosText = `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,uA,vcB,16,64,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:10:00,2020-04-01 02:10:00,7200,600
8,uA,vcB,1,4,1,CANCELLED,2020-04-01 00:00:05,,,0,0
`
	phillyText = `[{"status": "Pass", "vc": "v1", "jobid": "application_1", "attempts": [{"start_time": "2017-10-09 07:02:05", "end_time": "2017-10-09 07:12:05",
 "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu3"]}]}, {"start_time": "2017-10-09 08:00:00", "end_time": "2017-10-09 08:05:00", "detail": []}],
 "submitted_time": "2017-10-09 07:01:55", "user": "u1"},
 {"status": "Killed", "vc": "v1", "jobid": "application_2", "attempts": [], "submitted_time": "2017-10-09 07:01:56", "user": "u2"}]`
	swfText = `; Version: 2.2
1 0 5 600 16 -1 -1 20 1200 -1 1 3 4 -1 1 -1 -1 -1
2 60 -1 -1 8 -1 -1 8 1200 -1 0 3 4 -1 1 -1 -1 -1
3 90 0 30 4 -1 -1 -1 -1 -1 1 5 4 -1 1 -1 -1 -1
4 90 0 30
`
)

func TestImporters(t *testing.T) {
	for _, x := range []struct {
		name, text string
		want       []Job
		skipped    map[string]int
	}{
		{"Alibaba: shares, models, what never ran", alibabaText, []Job{
			{ID: 1, Account: "be", Submit: 0, Run: 30, Nodes: 1, Share: 46, Models: []string{"G2", "T4"}},
			{ID: 2, Account: "ls", Submit: 50, Run: 900, Nodes: 1, GPUs: 1},
		}, map[string]int{noGPU: 1, neverRan: 1, unreadable: 1}},
		{"Seren: nodes and GPUs in all", serenText, []Job{{ID: 1, User: "u1", Account: "120", Run: 3600, Nodes: 4, GPUs: 8}}, map[string]int{noGPU: 1}},
		{"Kalos: more columns", kalosText, []Job{{ID: 1, User: "u1", Account: "10", Run: 60, Nodes: 1, GPUs: 4}}, nil},
		{"Helios: times without a zone", heliosText, []Job{{ID: 1, User: "uA", Account: "vcB", Run: 7200, Nodes: 2, GPUs: 8}}, map[string]int{neverRan: 1}},
		{"Philly: attempts", phillyText, []Job{{ID: 1, User: "u1", Account: "v1", Run: 900, Nodes: 2, GPUs: 2}}, map[string]int{neverRan: 1}},
		{"SWF: processors asked, else given", swfText, []Job{
			{ID: 1, User: "u3", Account: "g4", Run: 600, Limit: 1200, Nodes: 3, GPUs: 7},
			{ID: 2, User: "u5", Account: "g4", Submit: 90, Run: 30, Nodes: 1, GPUs: 4},
		}, map[string]int{neverRan: 1, unreadable: 1}},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(x.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Jobs, x.want) || !reflect.DeepEqual(got.Skipped, x.skipped) {
				t.Errorf("jobs %+v\nwant %+v\nleft out %v, want %v", got.Jobs, x.want, got.Skipped, x.skipped)
			}
		})
	}
}

// What is wrong with a file is said with its line, and what is right in it is taken.
func TestFaultsAreNamed(t *testing.T) {
	helios, _, _ := strings.Cut(heliosText, "8,uA")
	for _, x := range []struct {
		name, text string
		jobs       int
		want       []string
	}{
		{"Alibaba", alibabaText + "p5,6000,12288,1,1000,,LS,Running,70,80\np6,1,1,1,1000,,LS,Running,70,80,90\n", 2, []string{
			`line 6: num_gpu "x" is no number`, "line 7: 10 columns, the header has 11", "line 8: deleted at 80, before it was scheduled at 90"}},
		{"Helios", helios + "8,uA,vcB,100,4,1,C,2020-04-01 00:00:00,2020-04-01 00:10:00,2020-04-01 02:10:00,7200,600\n" +
			"9,uA,vcB,8,4,1,C,soon,2020-04-01 00:10:00,2020-04-01 02:10:00,7200,600\n10,uA,vcB,8,4,,C,,,,,\n\"11\n", 1, []string{
			"line 3: 100 GPUs on 1 nodes: a node has at most 32", `line 4: submit_time "soon" is no time`, "line 5: node_num is empty", `line 6: extraneous or missing " in quoted-field`}},
		{"Philly", `[{"submitted_time": "2017-10-09 07:01:55", "attempts": [{"start_time": "2017-10-09 07:02:05", "end_time": "2017-10-09 07:12:05", "detail": [{"gpus": ["g"]}]}]},
			{"submitted_time": null}]`, 1, []string{`job 2 of the list: submitted_time "" is no time`}},
		{"SWF", swfText + "5 90 0 thirty 4 -1 -1 -1 -1 -1 1 5 4 -1 1 -1 -1 -1\n6 90 0 30 0 -1 -1 -1 -1 -1 1 5 4 -1 1 -1 -1 -1\n", 2, []string{
			"line 5: 4 numbers: a line has 18", `line 6: column 4, "thirty", is no number`, "line 7: no processors, neither given (column 5) nor asked (column 8)"}},
		{"our own", "submit,run,nodes,gpus,share\n0,5,1,8,\n0,0,1,8,\n0,5,1,8,50\n0,5,1,,\n", 1, []string{
			"line 3: run is 0: want 1 to 1000000000000000", "line 4: 8 GPUs and a share of 50: want one of the two", "line 5: gpus is empty"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(x.text))
			if err != nil {
				t.Fatal(err)
			}
			var faults []string
			for _, f := range got.Faults {
				faults = append(faults, f.String())
			}
			if len(got.Jobs) != x.jobs || !reflect.DeepEqual(faults, x.want) || got.Skipped[unreadable] != len(x.want) {
				t.Errorf("%d jobs, want %d\n%s", len(got.Jobs), x.jobs, strings.Join(faults, "\n"))
			}
		})
	}
}

// A table that lacks a column is refused with the column's name, and one without a good line with the first bad ones.
func TestWhatATraceLacksIsSaid(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{strings.Replace(serenText, "node_num", "nodes", 1), "line 1: a log of Acme's needs the columns node_num,gpu_num,submit_time,start_time,end_time,user,queue; missing: node_num"},
		{strings.Replace(heliosText, ",start_time,end_time", ",began,ended", 1), "line 1: a log of Helios needs the columns node_num,gpu_num,submit_time,start_time,end_time,user,vc; missing: start_time,end_time"},
		{strings.Replace(alibabaText, "deletion_time", "deleted", 1), "line 1: a task file of Alibaba's with times needs the columns num_gpu,gpu_milli,creation_time,scheduled_time,deletion_time; missing: deletion_time"},
		{"submit,run,nodes,gpus\n1,x,1,8\n", `the trace has no job that could run; line 2: run "x" is no number`},
		{"submit,run,nodes,gpus\n" + strings.Repeat("1,1,0,8\n", 7), "; line 6: nodes is 0: want 1 to 1048576; and 2 more"},
		{"[{},\n 5]", "read a Philly log, job 2, byte 7: json: cannot unmarshal number into Go value of type sim.phillyJob"},
		{"a,b\n1,2\n", "no trace that is known has the columns a,b"},
	} {
		if _, err := Read(strings.NewReader(x.text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v\nwant %s", err, x.want)
		}
	}
	for _, x := range []struct{ text, want string }{
		{"sn,cpu_milli,gpu\na,1,8\n", "missing model"},
		{"sn,gpu,model\na,8,G1\nb,eight,G1\n", `read the node file: line 3: gpu "eight" is no number`},
		{"sn,gpu,model\na,64,G1\n", "line 2: gpu is 64: want 0 to 32"},
	} {
		if _, err := ReadNodes(strings.NewReader(x.text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v\nwant %s", err, x.want)
		}
	}
}

func TestOwnFormComesBack(t *testing.T) {
	a := gangs(t)
	var b strings.Builder
	if err := a.Write(&b); err != nil {
		t.Fatal(err)
	}
	c, err := Read(strings.NewReader(b.String()))
	if err != nil || !reflect.DeepEqual(a, c) {
		t.Errorf("written and read again it is another trace (%v)", err)
	}
}

func TestUnknownTracesAreRefused(t *testing.T) {
	for _, text := range []string{"", "a,b,c\n1,2,3\n", "user,account,submit,run,limit,nodes,gpus,share,models\n", "[{]"} {
		if trace, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %d jobs and no error", text, len(trace.Jobs))
		}
	}
}

// Whatever a file holds, a trace that is read can be run: jobs have nodes, GPUs and a time.
func FuzzRead(f *testing.F) {
	for _, text := range []string{alibabaText, serenText, kalosText, heliosText, phillyText, swfText, "user,account,submit,run,limit,nodes,gpus,share,models\nu,a,0,5,0,1,8,0,\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		last := int64(0)
		for i, j := range trace.Jobs {
			if j.ID != int64(i+1) || j.Submit < last || j.Nodes < 1 || (j.GPUs < 1) == (j.Share < 1) || j.GPUs > 32 || j.Share > 100 || !trace.FillOrder && j.Run < 1 {
				t.Fatalf("%+v", j)
			}
			last = j.Submit
		}
	})
}

// The generator keeps to what was published: means within a tenth over 20,000 jobs.
func TestGeneratorIsCalibrated(t *testing.T) {
	for _, p := range Profiles {
		trace := Generate(p, 20_000, 16_384, 0.8, 3)
		var gpus, work float64
		runs := make([]float64, 0, len(trace.Jobs))
		for _, j := range trace.Jobs {
			size := float64(j.Nodes*j.GPUs) + float64(j.Share)/100
			gpus += size
			work += size * float64(j.Run)
			runs = append(runs, float64(j.Run))
		}
		n := float64(len(trace.Jobs))
		c := class("runs", runs, 0)
		median := runs[len(runs)/2]
		if g := gpus / n; g < p.MeanGPUs*0.9 || g > p.MeanGPUs*1.1 {
			t.Errorf("%s: %.2f GPUs a job, published %.2f", p.Name, g, p.MeanGPUs)
		}
		if median < p.MedianRun*0.9 || median > p.MedianRun*1.1 {
			t.Errorf("%s: median run %.0f s, published %.0f", p.Name, median, p.MedianRun)
		}
		if c.MeanWait < p.MeanRun*0.7 || c.MeanWait > p.MeanRun*1.3 {
			t.Errorf("%s: mean run %.0f s, published %.0f", p.Name, c.MeanWait, p.MeanRun)
		}
		if load := work / 16_384 / float64(trace.Jobs[len(trace.Jobs)-1].Submit); load < 0.72 || load > 0.88 {
			t.Errorf("%s: load %.2f, asked 0.8", p.Name, load)
		}
	}
}
