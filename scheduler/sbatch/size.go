package sbatch

// finish makes one size of nodes, tasks and GPUs, which sbatch lets people say in many ways.
func (p *parser) finish() {
	r := &p.r
	g := &r.Gang
	p.tasksOfGPUs()
	n := r.wantNodes()
	p.tasksOnNode(n)
	perNode := p.gpusOnNode(n)
	g.Nodes, g.GPUs, g.Ranks = n, perNode, r.perNode
	if perNode == 0 {
		g.Whole = true // nobody said how many: the whole node
	}
	if r.parallel != nil {
		p.shaped(perNode)
	}
	if r.gpuType != "" {
		p.ignored = append(p.ignored, "GPU type "+r.gpuType)
	}
	if r.Error != "" && r.Error != r.Output {
		p.ignored = append(p.ignored, "--error") // both go to the output
	}
	g.ID = "script"
	if err := g.Valid(); err != nil && len(p.faults) == 0 {
		p.fault(0, "options", "%v", err)
	}
	g.ID = ""
}

// tasksOfGPUs makes the number of tasks of --gpus and --gpus-per-task, where neither -n nor --ntasks-per-node says it.
func (p *parser) tasksOfGPUs() {
	r := &p.r
	if r.gpus == 0 || r.gpusPerTask == 0 || r.ntasks > 0 || r.perNode > 0 {
		return
	}
	if r.gpus%r.gpusPerTask != 0 {
		p.fault(0, "--gpus-per-task", "%d GPUs are not whole tasks of %d", r.gpus, r.gpusPerTask)
		return
	}
	r.ntasks = r.gpus / r.gpusPerTask
}

// wantNodes is the number of nodes: that of -N, else the fewest that hold what is asked for in all at so much on each.
func (r *Request) wantNodes() int {
	gpus, perNode := r.gpus, r.gpusPerNode
	if gpus == 0 {
		gpus = r.ntasks * r.gpusPerTask
	}
	if perNode == 0 {
		perNode = r.perNode * r.gpusPerTask
	}
	switch {
	case r.nodes > 0:
		return r.nodes
	case r.ntasks > 0 && r.perNode > 0:
		return ceil(r.ntasks, r.perNode)
	case gpus > 0 && perNode > 0:
		return ceil(gpus, perNode)
	}
	return 1
}

// tasksOnNode makes the tasks of each node. Beside -n, --ntasks-per-node is the most that a node may have.
func (p *parser) tasksOnNode(n int) {
	r := &p.r
	switch {
	case r.ntasks == 0:
	case r.ntasks%n != 0:
		p.fault(0, "--ntasks", "%d tasks are not the same number on each of %d nodes", r.ntasks, n)
	case r.perNode > 0 && r.perNode*n < r.ntasks:
		p.fault(0, "--ntasks", "%d tasks, but %d nodes with %d each", r.ntasks, n, r.perNode)
	default:
		r.perNode = r.ntasks / n
	}
}

// gpusOnNode is the number of GPUs of each node; 0 where nobody said.
func (p *parser) gpusOnNode(n int) int {
	r := &p.r
	perNode := r.gpusPerNode
	if r.gpusPerTask > 0 {
		tasks := max(r.perNode, 1)
		if perNode > 0 && perNode != tasks*r.gpusPerTask {
			p.fault(0, "--gpus-per-task", "%d tasks with %d GPUs each are not the %d GPUs of a node", tasks, r.gpusPerTask, perNode)
		}
		perNode = tasks * r.gpusPerTask
	}
	if r.gpus > 0 {
		if perNode == 0 && r.gpus%n == 0 {
			perNode = r.gpus / n
		}
		if perNode*n != r.gpus {
			p.fault(0, "--gpus", "%d GPUs are not the same number on each of %d nodes", r.gpus, n)
		}
	}
	return perNode
}

func ceil(a, b int) int { return (a + b - 1) / b }
