//! Configuration, good and bad.

mod world;
mod wrong;

use cloud_core::File;
use cloud_oci::{Mode, Overrides};
use serde_json::Value;
use world::{FINGERPRINT, TENANCY, TOKEN, USER, World, key_id, profile};

#[test]
fn a_good_configuration_is_read() {
    let config = World::good().load(&Overrides::default()).expect("good");
    assert_eq!(key_id(&config), format!("{TENANCY}/{USER}/{FINGERPRINT}"));
    assert_eq!(config.region.expect("set").name(), "uk-london-1");
    assert_eq!(config.tenancy.as_deref(), Some(TENANCY));
    assert!(config.endpoint.is_none());
}

/// What Oracle's SDK and CLI made of the same.
#[test]
fn we_are_who_the_sdk_and_the_cli_say_that_we_are() {
    let seen: Value = serde_json::from_str(include_str!("../data/auth-modes.json")).expect("JSON");
    let sealed = include_str!("../data/key-encrypted-pkcs8-aes256-pbkdf2.pem");
    let encrypted = World::good()
        .with("key_file=", "pass_phrase=throwaway-pass\nkey_file=")
        .file("/h/.oci/key.pem", sealed);
    let session = World::good()
        .with(&format!("user={USER}"), "security_token_file=/h/token")
        .file("/h/token", TOKEN);
    let table = [
        ("encrypted_key_profile", encrypted),
        ("cli_env_only_no_config_file", World::of_variables()),
        ("cli_session_token", session),
    ];
    for (mode, world) in table {
        let ours = key_id(&world.load(&Overrides::default()).expect("good"));
        let theirs = seen[mode]["keyId"].as_str().expect("a name");
        // Tokens are cut in the record.
        match theirs.strip_suffix("...") {
            Some(beginning) => assert!(ours.starts_with(beginning), "{mode}: {ours}"),
            None => assert_eq!(ours, theirs, "{mode}"),
        }
    }
    let changes = [
        ("region", "region=uk-london-1\n", ""),
        ("fingerprint", FINGERPRINT, "zz"),
        ("user", USER, "nope"),
    ];
    for (row, (key, from, to)) in changes.into_iter().enumerate() {
        assert!(seen["invalid_config"][row][0].get(key).is_some(), "{key}");
        let refused = World::good().with(from, to).refused(&Overrides::default());
        assert!(refused.contains(key), "{refused}");
    }
}

#[test]
fn nothing_secret_is_shown() {
    let config = World::good().load(&Overrides::default()).expect("good");
    let shown = format!("{config:?}");
    assert!(!shown.contains(USER) && !shown.contains("BEGIN"), "{shown}");
}

#[test]
fn debug_output_does_not_show_a_key() {
    let file = File { bytes: b"-----BEGIN PRIVATE KEY-----".to_vec(), mode: Some(0o600) };
    assert_eq!(format!("{file:?}"), "File { bytes: 27, mode: Some(384) }");
}

#[test]
fn profiles_inherit_and_an_encrypted_key_takes_its_passphrase() {
    let sealed = include_str!("../data/key-encrypted-pkcs8-aes256-pbkdf2.pem");
    let world = World::good()
        .with(
            "region=",
            "[ENC]\nkey_file=/h/enc.pem\npass_phrase=throwaway-pass\n[DEFAULT2]\nregion=",
        )
        .with("tenancy=", "region=fra\ntenancy=")
        .file("/h/enc.pem", sealed);
    let config = world.load(&profile("ENC")).expect("good");
    assert_eq!(key_id(&config), format!("{TENANCY}/{USER}/{FINGERPRINT}"));
    assert_eq!(config.region.expect("set").name(), "eu-frankfurt-1");
    let by_variable = world.variable("OCI_CLI_PROFILE", "ENC").load(&Overrides::default());
    assert!(by_variable.is_ok());
}

