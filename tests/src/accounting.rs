//! Slurm's accounting: slurmdbd on a `MariaDB`, both of this test alone.

use crate::cluster::Cluster;
use crate::test_cloud::TestCloud;
use crate::wait::wait;
use slurm_testbed::{Guard, Release as Tree};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// The ports of both, in the network of the scenario.
const DATABASE: u16 = 33_991;
const DAEMON: u16 = 33_992;

/// A slurmdbd and its database, until this value is dropped.
#[derive(Debug)]
pub struct Accounting {
    // Dropped in this order: slurmdbd needs its database.
    _slurmdbd: Guard,
    _database: Guard,
}

impl Accounting {
    /// Starts both, and slurmctld anew with them. Needs the trees that `tests/slurm/fetch slurmdbd-VERSION` makes.
    #[must_use]
    pub fn start<C: TestCloud>(cluster: &Cluster<C>, series: &str) -> Self {
        let database = database(cluster);
        let slurmdbd = slurmdbd(cluster, series);
        cluster.stop_slurmctld("TERM");
        let conf = cluster.dir().join("etc/slurm.conf");
        let text = fs::read_to_string(&conf).expect("our own file");
        let at = cluster.dir().display();
        let lines = format!(
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
             AccountingStoragePort={DAEMON}\nAccountingStoragePass={at}/run/munge"
        );
        let text = text.replace("AccountingStorageType=accounting_storage/none", &lines);
        fs::write(&conf, text).expect("our own file");
        // slurmctld registers its cluster with slurmdbd, and does not start before that is there.
        let listed =
            || cluster.slurm("sacctmgr", &["--noheader", "list", "cluster"]).status.success();
        let log = || cluster.log("slurmdbd.log");
        assert!(wait(|| listed().then_some(())).is_some(), "slurmdbd does not answer\n{}", log());
        // slurmdbd gives the cluster another id than slurmctld has given itself.
        fs::remove_file(cluster.dir().join("state/clustername")).expect("slurmctld has run");
        cluster.start_slurmctld();
        Self { _slurmdbd: slurmdbd, _database: database }
    }
}

fn database<C: TestCloud>(cluster: &Cluster<C>) -> Guard {
    let dir = cluster.dir();
    let (data, at) = (dir.join("database"), dir.display());
    let installed = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--skip-test-db", "--user=root"])
        .arg("--auth-root-authentication-method=normal")
        .arg(format!("--datadir={}", data.display()))
        .output();
    let installed = installed.expect("scripts/setup full installs mariadb-server-core");
    assert!(installed.status.success(), "{installed:?}");
    let init = dir.join("etc/init.sql");
    let user = "'slurm'@'127.0.0.1'";
    let text = format!("CREATE USER {user} IDENTIFIED BY 'slurm';\nGRANT ALL ON *.* TO {user};\n");
    fs::write(&init, text).expect("a directory of ours");
    let mut mariadbd = Command::new("mariadbd");
    mariadbd
        .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve"])
        .arg(format!("--port={DATABASE}"))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={at}/run/mysql"))
        .arg(format!("--pid-file={at}/run/mysql.pid"))
        .arg(format!("--log-error={at}/log/mariadb.log"))
        .arg(format!("--init-file={}", init.display()));
    let guard = Guard::spawn(&mariadbd);
    let ready = || cluster.log("mariadb.log").contains("ready for connections").then_some(());
    assert!(wait(ready).is_some(), "{}", cluster.log("mariadb.log"));
    guard
}

fn slurmdbd<C: TestCloud>(cluster: &Cluster<C>, series: &str) -> Guard {
    let tree = Tree::find(&format!("slurmdbd-{series}"));
    let (at, plugins) = (cluster.dir().display(), tree.plugin_dir());
    let conf = cluster.dir().join("etc/slurmdbd.conf");
    let text = format!(
        "AuthType=auth/munge\nAuthInfo=socket={at}/run/munge\nDbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={DAEMON}\n\
         SlurmUser=root\nPluginDir={}\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n\
         StoragePort={DATABASE}\nStorageUser=slurm\nStoragePass=slurm\nStorageLoc=slurm\n\
         LogFile={at}/log/slurmdbd.log\nPidFile={at}/run/slurmdbd.pid\n",
        plugins.display()
    );
    fs::write(&conf, text).expect("a directory of ours");
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o600)).expect("our own file");
    let slurm_conf = cluster.dir().join("etc/slurm.conf");
    Guard::spawn(tree.daemon("slurmdbd", &slurm_conf).arg("-D"))
}
