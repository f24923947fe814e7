//! Texts that people read, as they were when somebody last reviewed them.
//!
//! After a change, `cargo insta review` shows what is different; without it, `INSTA_UPDATE=always cargo test -p bins` and
//! `git diff`.

/// Compares a text with `snapshots/<name>.snap`.
pub(crate) fn matches(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
