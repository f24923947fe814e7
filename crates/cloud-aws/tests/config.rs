//! Which credentials are used, and what is wrong with them.

use cloud_aws::{Config, Credentials, Overrides};
use cloud_core::{ConfigError, File, Sources};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

const KEY: &str = "aws_access_key_id = AKIDFILE\naws_secret_access_key = wJalr/very+secret\n";

/// Names of variables or files, and what is in them.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Reads the configuration from these variables and files of `/home/slurm`.
fn load_as(
    overrides: &Overrides,
    variables: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Result<Config, ConfigError> {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let home = PathBuf::from("/home/slurm");
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| home.join(name) == path);
        let (_, text) = found.ok_or_else(|| Error::from(ErrorKind::NotFound))?;
        Ok(File { bytes: text.as_bytes().to_vec(), mode: Some(0o644) })
    };
    Config::load(&Sources::new(Some(home.clone()), variables, read), overrides)
}

fn load(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_as(&Overrides::default(), variables, files)
}

/// Whose key it is, or how another is got.
fn who(config: &Config) -> String {
    fn of(credentials: &Credentials) -> String {
        match credentials {
            Credentials::Keys(keys) => keys.id.clone(),
            Credentials::Process(words) => words.join("|"),
            Credentials::AssumeRole(role, source) => format!("{} by {}", role.arn, of(source)),
            Credentials::WebIdentity(role, file) => format!("{} by {}", role.arn, file.display()),
            Credentials::InstanceRole => "the machine".to_owned(),
        }
    }
    of(&config.credentials)
}

const REGION: (&str, &str) = ("AWS_REGION", "eu-west-1");
const ENVIRONMENT: [(&str, &str); 3] =
    [REGION, ("AWS_ACCESS_KEY_ID", "AKIDENV"), ("AWS_SECRET_ACCESS_KEY", "k")];

#[test]
fn credentials_are_found_in_the_order_of_awss_own_tools() {
    let file =
        format!("[default]\n{KEY}[other]\naws_access_key_id=AKIDOTHER\naws_secret_access_key=k\n");
    let files = [(".aws/credentials", file.as_str())];
    let named =
        |profile: &str| Overrides { profile: Some(profile.to_owned()), ..Overrides::default() };
    let usual = Overrides::default();
    let other = [REGION, ("AWS_PROFILE", "other")];
    let web = [REGION, ("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"), ("AWS_ROLE_ARN", "arn:r")];
    let table: [(&Overrides, Pairs<'_>, Pairs<'_>, &str); 7] = [
        (&usual, &ENVIRONMENT, &files, "AKIDENV"),
        (&named("other"), &ENVIRONMENT, &files, "AKIDOTHER"),
        (&usual, &other, &files, "AKIDOTHER"),
        (&usual, &[REGION], &files, "AKIDFILE"),
        (&usual, &web, &files, "AKIDFILE"),
        (&usual, &web, &[], "arn:r by /home/slurm/token"),
        (&usual, &[REGION], &[], "the machine"),
    ];
    for (overrides, variables, files, expected) in table {
        let config = load_as(overrides, variables, files).expect("credentials");
        assert_eq!(who(&config), expected, "{variables:?}");
    }
}

#[test]
fn a_role_is_taken_with_the_credentials_of_its_source() {
    let config = "[default]\nregion = eu-west-2\nrole_arn = arn:a\nsource_profile = base\nexternal_id = x\n\
                  [profile base]\nrole_arn = arn:b\nsource_profile = base\n[profile machine]\nrole_arn = arn:c\n\
                  credential_source = Ec2InstanceMetadata\n[profile tool]\ncredential_process = \"/opt/my tool\" --json\n\
                  [profile web]\nrole_arn = arn:d\nweb_identity_token_file = /run/token\n\
                  [services local]\nec2 =\n  endpoint_url = http://x\n";
    let credentials = format!("[base]\n{KEY}");
    let files = [(".aws/config", config), (".aws/credentials", credentials.as_str())];
    let profile = |name: &str| {
        let overrides = Overrides { profile: Some(name.to_owned()), ..Overrides::default() };
        load_as(&overrides, &[REGION], &files).map(|config| who(&config))
    };
    let default = load(&[], &files).expect("credentials");
    assert_eq!(default.region, "eu-west-2");
    assert_eq!(who(&default), "arn:a by arn:b by AKIDFILE");
    assert_eq!(profile("machine").expect("credentials"), "arn:c by the machine");
    assert_eq!(profile("tool").expect("credentials"), "/opt/my tool|--json");
    assert_eq!(profile("web").expect("credentials"), "arn:d by /run/token");
    let unknown = profile("nobody").expect_err("no such profile").to_string();
    assert!(unknown.contains("no profile 'nobody'") && unknown.contains("machine"), "{unknown}");
}

