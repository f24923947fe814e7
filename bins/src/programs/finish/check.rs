//! Gathers the facts of the preflight checks, and prints the results.

use super::inputs::{self, Inputs};
use crate::alias;
use crate::args::CONFIG;
use crate::config::Settings;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::environment::find_user;
use crate::output::Colour;
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring;
use nix::unistd::{Gid, Uid, User, getgrouplist, getuid};
use provision::Roster;
use provision::budget::spent_by_log;
use provision::preflight::{
    self, Access, Check, CloudFacts, ConfigOwner, Facts, Generated, HostFacts, Section, SlurmFacts,
    Status, UserIds,
};
use serde_json::json;
use slurmconf::NodeDef;
use slurmctl::Controller as _;
use std::ffi::CString;
use std::fs::metadata;
use std::net::ToSocketAddrs as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// The node section that would be written, and whether slurmctld has yet to apply it.
pub(super) struct New {
    pub(super) section: String,
    pub(super) unapplied: bool,
}

/// True if Slurm is configured to rebuild nodes, but not to start and stop them, as in StackHPC's appliance.
pub(super) fn only_rebuilds(context: &Context<'_>, limits: &Path) -> bool {
    let power = &context.slurm.config.power;
    power.reboot_program.is_some()
        && power.resume_program.is_none()
        && power.suspend_program.is_none()
        && context.slurm.config.cloud_nodes().is_empty()
        && !limits.exists()
}

/// Problems of the programs that slurm.conf names, one sentence each.
pub(super) fn programs(context: &Context<'_>) -> Vec<String> {
    let slurm = &context.slurm;
    preflight::program_problems(&slurm.config, slurm.controller.version(), alias_of)
}

fn alias_of(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    let alias = alias::ALL.iter().find(|alias| alias.name == name)?;
    Some((alias.program, alias.arguments))
}

/// Returns whether slurmctld answers. If not, no further request is sent, because each would time out.
pub(super) async fn slurmctld(context: &mut Context<'_>) -> Option<bool> {
    // A missing scontrol is reported elsewhere.
    let answers = context.slurm.controller.ping().await.ok()?;
    if !answers {
        context.slurm.controller =
            wiring::unreachable_controller(context.slurm.controller.version());
    }
    Some(answers)
}

/// The nodes that the limits generate, and the node section that would be written.
pub(super) struct Limits<'a> {
    pub(super) inputs: Option<&'a Inputs>,
    pub(super) new: Option<&'a Result<New, Diagnostic>>,
}

/// Checks everything and prints the results.
pub(super) async fn all(context: &Context<'_>, limits: Limits<'_>, answers: Option<bool>) -> u8 {
    let (slurm, now) = (&context.slurm, SystemTime::now());
    let nodes = limits.inputs.map_or(&[][..], |inputs| &inputs.cluster.nodes);
    let facts = Facts {
        unreadable: unreadable(context, limits.new),
        only_rebuilds: limits.new.is_none(),
        slurm: SlurmFacts {
            conf: &slurm.path,
            config: &slurm.config,
            version: slurm.controller.version(),
            answers,
            running: slurm.controller.config().await.ok(),
            hidden_nodes: context.hidden_nodes_warning(),
            alias: alias_of,
            default_config: CONFIG,
        },
        cloud: cloud(context).await,
        site: &context.site,
        images: wiring::image_rules(context.settings),
        description: context.cloud.describe(),
        generated: limits.inputs.map(|inputs| Generated {
            cluster: &inputs.cluster,
            shapes: &inputs.sizes.0,
            memory: inputs.sizes.1,
            marked: &inputs.marked,
            section: limits.new.and_then(|new| new.as_ref().ok()).map(|new| Section {
                text: new.section.clone(),
                unapplied: new.unapplied,
                unwritable: inputs.marked.rehearse(new.section.as_bytes()).err(),
            }),
        }),
        spent: (
            spent_by_log(&*context.state, &Roster::new(&slurm.config), &context.site, now),
            now,
        ),
        host: host(context, nodes),
    };
    let checks = preflight::run(&facts);
    print(context, &checks);
    let failed = checks.iter().any(|check| check.status == Status::Fail);
    if failed { SOME_FAILED } else { SUCCESS }
}

/// Errors of the files that were read.
fn unreadable(context: &Context<'_>, new: Option<&Result<New, Diagnostic>>) -> Vec<String> {
    let mut texts: Vec<String> =
        context.unread.iter().cloned().chain(inputs::unready(context)).collect();
    if let Some(Err(diagnostic)) = new {
        let mut messages = diagnostic.messages().to_vec();
        // The error may have hidden this one.
        let unmarked = context.slurm.marked_file().err();
        messages.extend(unmarked.iter().flat_map(Diagnostic::messages).cloned());
        messages.dedup();
        // An unreachable cloud is a separate check.
        let unreachable = context.unreachable.as_ref().map(Diagnostic::to_string);
        messages.retain(|text| unreachable.as_ref().is_none_or(|why| !text.contains(why)));
        texts.extend(messages);
    }
    texts
}

async fn cloud(context: &Context<'_>) -> Result<CloudFacts, String> {
    match &context.unreachable {
        Some(why) if why.is_transient() => Err(format!("the cloud does not answer: {why}")),
        Some(why) => Err(why.to_string()),
        None => {
            let mut facts = CloudFacts::observe(&*context.cloud, &context.site).await;
            let text = |found: &Result<String, Diagnostic>| {
                found.clone().map_err(|diagnostic| diagnostic.to_string())
            };
            facts.resources = context.named.iter().map(text).collect();
            Ok(facts)
        }
    }
}

