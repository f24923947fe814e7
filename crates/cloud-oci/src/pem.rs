//! PEM: base64 between two lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// One block of a PEM file.
pub(crate) struct Block {
    /// What stands after `BEGIN`, such as `PRIVATE KEY`.
    pub(crate) label: String,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// True if it is encrypted in OpenSSL's old way, with the cipher in a header.
    pub(crate) legacy_encrypted: bool,
}

/// Every block of a file; what stands around them is left alone, such as the line `OCI_API_KEY`
/// that Oracle's console appends to keys. None if a block makes no sense.
pub(crate) fn blocks(text: &str) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|l| l.strip_suffix("-----"))
        else {
            continue;
        };
        let end = format!("-----END {label}-----");
        let (mut base64, mut legacy_encrypted) = (String::new(), false);
        loop {
            let line = lines.next()?;
            if line == end {
                break;
            }
            if line.contains(':') {
                legacy_encrypted |= line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
            } else {
                base64.push_str(line);
            }
        }
        let bytes = STANDARD.decode(base64).ok()?;
        blocks.push(Block { label: label.to_owned(), bytes, legacy_encrypted });
    }
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,100}", inner in ".{0,100}") {
            let _ = blocks(&text);
            let _ = blocks(&format!("-----BEGIN X-----\n{inner}\n-----END X-----"));
        }
    }

    #[test]
    fn blocks_are_found_among_other_lines() {
        let text = "-----BEGIN A-----\r\nAQ==\r\n-----END A-----\nOCI_API_KEY\n-----BEGIN B-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X\n\nAg==\n-----END B-----";
        let found = blocks(text).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|b| (b.label.as_str(), b.bytes.as_slice(), b.legacy_encrypted))
            .collect();
        assert_eq!(found, [("A", &[1][..], false), ("B", &[2][..], true)]);
        assert!(blocks("-----BEGIN A-----\nAQ==").is_none(), "without an end");
        assert!(blocks("-----BEGIN A-----\n%\n-----END A-----").is_none());
    }
}
