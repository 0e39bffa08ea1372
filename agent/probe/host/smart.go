package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/nvme"
)

// An adminCommand is Linux's struct nvme_admin_cmd (include/uapi/linux/nvme_ioctl.h).
type adminCommand struct {
	opcode, flags                            uint8
	_                                        uint16
	namespace, cdw2, cdw3                    uint32
	metadata, addr                           uint64
	metadataLen, dataLen                     uint32
	cdw10, cdw11, cdw12, cdw13, cdw14, cdw15 uint32
	timeout                                  uint32 // ms; 0: the driver's own
	result                                   uint32
}

const (
	ioctlAdmin   = 0xc0484e41 // _IOWR('N', 0x41, struct nvme_admin_cmd)
	getLogPage   = 0x02
	logHealth    = 0x02 // SMART / Health Information
	healthBytes  = 512
	everyNVMe    = 0xffffffff // the controller as a whole
	smartMissing = "not given"
)

// smart asks the controller for its health log, which changes nothing.
func (s System) smart(name string) (string, error) {
	if filepath.Clean(s.Sysfs) != "/sys" {
		return "", fs.ErrNotExist // another machine's files
	}
	if digits := strings.TrimPrefix(name, "nvme"); digits == name || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", fs.ErrNotExist
	}
	fd, err := retry(func() (int, error) { return unix.Open("/dev/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	page := make([]byte, healthBytes)
	c := adminCommand{
		opcode: getLogPage, namespace: everyNVMe, addr: uint64(uintptr(unsafe.Pointer(&page[0]))), dataLen: healthBytes,
		cdw10: logHealth | (healthBytes/4-1)<<16,
	}
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlAdmin, uintptr(unsafe.Pointer(&c)))
	runtime.KeepAlive(page)
	switch {
	case errno != 0:
		return "", errno
	case status != 0:
		return "", fmt.Errorf("get log page: status 0x%x", status)
	}
	return healthText(page), nil
}

// healthText writes the log's fields. Source: NVM Express Base Specification 2.0, 5.16.1.3, figure 207.
func healthText(page []byte) string {
	errors := binary.LittleEndian.Uint64(page[160:])
	if binary.LittleEndian.Uint64(page[168:]) != 0 {
		errors = math.MaxUint64
	}
	return fmt.Sprintf("critical_warning=%d available_spare=%d spare_threshold=%d percentage_used=%d media_errors=%d", page[0], page[3], page[4], page[5], errors)
}

// healthOf is what a disk's health log says. What the kernel or the disk does not offer is not supported; one that may not be
// read from here is unread.
func healthOf(text string, err error) nvme.Health {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.ENODEV):
		return nvme.Health{Have: checks.NotSupported}
	case err != nil:
		return nvme.Health{Err: err.Error(), Refused: errors.Is(err, fs.ErrPermission)}
	}
	v := fields(text)
	if _, ok := v["critical_warning"]; !ok {
		return nvme.Health{Err: smartMissing}
	}
	return nvme.Health{Have: checks.Read, Warning: v["critical_warning"], Spare: v["available_spare"], Threshold: v["spare_threshold"], Used: v["percentage_used"], MediaErrors: v["media_errors"], Age: v["age"]}
}
