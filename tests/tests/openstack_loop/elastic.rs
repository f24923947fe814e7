//! sbatch, nodes come, the job runs on all of them, nodes go.

use crate::openstack_loop::steps::{part, runs_on};
use e2e::{Addresses, Cluster, OpenStack, in_namespaces};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

/// Jobs of more and more nodes, which come as they are needed and go together.
fn come_and_go(series: &str, addresses: Addresses) {
    let cluster = part("an OpenStack and a Slurm", || {
        Cluster::builder(series)
            .limits("m1.tiny: 32\n")
            .addresses(addresses)
            .suspend_time(3600)
            .start_on_openstack()
    });
    let untold = (addresses == Addresses::Registered).then(|| tell_nothing(&cluster));
    for nodes in [1, 4, 32] {
        part(&format!("a job needs {nodes} nodes"), || runs_on(&cluster, nodes));
    }
    knows_where_nodes_are(&cluster);
    assert!(untold.is_none_or(|path| path.exists()), "Slurm was told\n{}", cluster.story());
    cluster.suspend_after(2);
    part("32 nodes go", || cluster.wait_empty());
    assert_eq!(cluster.site().ever(), 32, "each node had one server");
}

/// Keeps our programs from telling Slurm where nodes are: it has it from the nodes, or not at all.
/// Gives the file that has what they would have told.
fn tell_nothing(cluster: &Cluster<OpenStack>) -> PathBuf {
    let (programs, mute) = (cluster.release().dir().join("bin"), cluster.dir().join("mute"));
    let untold = cluster.dir().join("untold");
    fs::create_dir(&mute).unwrap();
    for program in fs::read_dir(&programs).unwrap().flatten() {
        symlink(program.path(), mute.join(program.file_name())).unwrap();
    }
    let (scontrol, real) = (mute.join("scontrol"), programs.join("scontrol"));
    let script = format!(
        "#!/bin/sh
case \"$*\" in *nodeaddr=*) echo \"$*\" >>{}; exit 0 ;; esac
exec {} \"$@\"
",
        untold.display(),
        real.display()
    );
    fs::remove_file(&scontrol).unwrap();
    fs::write(&scontrol, script).unwrap();
    fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.configure("slurm_bin", mute.display());
    untold
}

fn knows_where_nodes_are(cluster: &Cluster<OpenStack>) {
    let servers = cluster.present().into_iter().map(|server| (server.name, server.address));
    let servers: BTreeMap<_, _> = servers.collect();
    assert_eq!(cluster.node_fields("NodeAddr"), servers, "{}", cluster.story());
}

/// The only release where nodes say where they are because `cloud_reg_addrs` asks them to.
#[test]
fn nodes_register_their_addresses_on_22_05() {
    in_namespaces(|| come_and_go("22.05", Addresses::Registered));
}

#[test]
fn slurm_is_told_addresses_on_26_05() {
    in_namespaces(|| come_and_go("26.05", Addresses::FromStartnode));
}
