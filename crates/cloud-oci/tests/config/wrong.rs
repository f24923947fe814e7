//! What is wrong is told in one sentence with place and remedy.

use crate::config::world::{FINGERPRINT, TENANCY, USER, World, profile};
use cloud_core::{File, Sources};
use cloud_oci::{Config, Overrides};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::SystemTime;

#[test]
#[expect(clippy::too_many_lines, reason = "one row a case")]
fn what_is_wrong_is_told_with_place_and_remedy() {
    let default = Overrides::default();
    let mut open = World::good();
    open.files.get_mut("/h/.oci/key.pem").expect("there").1 = 0o644;
    let legacy = include_str!("../data/key-encrypted-pkcs1-aes256.pem");
    let other = "0".repeat(2);
    let other = vec![other; 16].join(":");
    let table = [
        (
            World::default().refused(&default),
            "no OCI configuration in /h/.oci/config: write one with `oci setup config`, or name \
             another with OCI_CLI_CONFIG_FILE"
                .to_owned(),
        ),
        (
            World::good().with("~/.oci/key.pem", "/gone.pem").refused(&default),
            "/h/.oci/config line 4: key_file /gone.pem is not there: name the file that has it: \
             entity not found"
                .to_owned(),
        ),
        (
            World::good().with(FINGERPRINT, &other).refused(&default),
            format!(
                "/h/.oci/config line 3: fingerprint {other} is not that of /h/.oci/key.pem, which \
                 is {FINGERPRINT}: set the fingerprint or name the other key"
            ),
        ),
        (
            World::good().refused(&profile("prod")),
            "/h/.oci/config: no profile [prod]: choose one of [DEFAULT]".to_owned(),
        ),
        (
            open.refused(&default),
            "/h/.oci/key.pem: key_file can be read by others (mode 644): make the user of this \
             program its owner, and run `chmod 600 /h/.oci/key.pem`"
                .to_owned(),
        ),
        (
            World::good().with("uk-london-1", "uk-lundon-1").refused(&default),
            "/h/.oci/config line 6: unknown region uk-lundon-1: did you mean uk-london-1? for one \
             that this program is too old to know name the domain of its realm, as realm or as \
             OCI_DEFAULT_REALM"
                .to_owned(),
        ),
        (
            World::good().with("user=ocid1", "user=ocid2").refused(&default),
            "/h/.oci/config line 2: user is not an OCID: copy it from the console, it begins with \
             ocid1.user."
                .to_owned(),
        ),
        (
            World::good().with(&format!("tenancy={TENANCY}\n"), "").refused(&default),
            "/h/.oci/config: profile [DEFAULT] has no tenancy: add `tenancy=…`".to_owned(),
        ),
        (
            World::good().with("region=", "region ").refused(&default),
            "/h/.oci/config line 6: neither [profile] nor key=value".to_owned(),
        ),
        (
            World::good().file("/h/.oci/key.pem", legacy).refused(&default),
            "/h/.oci/key.pem: this private key cannot be used: encrypted in OpenSSL's old form; \
             convert it with `openssl pkcs8 -topk8 -v2 aes-256-cbc -in OLD.pem -out NEW.pem`"
                .to_owned(),
        ),
        (
            World::good().variable("OCI_CLI_AUTH", "magic").refused(&default),
            "variable OCI_CLI_AUTH: auth is magic: set api_key, security_token or \
             instance_principal"
                .to_owned(),
        ),
    ];
    for (refused, expected) in table {
        assert_eq!(refused, expected);
    }
}

