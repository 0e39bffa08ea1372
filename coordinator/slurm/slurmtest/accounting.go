package slurmtest

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RequireAccounting is Require for a test that wants Options.Accounting.
func RequireAccounting(t testing.TB) {
	t.Helper()
	Require(t)
	for _, tool := range []string{"slurmdbd", "mariadbd", "mariadb-install-db", "my_print_defaults", "sacctmgr", "sshare", "sprio"} {
		if _, err := find(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("no real slurmdbd: %v; install slurmdbd, mariadb-server-core and mariadb-client-core", err)
			}
			t.Skipf("no real slurmdbd: %v; install slurmdbd, mariadb-server-core and mariadb-client-core", err)
		}
	}
}

// databaseConf keeps MariaDB small and quick: what it holds is gone with the test, so nothing has to reach the disk.
const databaseConf = `[mariadbd]
innodb_buffer_pool_size=64M
innodb_log_file_size=16M
innodb_flush_log_at_trx_commit=0
innodb_doublewrite=0
innodb_lock_wait_timeout=900
aria_log_file_size=8M
skip_name_resolve
skip_log_bin
`

// startAccounting makes a database, starts MariaDB and slurmdbd on loopback, and has them know the cluster.
func (c *Cluster) startAccounting() error {
	database, dbd := c.accountingPorts()
	secret := rand.Text()
	files := map[string]string{
		"my.cnf": databaseConf,
		// A user that only this database has: its superuser has no password and cannot be reached over TCP.
		"init.sql": fmt.Sprintf("CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '%s';\nGRANT ALL ON acct.* TO slurm@'127.0.0.1';\n", secret),
		"slurmdbd.conf": strings.Join([]string{
			"AuthType=auth/munge", "AuthInfo=socket=" + c.path("munge.sock"), "DbdHost=localhost", "DbdAddr=127.0.0.1", "DbdPort=" + strconv.Itoa(dbd),
			"SlurmUser=root", "LogFile=" + c.path("log", "slurmdbd.log"), "PidFile=" + c.path("run", "slurmdbd.pid"), "DebugLevel=verbose",
			"StorageType=accounting_storage/mysql", "StorageHost=127.0.0.1", "StoragePort=" + strconv.Itoa(database), "StorageUser=slurm", "StoragePass=" + secret, "StorageLoc=acct",
		}, "\n") + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// --defaults-file must come first.
	own := []string{"--defaults-file=" + c.path("my.cnf"), "--datadir=" + c.path("database"), "--user=root"}
	if _, err := c.Try("mariadb-install-db", append(own, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")...); err != nil {
		return err
	}
	listen := []string{"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(database), "--socket=" + c.path("db.sock"), "--pid-file=" + c.path("run", "mariadbd.pid"), "--init-file=" + c.path("init.sql")}
	if err := c.daemons.start(c, "mariadbd", append(append([]string{"mariadbd"}, own...), listen...), nil); err != nil {
		return err
	}
	if err := until(30*time.Second, func() error { _, err := os.Stat(c.path("db.sock")); return err }); err != nil {
		return fmt.Errorf("mariadbd made no socket: %w", err)
	}
	if err := c.daemons.start(c, "slurmdbd", []string{"slurmdbd", "-D"}, nil); err != nil {
		return err
	}
	return until(30*time.Second, func() error {
		_, err := c.Try("sacctmgr", "--immediate", "add", "cluster", "test")
		return err
	})
}

// accountingPorts are MariaDB's and slurmdbd's.
func (c *Cluster) accountingPorts() (database, dbd int) {
	n := len(c.ports)
	return c.ports[n-2], c.ports[n-1]
}

// Reconfigure changes keys of slurm.conf, or removes those without a value, and starts slurmctld anew: what jobs have used
// goes into the fair share, and priorities are worked out again, when it starts.
func (c *Cluster) Reconfigure(keys map[string]string) {
	c.t.Helper()
	conf := map[string]string{} // the caller's own stays as it was
	maps.Copy(conf, c.opts.Conf)
	maps.Copy(conf, keys)
	c.opts.Conf = conf
	c.StopSlurmctld()
	text, err := c.slurmConf()
	c.must(err)
	c.must(os.WriteFile(c.Conf, []byte(text), 0o644))
	c.StartSlurmctld()
}
