// Package sysfs reads what the kernel shows of the hardware below /sys. It opens no device.
package sysfs
