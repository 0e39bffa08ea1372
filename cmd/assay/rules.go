package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/strictyaml"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/scheduler/rules"
	"github.com/assay-gpu/assay/scheduler/sbatch"
)

// A ruleKind is one kind of record of the scheduler's rules, with the commands that all kinds have.
type ruleKind struct {
	name, plural string
	example      string // of what create is given
	find         func(rules.File, string) (any, bool)
	fresh        func(name string) any // a pointer to an empty record
	put          func(*rules.File, any)
	list         func(a *app, ctx context.Context, c *client.Client) error
	names        offer
}

func (a *app) ruleCmd(k ruleKind, short string, more ...*cobra.Command) *cobra.Command {
	subs := append([]*cobra.Command{a.ruleListCmd(k), a.ruleShowCmd(k), a.ruleSetCmd(k, true), a.ruleSetCmd(k, false), a.ruleDeleteCmd(k)}, more...)
	return a.groupCmd(k.name, short, fmt.Sprintf("  assay %s list\n  assay %s create %s", k.name, k.name, k.example), subs...)
}

func (a *app) ruleListCmd(k ruleKind) *cobra.Command {
	return a.command(spec{
		use: "list", short: "List " + k.plural, args: cobra.NoArgs, example: "  assay " + k.name + " list",
		run: func(ctx context.Context, c *client.Client, _ []string) error { return k.list(a, ctx, c) },
	})
}

func (a *app) ruleShowCmd(k ruleKind) *cobra.Command {
	return a.command(spec{
		use: "show NAME", short: "Show one " + k.name + " in the form that create and update read", args: cobra.ExactArgs(1), offers: map[string]offer{"NAME": k.names},
		example: fmt.Sprintf("  assay %s show %s", k.name, strings.Fields(k.example)[0]),
		run: func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			r, ok := k.find(f, args[0])
			if !ok {
				return k.missing(args[0])
			}
			return a.emit(r, func() error { return a.yaml(r) })
		},
	})
}

func (k ruleKind) missing(name string) error {
	return &hinted{fmt.Sprintf("%s %s: not found", k.name, clean(name)), fmt.Sprintf("`assay %s list` shows those there are", k.name)}
}

// A hinted error says what to do.
type hinted struct{ text, hint string }

func (e *hinted) Error() string { return e.text }
func (e *hinted) Hint() string  { return e.hint }

// yaml prints a record as the files have it.
func (a *app) yaml(v any) error {
	body, err := json.Marshal(v)
	if err == nil {
		body, err = yaml.JSONToYAML(body)
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	_, err = a.out.Write(body)
	return err
}

func (a *app) ruleSetCmd(k ruleKind, create bool) *cobra.Command {
	verb, short, names := "update", "Change some of what one says", k.names
	if create {
		verb, short, names = "create", "Make a new one", nil
	}
	keys := keysOf(reflect.TypeOf(k.fresh("")).Elem(), "")
	return a.command(spec{
		use: verb + " NAME KEY=VALUE…", short: short, args: cobra.MinimumNArgs(1), offers: map[string]offer{"NAME": names}, keys: settings(keys),
		example: fmt.Sprintf("  assay %s %s %s", k.name, verb, k.example),
		long: fmt.Sprintf(`KEY=VALUE sets one thing, KEY= sets it back, and of a list KEY+=VALUE adds and KEY-=VALUE takes away. Keys:

  %s

What was running goes on. What waits is judged by the new rules at once.`, strings.Join(wrapped(keys, 100), "\n  ")),
		run: func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			record := k.fresh(args[0])
			have, ok := k.find(f, args[0])
			switch {
			case ok && create:
				return &hinted{fmt.Sprintf("%s %s: there is one", k.name, clean(args[0])), fmt.Sprintf("`assay %s update %s …` changes it", k.name, clean(args[0]))}
			case !ok && !create:
				return k.missing(args[0])
			case ok:
				reflect.ValueOf(record).Elem().Set(reflect.ValueOf(have))
			}
			if err := assign(record, args[1:], a.now().Local()); err != nil {
				return err
			}
			var want rules.File
			k.put(&want, reflect.ValueOf(record).Elem().Interface())
			after, err := c.SetRules(ctx, want)
			if err != nil {
				return err
			}
			made, _ := k.find(after, args[0])
			return a.emit(made, func() error { return a.yaml(made) })
		},
	})
}

