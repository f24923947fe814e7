//! Removes secrets from a cloud's messages.

use crate::Secret;
use std::cmp::Reverse;

/// Removes secrets from external text, the longest first: a secret that is a prefix of another would leave the rest of
/// that.
pub(super) fn redacted(text: &str, secrets: &[Secret<String>]) -> String {
    let text: String = text.chars().take(LONGEST).collect();
    let mut all: Vec<&str> = secrets.iter().flat_map(|secret| pieces(secret.expose())).collect();
    all.sort_unstable_by_key(|piece| Reverse(piece.len()));
    let text = all.into_iter().fold(text, |text, piece| text.replace(piece, REDACTED));
    secrets.iter().fold(text, |text, secret| without_echo(&text, secret.expose()))
}

const REDACTED: &str = "[redacted]";

/// Maximum length of a text to show and to search.
const LONGEST: usize = 4096;

/// Minimum length of a part of a secret that is not a coincidence.
const SHORTEST_ECHO: usize = 16;

/// Removes parts of a secret from a text: a cloud may echo the start of a request, or its middle.
fn without_echo(text: &str, secret: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let echo = echoed(rest, secret);
        if echo > 0 {
            shown.push_str(REDACTED);
        } else {
            shown.push(next);
        }
        let (_, after) = rest.split_at_checked(echo.max(next.len_utf8())).unwrap_or((rest, ""));
        rest = after;
    }
    shown
}

/// Number of bytes at the start of a text that are also in the secret; 0 if they are too few to matter.
fn echoed(text: &str, secret: &str) -> usize {
    let is_in = |end: usize| text.get(..end).is_some_and(|start| secret.contains(start));
    let ends = text.char_indices().map(|(at, next)| at + next.len_utf8());
    let mut ends = ends.filter(|end| *end >= SHORTEST_ECHO).take_while(|end| is_in(*end));
    let first = ends.next().unwrap_or_default();
    ends.last().unwrap_or(first)
}

/// The parts of a secret to remove: all of it, its lines, and the text after a scheme such as `Bearer`. Single words are
/// not, because a script shares many with an error.
fn pieces(secret: &str) -> Vec<&str> {
    let lines = || secret.lines().map(str::trim);
    let mut pieces: Vec<&str> = lines().collect();
    if let ([line], Some(last)) = (&pieces[..], secret.split_whitespace().last()) {
        pieces = vec![*line, last];
    }
    pieces.retain(|piece| piece.len() >= SHORTEST_PIECE);
    pieces.extend((!secret.is_empty()).then_some(secret));
    pieces
}

/// Minimum length of a secret.
const SHORTEST_PIECE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_script_stay_in_what_the_cloud_says() {
        let script = "#!/bin/sh\n# no capacity left\nexport TOKEN=hunter2hunter2\n";
        let secrets = [
            Secret::new(script.to_owned()),
            Secret::new("Bearer eyJhbGciOi".to_owned()),
            Secret::new("Signature keyId=\"me\",signature=\"c2lnbmVk\"".to_owned()),
        ];
        for (said, shown) in [
            ("Out of host capacity.", "Out of host capacity."),
            ("Failed to verify the Signature", "Failed to verify the Signature"),
            ("bad token eyJhbGciOi", "bad token [redacted]"),
            ("line 3: export TOKEN=hunter2hunter2", "line 3: [redacted]"),
        ] {
            assert_eq!(redacted(said, &secrets), shown);
        }
        assert_eq!(redacted(&format!("<{script}>"), &secrets), "<[redacted]>");
    }

    #[test]
    fn a_part_of_a_secret_that_the_cloud_echoes_is_redacted() {
        let data = "IyEvYmluL3NoCmV4cG9ydCBUT0tFTj1odW50ZXIyaHVudGVyMgo=";
        let secrets = [Secret::new(data.to_owned())];
        for (said, shown) in [
            (format!("bad user_data: {}...", &data[..30]), "bad user_data: [redacted]..."),
            (format!("bad user_data: ...{}", &data[20..]), "bad user_data: ...[redacted]"),
            (format!("at {}", &data[..10]), "at IyEvYmluL3"),
            ("Out of host capacity.".to_owned(), "Out of host capacity."),
        ] {
            assert_eq!(redacted(&said, &secrets), shown);
        }
    }
}
