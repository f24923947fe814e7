//! Lists and names for serde: text in, text out.

use crate::list::Hostlist;
use crate::name::NodeName;
use crate::parse::Parser;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;
use serde_core::de::{Deserialize, Deserializer, Visitor};
use serde_core::ser::{Error as _, Serialize, Serializer};

/// As an expression that reads back as the same list; an error if a name is one that no expression can spell.
impl Serialize for Hostlist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let expression = self.expression();
        let limitless = Parser::new().max_hosts(u64::MAX).max_bytes(u64::MAX);
        if limitless.parse(&expression).is_ok_and(|again| again == *self) {
            return serializer.serialize_str(&expression);
        }
        Err(S::Error::custom("the list has a name that no host-list expression can spell"))
    }
}

/// From an expression of the modern dialect, with the limits of [`Parser::new`].
impl<'de> Deserialize<'de> for Hostlist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a host-list expression such as n[1-4,7]", PhantomData))
    }
}

impl Serialize for NodeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for NodeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a node name", PhantomData))
    }
}

/// Reads text, and says what was expected where there is none.
struct Text<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err: OneLine>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde_core::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error: T::Err| E::custom(error.one_line()))
    }
}

/// An error on one line: formats print where it is themselves.
trait OneLine {
    fn one_line(&self) -> String;
}

impl OneLine for crate::ParseError {
    fn one_line(&self) -> String {
        self.reason()
    }
}

impl OneLine for crate::NodeNameError {
    fn one_line(&self) -> String {
        alloc::format!("{self}")
    }
}
