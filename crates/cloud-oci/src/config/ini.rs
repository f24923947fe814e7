//! Parses the format of `~/.oci/config`: sections with keys and values, like Python's `configparser` without interpolation.

use std::fmt;

/// A parsed file.
#[derive(Debug)]
pub(super) struct Ini {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    name: String,
    entries: Vec<Entry>,
}

/// One `key = value`; `Debug` does not show the value, which may be a passphrase.
#[derive(Clone)]
pub(super) struct Entry {
    key: String,
    pub(super) value: String,
    pub(super) line: usize,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in line {}", self.key, self.line)
    }
}

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) what: String,
}

const DEFAULT: &str = "DEFAULT";

impl Ini {
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let mut sections: Vec<Section> = Vec::new();
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let text = text.trim();
            let wrong = |what: String| Err(Wrong { line, what });
            if text.is_empty() || text.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = text.strip_prefix('[') {
                // Text after the last bracket is ignored.
                let named = name.rsplit_once(']').filter(|(name, _)| !name.is_empty());
                let Some((name, _)) = named else {
                    return wrong("a profile is [NAME] on a line of its own".to_owned());
                };
                if sections.iter().any(|section| section.name == name) {
                    return wrong(format!("duplicate profile [{name}]; remove one"));
                }
                sections.push(Section { name: name.to_owned(), entries: Vec::new() });
                continue;
            }
            let Some((key, value)) = text.split_once(['=', ':']) else {
                return wrong("neither [profile] nor key=value".to_owned());
            };
            let Some(section) = sections.last_mut() else {
                return wrong("a key before the first [profile]; add [DEFAULT] above".to_owned());
            };
            let key = key.trim().to_ascii_lowercase();
            if section.entries.iter().any(|entry| entry.key == key) {
                return wrong(format!("duplicate key {key} in [{}]; remove one", section.name));
            }
            section.entries.push(Entry { key, value: value.trim().to_owned(), line });
        }
        Ok(Self { sections })
    }

    /// The names of the profiles.
    pub(super) fn names(&self) -> Vec<&str> {
        self.sections.iter().map(|section| section.name.as_str()).collect()
    }

    /// True if the profile exists; `DEFAULT` always does.
    pub(super) fn has(&self, profile: &str) -> bool {
        profile == DEFAULT || self.section(profile).is_some()
    }

    /// True if the profile itself sets the key.
    pub(super) fn has_own(&self, profile: &str, key: &str) -> bool {
        let section = self.section(profile);
        section.is_some_and(|section| section.entries.iter().any(|entry| entry.key == key))
    }

    /// The value of a profile, or else of `DEFAULT`. An empty value counts as unset.
    pub(super) fn get(&self, profile: &str, key: &str) -> Option<&Entry> {
        let of = |name| self.section(name)?.entries.iter().find(|entry| entry.key == key);
        of(profile).or_else(|| of(DEFAULT)).filter(|entry| !entry.value.is_empty())
    }

    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_or_refused_by_line(text in "(\\PC{0,12}[=:\\[\\]\n#]{0,2}){0,12}") {
            match Ini::parse(&text) {
                Ok(ini) => prop_assert!(ini.names().iter().all(|name| ini.has(name))),
                Err(wrong) => prop_assert!((1..=text.lines().count()).contains(&wrong.line)),
            }
        }
    }

    #[test]
    fn profiles_inherit_what_they_do_not_say() {
        let ini = Ini::parse(
            "# made by hand\n[DEFAULT]\nUser = u\nregion: r # not a comment\nempty=\n\n[other]\nuser=o\n",
        )
        .unwrap();
        let get = |profile, key| ini.get(profile, key).map(|e| (e.value.as_str(), e.line));
        assert_eq!(get("DEFAULT", "user"), Some(("u", 3)));
        assert_eq!(get("other", "user"), Some(("o", 8)));
        assert_eq!(get("other", "region"), Some(("r # not a comment", 4)));
        assert_eq!(get("other", "empty"), None);
        assert_eq!(ini.names(), ["DEFAULT", "other"]);
        assert!(!ini.has("third"));
    }

    #[test]
    fn a_comment_behind_a_profile_is_ignored() {
        // As in Python 3.
        let table = [
            ("[DEFAULT] # ours", "DEFAULT"),
            ("[DEFAULT];x", "DEFAULT"),
            ("[a] b", "a"),
            ("[a]=1", "a"),
            ("[a]]", "a]"),
            ("[a] [b] c", "a] [b"),
            ("[ a ]", " a "),
        ];
        for (line, name) in table {
            let ini = Ini::parse(&format!("{line}\nuser=u\n")).unwrap();
            assert_eq!(ini.names(), [name], "{line}");
            assert_eq!(ini.get(name, "user").map(|entry| entry.line), Some(2), "{line}");
        }
    }

    #[test]
    fn debug_output_does_not_show_a_passphrase() {
        let shown = format!("{:?}", Ini::parse("[DEFAULT]\npass_phrase=hunter2\n"));
        assert!(shown.contains("pass_phrase") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_told_by_line() {
        let table = [
            ("[a", 1, "on a line of its own"),
            ("[]", 1, "on a line of its own"),
            ("[a]\nuser\n", 2, "neither"),
            ("user=u", 1, "before the first"),
            ("[a]\nuser=u\nUSER=v", 3, "duplicate key user in [a]"),
            ("[a]\n[b]\n[a]", 3, "duplicate profile"),
        ];
        for (text, line, what) in table {
            let wrong = Ini::parse(text).unwrap_err();
            assert_eq!(wrong.line, line, "{text}");
            assert!(wrong.what.contains(what), "{}", wrong.what);
        }
    }
}
