//! Configuration, good and bad: what is wrong is told in one sentence with place and remedy.
#![expect(clippy::expect_used, reason = "helpers of tests")]

use cloud_oci::{Config, ConfigError, Credentials, File, Mode, Sources, Wish};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

const TENANCY: &str = "ocid1.tenancy.oc1..aaaaaaaathrowawaytenancy";
const USER: &str = "ocid1.user.oc1..aaaaaaaathrowawayuser";
const FINGERPRINT: &str = "15:5e:3d:0c:de:be:3f:05:94:98:f1:2c:5b:d3:ed:82";
const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";

/// Files and variables of a test.
#[derive(Clone, Default)]
struct World {
    files: BTreeMap<String, (String, u32)>,
    variables: BTreeMap<String, String>,
}

impl World {
    /// A home with a good configuration.
    fn good() -> Self {
        let vectors: Value =
            serde_json::from_str(include_str!("data/signing-vectors.json")).expect("JSON");
        let key = vectors.get("private_key_pem_pkcs1").and_then(Value::as_str).expect("a key");
        let config = format!(
            "[DEFAULT]\nuser={USER}\nfingerprint={FINGERPRINT}\nkey_file=~/.oci/key.pem\n\
             tenancy={TENANCY}\nregion=uk-london-1\n"
        );
        Self::default().file("/h/.oci/config", &config).file("/h/.oci/key.pem", key)
    }

    fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), (text.to_owned(), 0o600));
        self
    }

    /// The same with something replaced in the configuration file.
    fn with(self, from: &str, to: &str) -> Self {
        let (text, _) = self.files.get("/h/.oci/config").expect("there").clone();
        assert!(text.contains(from), "{from} is not there");
        self.file("/h/.oci/config", &text.replace(from, to))
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self, wish: &Wish) -> Result<Config, ConfigError> {
        let files = self.files.clone();
        let read = move |path: &Path| {
            let found = files.get(path.to_str().expect("text"));
            let (text, mode) = found.ok_or(io::Error::from(io::ErrorKind::NotFound))?.clone();
            Ok(File { text, mode: Some(mode) })
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        Config::load(&Sources::new(Some("/h".into()), self.variables.clone(), read, now), wish)
    }

    /// The whole chain of the error, as a program prints it.
    fn refused(&self, wish: &Wish) -> String {
        let error = self.load(wish).expect_err("it should be refused");
        let source = error.source().map_or(String::new(), |cause| format!(": {cause}"));
        format!("{error}{source}")
    }
}

fn key_id(config: &Config) -> String {
    match &config.credentials {
        Credentials::Key { key_id, .. } => key_id.expose().clone(),
        Credentials::InstancePrincipal { metadata } => format!("instance {metadata}"),
    }
}

fn profile(name: &str) -> Wish {
    Wish { profile: Some(name.to_owned()), ..Wish::default() }
}

#[test]
fn a_good_configuration_is_read() {
    let config = World::good().load(&Wish::default()).expect("good");
    assert_eq!(key_id(&config), format!("{TENANCY}/{USER}/{FINGERPRINT}"));
    assert_eq!(config.region.expect("set").name(), "uk-london-1");
    assert_eq!(config.tenancy.as_deref(), Some(TENANCY));
    assert!(config.endpoint.is_none());
}

#[test]
fn nothing_secret_is_shown() {
    let config = World::good().load(&Wish::default()).expect("good");
    let shown = format!("{config:?}");
    assert!(!shown.contains(USER) && !shown.contains("BEGIN"), "{shown}");
}

#[test]
fn profiles_inherit_and_an_encrypted_key_takes_its_passphrase() {
    let sealed = include_str!("data/key-encrypted-pkcs8-aes256-pbkdf2.pem");
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
    let by_variable = world.variable("OCI_CLI_PROFILE", "ENC").load(&Wish::default());
    assert!(by_variable.is_ok());
}

#[test]
fn variables_go_before_the_file_and_are_enough_without_one() {
    let config = World::good()
        .variable("OCI_CLI_REGION", "phx")
        .variable("OCI_CLI_ENDPOINT", "http://127.0.0.1:8080")
        .load(&Wish::default())
        .expect("good");
    assert_eq!(config.region.expect("set").name(), "us-phoenix-1");
    assert_eq!(config.endpoint.expect("set").as_str(), "http://127.0.0.1:8080/");
    let mut bare = World::good();
    bare.files.remove("/h/.oci/config");
    let bare = bare
        .variable("OCI_CLI_USER", USER)
        .variable("OCI_CLI_TENANCY", TENANCY)
        .variable("OCI_CLI_FINGERPRINT", FINGERPRINT)
        .variable("OCI_CLI_KEY_FILE", "~/.oci/key.pem")
        .variable("OCI_REGION", "iad");
    let config = bare.load(&Wish::default()).expect("good");
    assert_eq!(config.region.expect("set").name(), "us-ashburn-1");
}

