// Package timemap knows who is free when: for each node the times at which its GPUs are taken, to the single GPU.
//
// Time is cut into slots: of one minute in the first hour, five minutes in the first day, one hour after. What ends within
// a slot is taken to its end and what starts is taken from its beginning, so an answer is never too early. The question it
// answers is Sweep's: from which slot on are so many nodes free, each for as long as the job may run?
//
// It knows neither switches nor certificates nor jobs. It is pure: slots and claims in, slots out.
package timemap
