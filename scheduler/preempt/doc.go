// Package preempt decides whom a waiting job pushes out.
//
// Nobody is pushed out unless the job then has a proven place: the same search that places it later is made on a fleet
// without the victims. Victims are whole gangs. They are chosen least in order first, and then only those stay that the
// place needs; where another place, closer together, costs less work, it is taken instead. Who may be pushed out at all,
// and why this ends, is in queue.Contest.
package preempt