#[test]
fn a_passphrase_is_read_from_the_environment() {
    let sealed = include_str!("../data/key-encrypted-pkcs8-aes256-pbkdf2.pem");
    let world = World::good().file("/h/.oci/key.pem", sealed);
    assert!(
        world.refused(&Overrides::default()).ends_with("set pass_phrase or OCI_CLI_PASSPHRASE")
    );
    let told = world.variable("OCI_CLI_PASSPHRASE", "throwaway-pass");
    let config = told.load(&Overrides::default()).expect("good");
    assert_eq!(key_id(&config), format!("{TENANCY}/{USER}/{FINGERPRINT}"));
}

#[test]
fn variables_go_before_the_file_and_are_enough_without_one() {
    let config = World::good()
        .variable("OCI_CLI_REGION", "phx")
        .variable("OCI_CLI_ENDPOINT", "http://127.0.0.1:8080")
        .load(&Overrides::default())
        .expect("good");
    assert_eq!(config.region.expect("set").name(), "us-phoenix-1");
    assert_eq!(config.endpoint.expect("set").as_str(), "http://127.0.0.1:8080/");
    let config = World::of_variables().load(&Overrides::default()).expect("good");
    assert_eq!(config.region.expect("set").name(), "us-ashburn-1");
}

/// The file that is named goes before the usual one, which goes before `OCI_CONFIG_FILE`.
#[test]
fn of_several_configuration_files_the_first_in_order_is_read() {
    let user = |name: &str| format!("ocid1.user.oc1..{name}");
    let of = |name: &str| World::good().config().replace(USER, &user(name));
    let all = World::good()
        .file("/h/wished", &of("wished"))
        .file("/h/named", &of("named"))
        .file("/h/.oci/config", &of("usual"))
        .file("/h/other", &of("other"))
        .file("/h/.oraclebmc/config", &of("old"))
        .variable("OCI_CLI_CONFIG_FILE", "~/named")
        .variable("OCI_CONFIG_FILE", "~/other");
    let without = |world: &World, path: &str| {
        let mut world = world.clone();
        world.files.remove(path);
        world
    };
    let mut unnamed = all.clone();
    unnamed.variables.remove("OCI_CLI_CONFIG_FILE");
    let unusual = without(&unnamed, "/h/.oci/config");
    let old = without(&unusual, "/h/other");
    let overridden = Overrides { file: Some("/h/wished".into()), ..Overrides::default() };
    for (world, overrides, expected) in [
        (&all, &overridden, "wished"),
        (&all, &Overrides::default(), "named"),
        (&unnamed, &Overrides::default(), "usual"),
        (&unusual, &Overrides::default(), "other"),
        (&old, &Overrides::default(), "old"),
    ] {
        let config = world.load(overrides).expect("good");
        assert_eq!(key_id(&config), format!("{TENANCY}/{}/{FINGERPRINT}", user(expected)));
    }
    let gone = without(&all, "/h/named").refused(&Overrides::default());
    assert!(gone.contains("/h/named"), "what is named is to be there: {gone}");
}

#[test]
fn a_session_signs_with_its_token() {
    let world = World::good()
        .with(&format!("user={USER}"), "security_token_file=/h/token")
        .file("/h/token", &format!("{TOKEN}\n"));
    assert_eq!(key_id(&world.load(&Overrides::default()).expect("good")), format!("ST${TOKEN}"));
    let old = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjF9.c2ln";
    let refused = world.file("/h/token", old).refused(&Overrides::default());
    assert_eq!(
        refused,
        "/h/token: the session has expired, at Thu, 01 Jan 1970 00:00:01 GMT by our clock, which says \
         Fri, 15 Jan 2027 08:00:00 GMT: run `oci session authenticate`, or set the clock"
    );
}

#[test]
fn a_session_can_be_configured_by_variables_alone() {
    let mut world = World::of_variables();
    world.variables.retain(|name, _| name != "OCI_CLI_USER" && name != "OCI_CLI_FINGERPRINT");
    let world = world.variable("OCI_CLI_SECURITY_TOKEN_FILE", "/h/token").file("/h/token", TOKEN);
    assert_eq!(key_id(&world.load(&Overrides::default()).expect("good")), format!("ST${TOKEN}"));
}