func (a *app) ruleDeleteCmd(k ruleKind) *cobra.Command {
	return a.command(spec{
		use: "delete NAME…", short: "Delete " + k.plural, args: cobra.MinimumNArgs(1), offers: map[string]offer{"NAME": k.names}, example: fmt.Sprintf("  assay %s delete %s", k.name, strings.Fields(k.example)[0]),
		long: "One that jobs which wait or run still need is kept, and that is said.",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			for _, name := range args {
				if _, err := c.DropRule(ctx, k.name, name); err != nil {
					return err
				}
				fmt.Fprintf(a.err, "%s %s deleted\n", k.name, clean(name))
			}
			return nil
		},
	})
}

// keysOf lists what of a record can be set, a section's parts after a dot.
func keysOf(t reflect.Type, prefix string) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			keys = append(keys, keysOf(f.Type, name+".")...)
		} else if name != "name" {
			keys = append(keys, name)
		}
	}
	return keys
}

// settings are keys as they are typed: each with its =.
func settings(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k + "="
	}
	return out
}

// wrapped puts words into lines of at most width.
func wrapped(words []string, width int) (lines []string) {
	line := ""
	for _, w := range words {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(lines, line)
}

// plain is what YAML takes for a number or a truth value.
var plain = regexp.MustCompile(`^[A-Za-z0-9.+-]+$`)

// assign sets what KEY=VALUE pairs say in the record that v points to. Times of day are by the clock of now.
func assign(v any, pairs []string, now time.Time) error {
	keys := keysOf(reflect.TypeOf(v).Elem(), "")
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		op := ""
		if n := len(key) - 1; n > 0 && (key[n] == '+' || key[n] == '-') {
			key, op = key[:n], key[n:]
		}
		if !ok || !slices.Contains(keys, key) {
			return &usageError{fmt.Sprintf("%q: want KEY=VALUE", clean(pair)), "keys are " + strings.Join(keys, " ")}
		}
		if err := assignOne(fieldOf(reflect.ValueOf(v).Elem(), strings.Split(key, ".")), key, op, value, now); err != nil {
			return err
		}
	}
	return nil
}

func fieldOf(v reflect.Value, path []string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") != path[0] {
			continue
		}
		if len(path) == 1 {
			return v.Field(i)
		}
		return fieldOf(v.Field(i), path[1:])
	}
	panic("assay: no field " + path[0]) // its name came from keysOf
}

func assignOne(f reflect.Value, key, op, value string, now time.Time) error {
	isList := f.Kind() == reflect.Slice
	if op != "" && !isList {
		return &usageError{fmt.Sprintf("%s%s=: it is no list", key, op), "set it with " + key + "=VALUE"}
	}
	if value == "" {
		f.SetZero()
		return nil
	}
	if f.Type() == reflect.TypeFor[time.Time]() {
		t, err := sbatch.ParseWhen(value, now)
		if err != nil {
			return &usageError{key + ": " + err.Error(), ""}
		}
		f.Set(reflect.ValueOf(t))
		return nil
	}
	into := reflect.New(f.Type())
	text := strconv.Quote(value)
	switch kind := f.Type(); {
	case isList:
		var items []string
		for item := range strings.SplitSeq(value, ",") {
			items = append(items, strconv.Quote(item))
		}
		text = "[" + strings.Join(items, ", ") + "]"
	case kind.Kind() == reflect.Pointer, kind.Kind() == reflect.Bool, kind.Kind() == reflect.Int:
		if plain.MatchString(value) {
			text = value
		}
	}
	if err := strictyaml.Decode(key, []byte(text), into.Interface()); err != nil {
		return &usageError{err.Error(), ""}
	}
	if isList && op != "" {
		f.Set(merged(f, into.Elem(), op == "+"))
		return nil
	}
	f.Set(into.Elem())
	return nil
}

