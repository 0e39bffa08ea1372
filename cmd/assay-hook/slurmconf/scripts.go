package slurmconf

import (
	"strconv"
	"strings"
)

// scripts looks at Prolog or Epilog, which may be a pattern. Slurm runs what it matches in reverse alphabetical order
// and stops at the first failure; a pattern that matches nothing is itself a failure, and drains.
func (j *judge) scripts(key string, missing Level) {
	v, ok := j.c.Get(key)
	hook := "/usr/libexec/assay/" + strings.ToLower(key)
	if !ok {
		j.add(missing, key, "", "not set: assay is not asked", "set "+key+"="+hook)
		return
	}
	if n := j.c.Count(key); n > 1 {
		j.add(Warning, key, v.Where(), "set "+strconv.Itoa(n)+" times, and Slurm 22.05 takes the last alone", "put the scripts in one directory and name it with a pattern, as /etc/slurm/"+strings.ToLower(key)+".d/*")
	}
	if !strings.HasPrefix(v.Text, "/") {
		j.add(Fault, key, v.Where(), clip(v.Text)+" is not an absolute path: Slurm runs hooks without a PATH, and this fails on every node", "set "+key+"="+hook)
		return
	}
	paths := []string{v.Text}
	if strings.ContainsAny(v.Text, "*?[") {
		if paths = j.sys.Glob(v.Text); len(paths) == 0 {
			j.add(Fault, key, v.Where(), clip(v.Text)+" matches no file, which Slurm takes for a failed "+strings.ToLower(key)+": it drains every node that gets a job", "put the script there before this is in force: ln -s "+hook+" "+linkName(v.Text, key))
			return
		}
	}
	last, ours := "", ""
	for i := len(paths) - 1; i >= 0; i-- {
		last = paths[i]
		if f, ok := j.script(key, v, last, Fault); ok && f.Ours {
			ours = last
		}
	}
	switch {
	case ours == "":
		j.add(missing, key, v.Where(), "none of what it runs is assay's "+strings.ToLower(key), "set "+key+"="+hook+", or link it into the directory that is named")
	case ours != last:
		j.add(Warning, key, v.Where(), "Slurm runs these in reverse alphabetical order, so "+last+" runs after "+ours+" and may fail after assay said yes", "give assay's link the name that comes first in the alphabet, as "+linkName(v.Text, key))
	default:
		j.add(OK, key, v.Where(), "assay's "+strings.ToLower(key)+" runs last: "+ours, "")
	}
}

func linkName(pattern, key string) string {
	return pattern[:strings.LastIndexByte(pattern, '/')+1] + "00-assay-" + strings.ToLower(key)
}

// script looks at one program that slurmd will run as root. ok is false when there is none.
func (j *judge) script(key string, v Value, path string, l Level) (f File, ok bool) {
	if !strings.HasPrefix(path, "/") {
		j.add(l, key, v.Where(), clip(path)+" is not an absolute path: slurmd has no PATH to look in", "give the whole path")
		return f, false
	}
	f, ok = j.sys.Stat(path)
	switch {
	case !ok:
		j.add(l, key, v.Where(), path+" is not there", "put it on every node before this is in force")
	case !f.Regular:
		j.add(l, key, v.Where(), path+" is not a regular file", "move it away")
	case !f.Executable:
		j.add(l, key, v.Where(), path+" cannot be executed, which Slurm takes for a failure (status 127)", "chmod 755 "+path+", or move it away")
	case f.Loose:
		j.add(l, key, v.Where(), path+" is run as root, but somebody else owns it or may write to it", "chown root:root "+path+" && chmod 755 "+path)
	case key != "Prolog" && key != "Epilog":
		j.add(OK, key, v.Where(), path, "")
	}
	return f, ok
}