fn host<'a>(context: &'a Context<'a>, nodes: &[NodeDef]) -> HostFacts<'a> {
    let config = context.bootstrap.common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let slurm_user = context.slurm.config.get("SlurmUser").unwrap_or("root");
    let log = Some(context.bootstrap.log_path.as_path()).filter(|log| *log != Path::new("-"));
    let state = context.state_path.as_path();
    let access = find_user(slurm_user).map(account).map(|user| Access {
        state: user.writes_into(state),
        log: log.map_or(Ok(()), |log| user.appends_to(log)),
    });
    HostFacts {
        config,
        config_owner: config_owner(config),
        slurm_user,
        access,
        state,
        log,
        unresolved: unresolved(context.settings, nodes),
        variables: variables(context.settings, |name| {
            context.bootstrap.environment.get(name).is_some()
        }),
        is_root: getuid().is_root(),
    }
}

fn print(context: &Context<'_>, checks: &[Check]) {
    if context.json() {
        let all = checks.iter().map(|it| json!({"state": it.status.as_str(), "what": it.text}));
        context.output.print(json!(all.collect::<Vec<_>>()));
        return;
    }
    for Check { status, text } in checks {
        let colour = match status {
            Status::Ok => Colour::Green,
            Status::Warn => Colour::Yellow,
            Status::Fail => Colour::Red,
        };
        let status = context.output.paint(colour, format_args!("{:<4}", status.as_str()));
        context.output.print(format_args!("{status} {text}"));
    }
}

/// A persistent node whose name cannot be resolved, unless the DNS of the network resolves machines.
fn unresolved(settings: &Settings, nodes: &[NodeDef]) -> Option<String> {
    if settings.cloud.is_in_dns() || settings.paths.hosts.is_some() {
        return None;
    }
    preflight::unresolved(nodes, |name| (name, 0).to_socket_addrs().is_ok())
}

fn config_owner(path: &Path) -> Option<ConfigOwner> {
    let found = metadata(path).ok()?;
    let owner = Uid::from_raw(found.uid());
    let user = User::from_uid(owner).ok().flatten();
    let group = user.as_ref().map_or(Gid::from_raw(found.gid()), |user| user.gid);
    let name = user.map_or_else(|| owner.to_string(), |user| user.name);
    let user = (!owner.is_root()).then_some(name);
    Some(ConfigOwner { mode: found.mode(), user, group: group.to_string() })
}

/// The ids of a user and its groups.
fn account(user: User) -> UserIds {
    let groups = CString::new(user.name).ok();
    let groups = groups.and_then(|name| getgrouplist(&name, user.gid).ok());
    let groups = groups.unwrap_or_else(|| vec![user.gid]);
    UserIds {
        id: user.uid.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
        is_ours: getuid().is_root() || getuid() == user.uid,
    }
}

/// Variables that are set here and that slurmctld does not pass on, with where to set them instead.
fn variables(
    settings: &Settings,
    is_set: impl Fn(&str) -> bool,
) -> Vec<(Vec<&'static str>, String)> {
    let file = &settings.file;
    let all = [
        (proxies(settings), format!("{file} as proxy and no_proxy")),
        settings.cloud.variables(settings),
    ];
    let set = |(mut names, place): (Vec<&'static str>, String)| {
        names.retain(|name| is_set(name));
        (names, place)
    };
    all.into_iter().map(set).collect()
}

fn proxies(settings: &Settings) -> Vec<&'static str> {
    if settings.proxies.https.is_some() {
        return Vec::new();
    }
    vec!["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn a_configuration_of_slurms_user_is_not_roots() {
        // Only root can change the owner.
        if !getuid().is_root() {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(config_owner(file.path()).unwrap().user, None);
        set_permissions(file.path(), Permissions::from_mode(0o744)).unwrap();
        chown(file.path(), Some(12_345), Some(12_346)).unwrap();
        let owner = config_owner(file.path()).unwrap();
        assert_eq!((owner.mode & 0o777, owner.group.as_str()), (0o744, "12346"));
        assert!(owner.user.is_some());
    }

    #[test]
    fn only_variables_that_nothing_in_the_configuration_overrides_matter() {
        let oracle = "compartment_id: c\n";
        let openstack = "csp: openstack\n";
        for (text, variable, matters) in [
            (oracle, "https_proxy", true),
            (oracle, "ALL_PROXY", true),
            ("compartment_id: c\nproxy: http://p:3128\n", "https_proxy", false),
            ("compartment_id: c\nno_proxy: x\n", "https_proxy", true),
            (oracle, "OCI_CLI_PROFILE", true),
            ("compartment_id: c\nprofile: p\n", "OCI_CLI_PROFILE", false),
            (oracle, "OCI_CLI_KEY_FILE", true),
            ("compartment_id: c\nauth: instance_principal\n", "OCI_CLI_KEY_FILE", false),
            (oracle, "OS_CLOUD", false),
            (openstack, "OS_CLOUD", true),
            (openstack, "OS_AUTH_URL", true),
            (openstack, "OS_PASSWORD", false),
            ("csp: openstack\ncloud: c\n", "OS_CLOUD", false),
            ("csp: openstack\ncloud: c\n", "OS_CLIENT_CONFIG_FILE", true),
            (openstack, "PATH", false),
        ] {
            let settings = Settings::read("s.yaml", text).unwrap().settings;
            let found = variables(&settings, |name| name == variable);
            let named: Vec<&str> = found.into_iter().flat_map(|(names, _)| names).collect();
            let expected = if matters { vec![variable] } else { Vec::new() };
            assert_eq!(named, expected, "{text}");
        }
    }
}
