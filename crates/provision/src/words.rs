//! Enums whose variants are words.

/// Declares an enum of which each variant has a word that does not change: in files, in JSON and in texts.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$meaning])* $variant,)*
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// The word of the variant, which does not change.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The variant with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