#[test]
fn a_session_signs_with_its_token() {
    let world = World::good()
        .with(&format!("user={USER}"), "security_token_file=/h/token")
        .file("/h/token", &format!("{TOKEN}\n"));
    assert_eq!(key_id(&world.load(&Wish::default()).expect("good")), format!("ST${TOKEN}"));
    let old = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjF9.c2ln";
    let refused = world.file("/h/token", old).refused(&Wish::default());
    assert_eq!(refused, "/h/token: the session has expired: run `oci session authenticate`");
}

#[test]
fn a_session_is_taken_for_who_has_a_key_too_if_the_environment_says_so() {
    let world = World::good()
        .with("key_file=", "security_token_file=/h/token\nkey_file=")
        .file("/h/token", TOKEN);
    let key = key_id(&world.load(&Wish::default()).expect("good"));
    assert_eq!(key, format!("{TENANCY}/{USER}/{FINGERPRINT}"));
    let session = world.variable("OCI_CLI_AUTH", "security_token");
    assert_eq!(key_id(&session.load(&Wish::default()).expect("good")), format!("ST${TOKEN}"));
}

/// `oci session authenticate` writes a profile of its own, beside the key that `oci setup config` made.
#[test]
fn a_session_was_taken_for_a_key_because_all_profiles_inherit_a_user() {
    let session = "[session]\nsecurity_token_file=/h/token\n";
    let world = World::good()
        .with("region=uk-london-1\n", &format!("region=uk-london-1\n{session}"))
        .file("/h/token", TOKEN);
    assert_eq!(key_id(&world.load(&profile("session")).expect("good")), format!("ST${TOKEN}"));
    let key = format!("{TENANCY}/{USER}/{FINGERPRINT}");
    assert_eq!(key_id(&world.load(&Wish::default()).expect("good")), key);
    let own = world.clone().with(session, &format!("{session}user={USER}\n"));
    assert_eq!(key_id(&own.load(&profile("session")).expect("good")), key);
    let told = world.variable("OCI_CLI_USER", USER);
    assert_eq!(key_id(&told.load(&profile("session")).expect("good")), key);
}

#[test]
fn ids_of_the_first_years_were_refused() {
    let old = "ocidv1:tenancy:oc1:phx:1460406592660:aaaaaaaa";
    let config = World::good().with(TENANCY, old).load(&Wish::default()).expect("good");
    assert_eq!(config.tenancy.as_deref(), Some(old));
}

#[test]
fn certificates_to_trust_are_read_where_the_environment_names_them() {
    let world = World::good().variable("OCI_CLI_CERT_BUNDLE", "~/ca.pem");
    let refused = world.refused(&Wish::default());
    assert!(refused.starts_with("variable OCI_CLI_CERT_BUNDLE: the bundle of certificates"));
    let roots = world.file("/h/ca.pem", "pem").load(&Wish::default()).expect("good").roots;
    assert_eq!(roots.as_deref(), Some(&b"pem"[..]));
}

#[test]
fn an_instance_principal_needs_no_file() {
    let wish = Wish { mode: Some(Mode::InstancePrincipal), ..Wish::default() };
    let config = World::default().load(&wish).expect("good");
    assert_eq!(key_id(&config), "instance http://169.254.169.254/opc/v2");
    assert!(config.region.is_none(), "the metadata service knows");
    let config = World::default()
        .variable("OCI_CLI_AUTH", "instance_principal")
        .variable("OCI_METADATA_BASE_URL", "http://127.0.0.1:1/opc/v2")
        .load(&Wish::default())
        .expect("good");
    assert_eq!(key_id(&config), "instance http://127.0.0.1:1/opc/v2");
}

#[test]
fn a_region_that_nobody_knows_is_fine_where_no_host_is_made_of_it() {
    let world = World::good().with("uk-london-1", "eu-atlantis-1");
    let wish = Wish { endpoint: Some("http://127.0.0.1:1".to_owned()), ..Wish::default() };
    assert!(world.load(&wish).is_ok());
    let told = Wish { realm: Some("oraclecloud98.com".to_owned()), ..Wish::default() };
    let realm = world.variable("OCI_DEFAULT_REALM", "oraclecloud99.com");
    for (wish, domain) in [(Wish::default(), "oraclecloud99.com"), (told, "oraclecloud98.com")] {
        let config = realm.load(&wish).expect("good");
        assert_eq!(config.region.expect("set").domain(), domain);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row a case")]
fn what_is_wrong_is_told_with_place_and_remedy() {
    let default = Wish::default();
    let mut open = World::good();
    open.files.get_mut("/h/.oci/key.pem").expect("there").1 = 0o644;
    let legacy = include_str!("data/key-encrypted-pkcs1-aes256.pem");
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
            "/h/.oci/key.pem: key_file can be read by others (mode 644): run \
             `chmod 600 /h/.oci/key.pem`"
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
    let sources =
        || Sources::of_system(Some(home.path().into()), BTreeMap::new(), SystemTime::UNIX_EPOCH);
    assert!(Config::load(&sources(), &Wish::default()).is_ok());
    let key = home.path().join(".oci/key.pem");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("set");
    let refused = Config::load(&sources(), &Wish::default()).expect_err("others can read it");
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
}