#[test]
fn the_path_of_an_endpoint_is_refused() {
    for more in ["/oci", "/20160918", "?x=1", "/#part"] {
        let url = format!("https://gw.example:8443{more}");
        assert_eq!(
            World::good().variable("OCI_CLI_ENDPOINT", &url).refused(&Overrides::default()),
            "variable OCI_CLI_ENDPOINT: endpoint is more than a host: \
             write https://gw.example:8443",
            "{more}"
        );
    }
    let world = World::good().variable("OCI_CLI_ENDPOINT", "https://me:secret@gw.example");
    let refused = world.refused(&Overrides::default());
    assert!(refused.ends_with("write https://gw.example"), "{refused}");
    for good in ["https://gw.example:8443", "https://gw.example/"] {
        World::good()
            .variable("OCI_CLI_ENDPOINT", good)
            .load(&Overrides::default())
            .expect("a host");
    }
}

#[test]
fn a_bundle_without_a_certificate_is_named() {
    let key = "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n";
    let cut = "-----BEGIN CERTIFICATE-----\nAQID\n";
    for text in ["", "pem", key, cut] {
        let world = World::good().variable("OCI_CLI_CERT_BUNDLE", "~/ca.pem");
        assert_eq!(
            world.file("/h/ca.pem", text).refused(&Overrides::default()),
            "variable OCI_CLI_CERT_BUNDLE: no certificate in PEM form in /h/ca.pem: name a file \
             that has one",
            "{text}"
        );
    }
}

/// A key of root's alone: with 600 by itself we could not read it either.
#[test]
fn the_remedy_for_a_key_of_another_user_names_owner_and_mode() {
    let closed = |path: &Path| match path.to_str() {
        Some("/h/.oci/key.pem") => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        _config => Ok(File { bytes: World::good().config().into_bytes(), mode: Some(0o640) }),
    };
    let now = SystemTime::UNIX_EPOCH;
    let sources = Sources::new(Some("/h".into()), BTreeMap::new(), closed);
    let refused = Config::load(&sources, &Overrides::default(), now).expect_err("not for us");
    assert_eq!(
        refused.to_string(),
        "/h/.oci/key.pem: key_file cannot be read: make the user of this program its owner, and \
         run `chmod 600 /h/.oci/key.pem`"
    );
}

#[test]
fn a_session_without_a_token_is_refused() {
    let world = World::good().with(&format!("user={USER}"), "security_token_file=/h/token");
    assert_eq!(
        world.file("/h/token", " \n").refused(&Overrides::default()),
        "/h/.oci/config line 2: security_token_file is without a token in /h/token: run `oci \
         session authenticate`"
    );
}

/// On the real file system, with real permissions.
#[test]
fn files_of_the_system_are_read_with_their_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("a directory");
    let world = World::good();
    std::fs::create_dir(home.path().join(".oci")).expect("a directory");
    for (name, mode) in [("config", 0o644), ("key.pem", 0o600)] {
        let (text, _) = world.files.get(&format!("/h/.oci/{name}")).expect("there");
        let path = home.path().join(".oci").join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    }
    let sources = || Sources::of_system(Some(home.path().into()), BTreeMap::new());
    assert!(Config::load(&sources(), &Overrides::default(), SystemTime::UNIX_EPOCH).is_ok());
    let key = home.path().join(".oci/key.pem");
    let load_with = |mode| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("set");
        Config::load(&sources(), &Overrides::default(), SystemTime::UNIX_EPOCH)
    };
    assert!(load_with(0o640).is_ok(), "root's, for the group slurm to read");
    for mode in [0o644, 0o604, 0o660] {
        let refused = load_with(mode).expect_err("others can read it");
        assert!(refused.to_string().contains("chmod 600"), "{mode:o}: {refused}");
    }
    // A key in DER.
    std::fs::write(&key, [0x30, 0x82, 0x04, 0xa4]).expect("written");
    let refused = Config::load(&sources(), &Overrides::default(), SystemTime::UNIX_EPOCH)
        .expect_err("not PEM");
    let why = std::error::Error::source(&refused).expect("a cause").to_string();
    assert!(refused.to_string().ends_with("this private key cannot be used"), "{refused}");
    assert!(why.contains("openssl pkey -inform DER"), "{why}");
}
