//! A minimal reader of DER, for keys and certificates.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// Reads one element after the other.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The tag and content of the next element. None at the end, or if it is invalid.
    pub(crate) fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            long_length(usize::from(first & 0x7f), rest)?
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element, which must have this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.any()?;
        (found == tag).then_some(content)
    }

    /// The elements of the next one, which must be a sequence.
    pub(crate) fn sequence(&mut self) -> Option<Reader<'a>> {
        self.expect(SEQUENCE).map(Reader::new)
    }

    /// True if the rest is exactly one sequence.
    pub(crate) fn is_one_sequence(mut self) -> bool {
        self.sequence().is_some() && self.0.is_empty()
    }

    /// The next element, which must be a small number.
    pub(crate) fn number(&mut self) -> Option<u32> {
        let bytes = self.expect(INTEGER)?;
        bytes
            .iter()
            .try_fold(0u32, |number, &byte| number.checked_mul(256)?.checked_add(u32::from(byte)))
    }
}

/// Reads a length of this many bytes. Returns it with the rest.
fn long_length(bytes: usize, rest: &[u8]) -> Option<(usize, &[u8])> {
    if !(1..=4).contains(&bytes) {
        return None;
    }
    let (length, rest) = rest.split_at_checked(bytes)?;
    let length = length.iter().try_fold(0usize, |length, &byte| {
        length.checked_mul(256)?.checked_add(usize::from(byte))
    })?;
    Some((length, rest))
}

/// The values of a certificate's subject, in order.
pub(crate) fn subject_values(certificate: &[u8]) -> Option<Vec<String>> {
    let mut signed = Reader::new(certificate).sequence()?.sequence()?;
    let mut ahead = signed;
    if ahead.any()?.0 == 0xa0 {
        signed = ahead; // the version
    }
    signed.expect(INTEGER)?; // serial number
    for _signature_issuer_validity in 0..3 {
        signed.sequence()?;
    }
    let mut subject = signed.sequence()?;
    let mut values = Vec::new();
    while let Some((SET, mut set)) = subject.any().map(|(tag, content)| (tag, Reader::new(content)))
    {
        while let Some(mut attribute) = set.sequence() {
            attribute.expect(OBJECT)?;
            let (_kind_of_string, value) = attribute.any()?;
            values.push(String::from_utf8_lossy(value).into_owned());
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_without_a_panic_and_to_an_end(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut reader = Reader::new(&bytes);
            let mut elements = 0;
            while reader.any().is_some() {
                elements += 1;
            }
            prop_assert!(elements <= bytes.len() / 2);
            let _ = subject_values(&bytes);
        }
    }

    #[test]
    fn lengths_of_one_and_of_more_bytes() {
        let long = [&[0x04, 0x81, 0x80][..], &[7; 128]].concat();
        assert_eq!(Reader::new(&long).expect(OCTETS), Some(&[7; 128][..]));
        assert_eq!(Reader::new(&[0x02, 0x02, 0x08, 0x00]).number(), Some(2048));
        assert_eq!(Reader::new(&[0x04, 0x05, 1]).any(), None, "cut short");
        assert_eq!(Reader::new(&[0x04, 0x80]).any(), None, "without an end");
    }

    #[test]
    fn one_sequence_and_nothing_else() {
        let table = [
            (&[0x30, 0x01, 7][..], true),
            (&[0x30, 0x01, 7, 0], false),
            (&[0x30, 0x02, 7], false),
            (&[0x04, 0x01, 7], false),
            (&[], false),
        ];
        for (bytes, expected) in table {
            assert_eq!(Reader::new(bytes).is_one_sequence(), expected, "{bytes:?}");
        }
    }
}
