package sim

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// placeLibrary makes DIR/libnvidia-ml.so.1 what the state asks for: a link to the library; a copy without the symbols an
// older driver lacks; or nothing.
func (s State) placeLibrary(dir string) error {
	at := In(dir).Library
	if s.Init == "library_not_found" {
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if len(s.SymbolsMissing) > 0 {
		b, err := os.ReadFile(s.Library)
		if err != nil {
			return err
		}
		if err := hideSymbols(b, s.SymbolsMissing); err != nil {
			return fmt.Errorf("%s: %w", s.Library, err)
		}
		if was, err := os.ReadFile(at); err == nil && slices.Equal(was, b) {
			return nil
		}
		return replace(at, b)
	}
	if to, err := os.Readlink(at); err == nil && to == s.Library {
		return nil
	}
	tmp := at + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(s.Library, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, at)
}

// hideSymbols renames exported symbols of the ELF library in lib, so that dlsym finds them no more: the library of a
// driver that came before them.
func hideSymbols(lib []byte, names []string) error {
	f, err := elf.NewFile(bytes.NewReader(lib))
	if err != nil {
		return err
	}
	section := f.Section(".dynstr")
	if section == nil {
		return errors.New("no .dynstr: not a shared library")
	}
	table := lib[section.Offset : section.Offset+section.Size]
	for _, name := range names {
		i := indexOfName(table, name)
		if i < 0 {
			return fmt.Errorf("it has no symbol %s", name)
		}
		table[i] = 'x' // the hash table still leads here; the name no longer matches
	}
	return nil
}

// indexOfName is where name stands in an ELF string table as a whole string; -1 if it does not.
func indexOfName(table []byte, name string) int {
	for i := 0; i < len(table); {
		end := i
		for end < len(table) && table[end] != 0 {
			end++
		}
		if string(table[i:end]) == name {
			return i
		}
		i = end + 1
	}
	return -1
}

// writeSysfs makes the tree under root show the node's serial and the GPUs on the bus.
func (s State) writeSysfs(root string) error {
	for name, value := range map[string]string{"class/dmi/id/product_serial": s.NodeSerial, "class/dmi/id/sys_vendor": "assay sim"} {
		if err := s.writeFile(root, name, value); err != nil {
			return err
		}
	}
	for i := range s.GPUs {
		if err := s.writePCI(root, i); err != nil {
			return err
		}
	}
	return nil
}
