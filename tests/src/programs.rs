//! The programs of a cluster: ours behind scripts that say where the configuration is, and Slurm's.

use crate::release::Release;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The names of ours.
const OURS: [&str; 12] = [
    "startnode",
    "startnode-failed",
    "stopnode",
    "rebuild",
    "finish",
    "resize",
    "reconcile",
    "listnodes",
    "explain",
    "cost",
    "timeline",
    "nodewatch",
];

/// Where the scripts of a cluster are.
/// The text, lines of a shell, is run before ours.
pub(crate) fn write(release: &Release, dir: &Path, before: &str) {
    let config = dir.join("etc/startnode.yaml");
    let config = config.display();
    let links = dir.join("links");
    fs::create_dir_all(&links).expect("a directory of ours");
    // Hard links, as ./install makes them: a program finds the others beside itself, whatever else was built.
    let (built, one) = (program("slurm-elastic"), links.join("slurm-elastic"));
    fs::hard_link(&built, &one)
        .or_else(|_| fs::copy(&built, &one).map(drop))
        .expect("a directory of ours");
    // Nothing more is set for ours: they are to live with what slurmctld gives them.
    let ours = OURS.iter().map(|name| {
        let link = links.join(name);
        fs::hard_link(&one, &link).expect("a directory of ours");
        (*name, format!("{before}exec {} --config {config} \"$@\"", link.display()))
    });
    let mut scripts: BTreeMap<&str, String> = ours.collect();
    let (tree, at) = (release.dir().display(), dir.display());
    let environment = format!(
        "export SLURM_TREE={tree} SLURM_CONF={at}/etc/slurm.conf FATE={at}/fate PATH={tree}/bin:/usr/bin:/bin:/usr/sbin:/sbin\n"
    );
    let machine = include_str!("../slurm/machine");
    let prolog = include_str!("../../packaging/await-nodes");
    for (name, text) in [("machine", machine), ("prolog", prolog)] {
        // A copy, because the user of the cluster may not be allowed to enter the directory of the checkout.
        let script = links.join(name);
        fs::write(&script, text).expect("a directory of ours");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("our own file");
        scripts.insert(name, format!("{environment}exec {} \"$@\"", script.display()));
    }
    // As systemd would: started again whenever it ends, unless somebody has stopped it.
    scripts.insert(
        "slurmctld",
        format!(
            "{environment}while :; do\n  while [ -e {at}/run/stopped ]; do sleep 0.05; done\n  {tree}/sbin/slurmctld -D\n  sleep 0.05\ndone"
        ),
    );
    scripts.insert(
        "restart",
        format!(
            "pid=$(cat {at}/run/slurmctld.pid) && kill $pid && while kill -0 $pid 2>/dev/null; do sleep 0.05; done"
        ),
    );
    for (name, text) in scripts {
        let path = dir.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a directory of ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
}

/// An executable of this workspace, beside the program that runs.
pub(crate) fn program(name: &str) -> PathBuf {
    let own = env::current_exe().expect("this is a program");
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("no {name} beside {}: run cargo build -p bins -p cloud-sim", own.display())
    })
}