#[test]
fn a_command_is_split_as_a_shell_does_it() {
    for (command, expected) in [
        ("/opt/tool --json", "/opt/tool|--json"),
        (r#""/opt/my tool" --as="a b"  x"#, "/opt/my tool|--as=a b|x"),
        (r"'/opt/my tool' 'a\b' c\ d", r"/opt/my tool|a\b|c d"),
        (r#"tool "" "say \"x\"""#, "tool||say \"x\""),
    ] {
        let file = format!("[default]\ncredential_process = {command}\n");
        let config = load(&[REGION], &[(".aws/config", file.as_str())]).expect("credentials");
        assert_eq!(who(&config), expected);
    }
}

#[test]
fn keys_may_be_indented_and_names_quoted() {
    let config = "[profile \"my profile\"]\n  region = eu-west-2\n  ec2 =\n    region = nested\n  output = json\n";
    let credentials = format!("[my profile]\n\t{}", KEY.replace('\n', "\n\t"));
    let files = [(".aws/config", config), (".aws/credentials", credentials.as_str())];
    let config = load(&[("AWS_PROFILE", "my profile")], &files).expect("credentials");
    assert_eq!((who(&config).as_str(), config.region.as_str()), ("AKIDFILE", "eu-west-2"));
}

#[test]
fn citcs_key_is_used_where_there_is_no_other() {
    let file = format!("[default]\n{KEY}");
    let last_resort = Some(PathBuf::from("/home/slurm/aws-credentials.csv"));
    let overrides = Overrides { last_resort, ..Overrides::default() };
    let files = [("aws-credentials.csv", file.as_str())];
    let config = load_as(&overrides, &[REGION], &files).expect("credentials");
    assert_eq!(who(&config), "AKIDFILE");
    let nothing = load_as(&overrides, &[REGION], &[]).expect("credentials");
    assert_eq!(who(&nothing), "the machine");
}

#[test]
fn a_key_that_others_can_read_is_a_warning() {
    let file = format!("[default]\n{KEY}");
    let config = load(&[REGION], &[(".aws/credentials", file.as_str())]).expect("credentials");
    assert_eq!(config.warnings.len(), 1);
    assert!(
        config.warnings[0].contains("chmod 600 /home/slurm/.aws/credentials"),
        "{:?}",
        config.warnings
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_without_a_key() {
    let circle =
        "[profile a]\nrole_arn=x\nsource_profile=b\n[profile b]\nrole_arn=x\nsource_profile=a\n";
    let seconds =
        "[default]\nrole_arn=x\ncredential_source=Ec2InstanceMetadata\nduration_seconds=1h\n";
    let table: [(Pairs<'_>, &str, &str); 8] = [
        (&[REGION, ("AWS_EC2_METADATA_DISABLED", "true")], "", "AWS_EC2_METADATA_DISABLED"),
        (&[REGION], seconds, "duration_seconds is not a number"),
        (&[], "", "no region is set"),
        (&[("AWS_REGION", "Mars?")], "", "is not a region"),
        (&[REGION], "[default]\nhunter2\n", ".aws/config:2: not a section"),
        (&[REGION], "[default]\naws_access_key_id = x\n", "go together"),
        (&[REGION, ("AWS_PROFILE", "a")], circle, "circle"),
        (&[REGION, ("AWS_ACCESS_KEY_ID", "x")], "", "AWS_SECRET_ACCESS_KEY is not"),
    ];
    for (variables, file, expected) in table {
        let files: &[(&str, &str)] = if file.is_empty() { &[] } else { &[(".aws/config", file)] };
        let error = load(variables, files).expect_err(expected).to_string();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn nothing_of_a_key_can_be_printed() {
    let file = format!("[default]\n{KEY}");
    let config = load(&[REGION], &[(".aws/credentials", file.as_str())]).expect("credentials");
    assert!(!format!("{config:?}").contains("very+secret"));
}