#[test]
fn a_session_is_taken_for_who_has_a_key_too_if_the_environment_says_so() {
    let world = World::good()
        .with("key_file=", "security_token_file=/h/token\nkey_file=")
        .file("/h/token", TOKEN);
    let key = key_id(&world.load(&Overrides::default()).expect("good"));
    assert_eq!(key, format!("{TENANCY}/{USER}/{FINGERPRINT}"));
    let session = world.variable("OCI_CLI_AUTH", "security_token");
    assert_eq!(key_id(&session.load(&Overrides::default()).expect("good")), format!("ST${TOKEN}"));
}

/// `oci session authenticate` writes a profile of its own, beside the key that `oci setup config` made.
#[test]
fn a_session_profile_may_inherit_a_user() {
    let session = "[session]\nsecurity_token_file=/h/token\n";
    let world = World::good()
        .with("region=uk-london-1\n", &format!("region=uk-london-1\n{session}"))
        .file("/h/token", TOKEN);
    assert_eq!(key_id(&world.load(&profile("session")).expect("good")), format!("ST${TOKEN}"));
    let key = format!("{TENANCY}/{USER}/{FINGERPRINT}");
    assert_eq!(key_id(&world.load(&Overrides::default()).expect("good")), key);
    let own = world.clone().with(session, &format!("{session}user={USER}\n"));
    assert_eq!(key_id(&own.load(&profile("session")).expect("good")), key);
    let told = world.variable("OCI_CLI_USER", USER);
    assert_eq!(key_id(&told.load(&profile("session")).expect("good")), key);
}

#[test]
fn ids_of_the_first_years_are_accepted() {
    let old = "ocidv1:tenancy:oc1:phx:1460406592660:aaaaaaaa";
    let config = World::good().with(TENANCY, old).load(&Overrides::default()).expect("good");
    assert_eq!(config.tenancy.as_deref(), Some(old));
}

#[test]
fn certificates_to_trust_are_read_where_the_environment_names_them() {
    let world = World::good().variable("OCI_CLI_CERT_BUNDLE", "~/ca.pem");
    let refused = world.refused(&Overrides::default());
    assert!(refused.starts_with("variable OCI_CLI_CERT_BUNDLE: the bundle of certificates"));
    let pem = "# ours\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    let roots = world.file("/h/ca.pem", pem).load(&Overrides::default()).expect("good").roots;
    assert_eq!(roots.as_deref(), Some(pem.as_bytes()));
}

#[test]
fn an_instance_principal_needs_no_file() {
    let overrides = Overrides { mode: Some(Mode::InstancePrincipal), ..Overrides::default() };
    let config = World::default().load(&overrides).expect("good");
    assert_eq!(key_id(&config), "instance http://169.254.169.254/opc/v2");
    assert!(config.region.is_none(), "the metadata service knows");
    let config = World::default()
        .variable("OCI_CLI_AUTH", "instance_principal")
        .variable("OCI_METADATA_BASE_URL", "http://127.0.0.1:1/opc/v2")
        .load(&Overrides::default())
        .expect("good");
    assert_eq!(key_id(&config), "instance http://127.0.0.1:1/opc/v2");
}

#[test]
fn a_region_that_nobody_knows_is_fine_where_no_host_is_made_of_it() {
    let world = World::good().with("uk-london-1", "eu-atlantis-1");
    let overrides =
        Overrides { endpoint: Some("http://127.0.0.1:1".to_owned()), ..Overrides::default() };
    assert!(world.load(&overrides).is_ok());
    let told = Overrides { realm: Some("oraclecloud98.com".to_owned()), ..Overrides::default() };
    let realm = world.variable("OCI_DEFAULT_REALM", "oraclecloud99.com");
    for (overrides, domain) in
        [(Overrides::default(), "oraclecloud99.com"), (told, "oraclecloud98.com")]
    {
        let config = realm.load(&overrides).expect("good");
        assert_eq!(config.region.expect("set").domain(), domain);
    }
}
