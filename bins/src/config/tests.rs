use super::*;
use std::time::Duration;

fn errors(text: &str) -> Vec<String> {
    let errors = Settings::read("startnode.yaml", text).unwrap_err();
    errors.iter().map(|error| error.to_string().lines().next().unwrap().to_owned()).collect()
}

fn settings(text: &str) -> Settings {
    let loaded = Settings::read("startnode.yaml", text).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.settings
}

#[test]
fn every_citc_file_is_read_as_it_is() {
    let six = "csp: oracle\nregion: uk-london-1\ncompartment_id: ocid1.c\nvcn_id: ocid1.v\nsubnet_id: ocid1.s\n\
        ad_root: \"TnMx:UK-LONDON-1-AD-\"\nansible_repo: x\nansible_branch: 6\ncluster_id: cheerful-macaw\nmgmt_image_id: ocid1.i\n";
    let two = "region: uk-london-1\ncompartment_id: ocid1.c\nvcn_id: ocid1.v\nad_root: X-AD-\n";
    let openstack = "csp: openstack\nnetwork_id: a\nceph_network: b\nsecurity_group: g\nnetwork_name: net\n\
        cluster_id: useful-gnu\nansible_branch: openstack\nansible_repo: x\n";
    let aws = "csp: aws\nregion: eu-west-1\nsubnet: subnet-1\ncompute_security_group: sg-1\n\
        dns_zone: useful-gnu.citc.local.\ndns_zone_id: Z1\ncluster_id: useful-gnu\nansible_branch: 6\nansible_repo: x\n";
    let aws = settings(aws);
    assert_eq!(aws.cloud.describe().batch, 1, "CitC's machines are told their names by their tags");
    assert_eq!(settings(six).cluster_id.as_deref(), Some("cheerful-macaw"));
    let old = settings(two);
    assert_eq!(old.cluster_id, None);
    assert!(format!("{:?}", old.cloud).contains("auth: ConfigFile"), "{:?}", old.cloud);
    let cloud = format!("{:?}", settings(openstack).cloud);
    assert!(cloud.contains(r#"networks: ["a", "b"]"#), "{cloud}");
    assert!(cloud.contains(r#"security_groups: ["g"]"#), "{cloud}");
}

#[test]
fn all_errors_are_reported_together() {
    let text = "csp: oracle\nauth: magic\nelastic: {concurrency: 0, cooldown: soon}\nfallback: 3\n";
    let expected = [
        "startnode.yaml:1:1: startnode.yaml: missing key \"compartment_id\"",
        "startnode.yaml:2:7: auth: expected one of config_file, instance_principal, found \"magic\"",
        "startnode.yaml:3:24: concurrency: expected a whole number from 1 to 1024, found 0",
        "startnode.yaml:3:37: cooldown: expected a time such as 90, 90s, 15m or 2h, found \"soon\"",
        "startnode.yaml:4:11: fallback: expected a list, found 3",
    ];
    let found = errors(text);
    assert_eq!(found, expected, "{found:#?}");
}

#[test]
fn an_unknown_cloud_is_refused() {
    let found = errors("csp: google\nregion: x\n");
    assert!(
        found.contains(
            &"startnode.yaml:1:6: csp: expected one of oracle, openstack, aws, found \"google\""
                .to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_known() {
    let loaded = Settings::read("s.yaml", "compartment_id: c\nclutser_id: x\n").unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with(
            "s.yaml:2:1: s.yaml: unknown key \"clutser_id\"; did you mean \"cluster_id\"?"
        ),
        "{warnings:?}"
    );
}

#[test]
fn an_unknown_key_of_our_own_mappings_is_a_warning() {
    let text =
        "compartment_id: c\nelastic: {cooldwon: 5m}\nfallback: [{shap: x, ad: 2}]\ncolour: red\n";
    let loaded = Settings::read("s.yaml", text).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    let lines: Vec<&str> = warnings.iter().filter_map(|text| text.lines().next()).collect();
    let expected = [
        "s.yaml:2:11: elastic: unknown key \"cooldwon\"; did you mean \"cooldown\"?",
        "s.yaml:3:13: fallback: unknown key \"shap\"; did you mean \"shape\"?",
        "s.yaml:4:1: s.yaml: unknown key \"colour\"",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn our_own_keys_are_read() {
    let text = "compartment_id: c\nfallback: [{ad: 2}, {shape: VM.X, zone: z, preemptible: false}]\nrebuild: recreate\n\
        elastic: {concurrency: 4, requests_per_second: 2.5, deadline: 8m, on_partial: keep, cooldown: 90, grace: 2m, stopped: start}\n";
    let settings = settings(text);
    let zone = |zone: &str| Some(zone.to_owned());
    let expected = [
        Fallback { zone: zone("2"), ..Fallback::default() },
        Fallback { shape: Some("VM.X".to_owned()), zone: zone("z"), preemptible: Some(false) },
    ];
    assert_eq!(settings.fallback, expected);
    assert_eq!(settings.rebuild, RebuildHow::Recreate);
    assert_eq!(settings.elastic.deadline, Some(Duration::from_mins(8)));
    assert_eq!(settings.elastic.requests_per_second, Some(2.5));
    assert_eq!(settings.elastic.cooldown, Some(Duration::from_secs(90)));
    assert_eq!(settings.elastic.grace, Some(Duration::from_mins(2)));
}

#[test]
fn a_budget_is_read_exactly_and_its_errors_have_their_place() {
    let text = "compartment_id: c\nbudget: {per_day: 99.50, per_month: 2000, warn_at: 75%}\n\
        notify: [{webhook: 'https://hooks.example/T0/hunter2', on: [budget, leak]}, {webhook: x}]\n";
    let settings = settings(text);
    let budget = settings.budget.budget().unwrap();
    let shown = [budget.per_day, budget.per_month].map(|limit| limit.unwrap().to_string());
    assert_eq!((shown, budget.warn_at), (["99.50".to_owned(), "2000.00".to_owned()], 75));
    let topics: Vec<usize> = settings.notify.iter().map(|one| one.on.len()).collect();
    assert_eq!(topics, [2, 4], "all of them if none is named");
    assert!(!format!("{settings:?}").contains("hunter2"), "an address is a secret");
    let loaded = Settings::read(
        "x",
        "compartment_id: c\nnotify: [{webhook: 'https://h/hunter2', onn: []}]\n",
    );
    let warning = loaded.unwrap().warnings.first().unwrap().to_string();
    assert!(warning.contains("webhook: 'https://*********', onn"), "{warning}");
    let found =
        errors("compartment_id: c\nbudget: {per_day: much, per_month: -1, warn_at: 120%}\n");
    let expected = [
        "startnode.yaml:2:19: per_day: expected an amount such as 250 or 99.50, found \"much\"",
        "startnode.yaml:2:36: per_month: expected an amount such as 250 or 99.50, found -1",
        "startnode.yaml:2:49: warn_at: expected a percentage from 1% to 100%, found \"120%\"",
    ];
    assert_eq!(found, expected, "{found:#?}");
    let found = errors("compartment_id: c\nnotify: [{webhook: x, on: [budgte]}]\n");
    let expected = "startnode.yaml:2:28: on: expected one of capacity, leak, budget, rollback, found \"budgte\"";
    assert_eq!(found, [expected]);
}

#[test]
fn a_restart_command_as_one_text_is_split_into_words() {
    let words = ["systemctl", "restart", "slurmctld"];
    for text in ["systemctl restart slurmctld", "[systemctl, restart, slurmctld]"] {
        let settings = settings(&format!("compartment_id: c\nrestart_command: {text}\n"));
        assert_eq!(settings.paths.restart, words, "{text}");
    }
    let spaced = settings("compartment_id: c\nrestart_command: ['/opt/my tools/x']\n");
    assert_eq!(spaced.paths.restart, ["/opt/my tools/x"]);
}

#[test]
fn an_empty_compartment_is_reported_as_missing() {
    for (text, place) in [("''", "2:17"), ("", "1:1"), ("null", "1:1")] {
        let found = errors(&format!("csp: oracle\ncompartment_id: {text}\n"));
        let expected =
            format!("startnode.yaml:{place}: startnode.yaml: missing key \"compartment_id\"");
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn a_misspelt_key_is_shown_beside_the_one_that_is_missing() {
    let found = errors("csp: oracle\ncompartmnt_id: x\n");
    let expected = [
        "startnode.yaml:1:1: startnode.yaml: missing key \"compartment_id\"",
        "startnode.yaml:2:1: startnode.yaml: unknown key \"compartmnt_id\"; did you mean \"compartment_id\"?",
    ];
    assert_eq!(found, expected);
    let found = errors("csp: opnstack\nnetworks: [a]\n");
    assert!(!found.iter().any(|line| line.contains("networks")), "{found:?}");
}