// merged is a list with others added, or taken away. An item is known by its text, a user by his name.
func merged(have, others reflect.Value, add bool) reflect.Value {
	id := func(v reflect.Value) string {
		if u, ok := v.Interface().(rules.User); ok {
			return u.Name
		}
		return fmt.Sprint(v.Interface())
	}
	known := map[string]bool{}
	for i := range others.Len() {
		known[id(others.Index(i))] = true
	}
	out := reflect.Zero(have.Type())
	for i := range have.Len() {
		if !known[id(have.Index(i))] {
			out = reflect.Append(out, have.Index(i))
		}
	}
	if add {
		out = reflect.AppendSlice(out, others)
	}
	return out
}

func (a *app) ruleLoadCmd() *cobra.Command {
	var dry bool
	return a.command(spec{
		use: "load FILE", short: "Keep the records of a file: accounts, QOS, partitions, reservations, priority", args: cobra.ExactArgs(1),
		long: `The file has up to five sections: priority, qos, accounts, partitions, reservations. Each record takes the place of the one
of its name; those that the file does not name stay. A file with a fault is refused whole, with all of them.`,
		example: "  assay account dump > rules.yaml\n  assay account load rules.yaml",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "only check the file against what is kept")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return &usageError{err.Error(), "`assay account dump` prints a file to begin with"}
			}
			var f rules.File
			if err := strictyaml.Decode(args[0], data, &f); err != nil {
				return &usageError{err.Error(), "nothing was changed"}
			}
			have, err := c.Rules(ctx, false)
			if err != nil {
				return err
			}
			if err := rules.NewBook().With(have).With(f).Check(); err != nil {
				return &usageError{err.Error(), "nothing was changed"}
			}
			text := fmt.Sprintf("%s, %s, %s, %s", count(len(f.Accounts), "account"), count(len(f.QOS), "QOS"), count(len(f.Partitions), "partition"), count(len(f.Reservations), "reservation"))
			if dry {
				fmt.Fprintf(a.err, "no fault in %s: %s; dry run, nothing was changed\n", args[0], text)
				return nil
			}
			after, err := c.SetRules(ctx, f)
			if err != nil {
				return err
			}
			return a.emit(after, func() error {
				_, err := fmt.Fprintln(a.out, "kept", text)
				return err
			})
		},
	})
}

func (a *app) ruleDumpCmd() *cobra.Command {
	return a.command(spec{
		use: "dump", short: "Print all records in the form that load reads", args: cobra.NoArgs, example: "  assay account dump > rules.yaml",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			return a.emit(f, func() error { return a.yaml(f) })
		},
	})
}

func (a *app) priorityCmd() *cobra.Command {
	keys := keysOf(reflect.TypeFor[rules.Priority](), "")
	return a.command(spec{
		use: "priority [KEY=VALUE…]", short: "Show or set what makes a job's priority, and how starts are planned", args: cobra.ArbitraryArgs, keys: settings(keys),
		example: "  assay account priority\n  assay account priority fair_share=20000 half_life=14d\n  assay account priority backfill=easy plan_ahead=14d",
		long:    "Keys, as PriorityWeight… and bf_… in slurm.conf:\n\n  " + strings.Join(wrapped(keys, 100), "\n  "),
		run: func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			var p rules.Priority
			if f.Priority != nil {
				p = *f.Priority
			}
			if len(args) > 0 {
				if err := assign(&p, args, a.now().Local()); err != nil {
					return err
				}
				if _, err := c.SetRules(ctx, rules.File{Priority: &p}); err != nil {
					return err
				}
			}
			p = p.Filled()
			return a.emit(p, func() error { return a.yaml(p) })
		},
	})
}
