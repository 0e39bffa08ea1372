package main

// unixTime parses a time as 2026-12-01T06:00:00Z or 2026-12-01T07:00:00+01:00 into seconds since 1970. Package time
// would do it, and cost more at every start of the program than all the hook does. A fraction of a second is
// allowed and dropped.
func unixTime(s string) (int64, bool) {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(s) < len(form)+1 {
		return 0, false
	}
	for i := range len(form) {
		if form[i] == 'd' && (s[i] < '0' || s[i] > '9') || form[i] != 'd' && form[i] != s[i] {
			return 0, false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day := two(0)*100+two(2), two(5), two(8)
	hour, minute, sec := two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || sec > 59 {
		return 0, false
	}
	zone := s[len(form):]
	if zone[0] == '.' {
		n := 1
		for n < len(zone) && zone[n] >= '0' && zone[n] <= '9' {
			n++
		}
		if n == 1 {
			return 0, false
		}
		zone = zone[n:]
	}
	offset := 0
	if zone != "Z" {
		if len(zone) != 6 || zone[0] != '+' && zone[0] != '-' || zone[3] != ':' {
			return 0, false
		}
		for _, i := range [...]int{1, 2, 4, 5} {
			if zone[i] < '0' || zone[i] > '9' {
				return 0, false
			}
		}
		h, m := int(zone[1]-'0')*10+int(zone[2]-'0'), int(zone[4]-'0')*10+int(zone[5]-'0')
		if h > 23 || m > 59 {
			return 0, false
		}
		offset = h*3600 + m*60
		if zone[0] == '-' {
			offset = -offset
		}
	}
	return int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+sec-offset), true
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int) int {
	switch {
	case month == 2 && leap(year):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar; year is 0 to 9999.
func daysSince1970(year, month, day int) int {
	days := day - 1
	for m := 1; m < month; m++ {
		days += daysIn(year, m)
	}
	before := year + 399 // years 1 to year-1 of the calendar, moved up by 400 so that nothing is negative
	return days + before*365 + before/4 - before/100 + before/400 - (719162 + 146097)
}
