//! `prices.yaml`: the hourly prices of machines.

use super::money::Price;
use slurmconf::yaml::{Source, Value, YamlNode};
use slurmconf::{Error, Result};
use std::collections::BTreeMap;

/// The keys of the file.
const KEYS: [&str; 4] = ["currency", "date", "source", "shapes"];

/// The keys of a shape.
const SHAPE_KEYS: [&str; 4] = ["hour", "ocpu", "memory_gb", "preemptible"];

/// The suffix of the shape of a preemptible machine.
const PREEMPTIBLE: &str = " preemptible";

/// Hourly prices by shape.
///
/// A flexible shape has the keys `ocpu` and `memory_gb`, because an operator copies both from the price list of the one cloud
/// that sells machines by size, and its size is behind its name as in Cluster in the Cloud.
///
/// ```
/// use history::cost::Prices;
///
/// let prices = Prices::read(
///     "prices.yaml",
///     "currency: USD
/// shapes:
///   VM.Standard2.1: 0.0638
///   m1.large: {hour: 0.10, preemptible: 0.04}
///   VM.Standard.E4.Flex: {ocpu: 0.025, memory_gb: 0.0015, preemptible: 50%}
/// ",
/// )?;
/// let hour = |shape| prices.hour(shape).map(|price| price.to_string());
/// assert_eq!(hour("VM.Standard2.1").as_deref(), Some("0.0638"));
/// assert_eq!(hour("m1.large preemptible").as_deref(), Some("0.04"));
/// assert_eq!(hour("VM.Standard.E4.Flex.2.32").as_deref(), Some("0.098"));
/// assert_eq!(hour("VM.Standard.E4.Flex.2.32 preemptible").as_deref(), Some("0.049"));
/// assert_eq!(hour("VM.Standard2.1 preemptible"), None);
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// The name of the currency.
    pub currency: String,
    shapes: BTreeMap<String, ShapePrice>,
}

/// The price of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShapePrice {
    rate: Rate,
    preemptible: Option<Discount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    /// The price per machine.
    Hour(Price),
    /// The prices per core and per gigabyte of memory, for a flexible shape.
    Sized { ocpu: Price, memory_gb: Price },
}

/// The price of a preemptible machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discount {
    Hour(Price),
    /// A percentage of the regular price.
    Percent(u64),
}

impl Prices {
    /// Reads a `prices.yaml`. `file` is its name in errors.
    pub fn read(file: &str, text: &str) -> Result<Self> {
        let source = Source::new(file, text);
        let root = source.read()?;
        let entries = source.map(file, &root)?;
        source.unknown_keys(file, entries, &KEYS).into_iter().next().map_or(Ok(()), Err)?;
        let currency = source.required(file, &root, entries, "currency")?;
        let shapes = source.required(file, &root, entries, "shapes")?;
        let mut prices = Self { currency: source.text("currency", currency)?, ..Self::default() };
        for (name, value) in source.map("shapes", shapes)? {
            let name = source.text("shapes", name)?;
            let price = shape(&source, &name, value)?;
            prices.shapes.insert(name, price);
        }
        Ok(prices)
    }

    /// The hourly price of a machine of this shape. A flexible shape includes its size, and a preemptible one has the
    /// suffix ` preemptible`.
    #[must_use]
    pub fn hour(&self, shape: &str) -> Option<Price> {
        let (shape, preemptible) =
            shape.strip_suffix(PREEMPTIBLE).map_or((shape, false), |shape| (shape, true));
        let (price, ordinary) = self.ordinary(shape)?;
        if !preemptible {
            return Some(ordinary);
        }
        Some(match price.preemptible? {
            Discount::Hour(price) => price,
            Discount::Percent(percent) => ordinary.percent(percent),
        })
    }

    fn ordinary(&self, shape: &str) -> Option<(ShapePrice, Price)> {
        if let Some(price) = self.shapes.get(shape)
            && let Rate::Hour(hour) = price.rate
        {
            return Some((*price, hour));
        }
        let (rest, memory) = shape.rsplit_once('.')?;
        let (shape, ocpus) = rest.rsplit_once('.')?;
        let price = self.shapes.get(shape)?;
        let Rate::Sized { ocpu, memory_gb } = price.rate else { return None };
        let ordinary = ocpu.times(ocpus.parse().ok()?).plus(memory_gb.times(memory.parse().ok()?));
        Some((*price, ordinary))
    }
}

fn shape(source: &Source<'_>, name: &str, node: &YamlNode) -> Result<ShapePrice> {
    if !matches!(node.value, Value::Map(_)) {
        return Ok(ShapePrice { rate: Rate::Hour(price(source, name, node)?), preemptible: None });
    }
    let entries = source.map(name, node)?;
    source.unknown_keys(name, entries, &SHAPE_KEYS).into_iter().next().map_or(Ok(()), Err)?;
    let known = |key: &'static str| {
        YamlNode::get(entries, key).map(|node| price(source, key, node)).transpose()
    };
    let rate = match (known("hour")?, known("ocpu")?, known("memory_gb")?) {
        (Some(hour), None, None) => Rate::Hour(hour),
        (None, Some(ocpu), Some(memory_gb)) => Rate::Sized { ocpu, memory_gb },
        _ => return Err(source.expected(name, "either hour, or ocpu and memory_gb", node)),
    };
    let discount = YamlNode::get(entries, "preemptible");
    let preemptible = discount.map(|node| discounted(source, rate, node)).transpose()?;
    Ok(ShapePrice { rate, preemptible })
}

fn discounted(source: &Source<'_>, rate: Rate, node: &YamlNode) -> Result<Discount> {
    let percent = match &node.value {
        Value::Text(text) => text.strip_suffix('%').and_then(|text| text.parse().ok()),
        _ => None,
    };
    if let Some(percent) = percent.filter(|percent| *percent <= 100) {
        return Ok(Discount::Percent(percent));
    }
    match rate {
        Rate::Hour(_) => price(source, "preemptible", node).map(Discount::Hour),
        Rate::Sized { .. } => {
            Err(source.expected("preemptible", "a percentage, such as 50%", node))
        }
    }
}

/// Reads an amount without rounding.
fn price(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<Price> {
    let text = match &node.value {
        Value::Integer(number) => Some(number.to_string()),
        // The shortest representation of a number is the text that was written, up to fifteen digits.
        Value::Float(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    };
    let wrong = || -> Error {
        source.expected(what, "an amount such as 0.0638, of at most six decimal places", node)
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_line_and_column() {
        for (text, expected) in [
            (
                "currency: USD\nshapes: {a: cheap}\n",
                "p.yaml:2:13: a: expected an amount such as 0.0638, of at most six decimal places",
            ),
            ("currency: USD\nshapes: {a: -1}\n", "p.yaml:2:13: a: expected an amount"),
            ("shapes: {a: 1}\n", "p.yaml:1:1: p.yaml: missing key \"currency\""),
            (
                "currency: USD\nshape: {a: 1}\n",
                "p.yaml:2:1: p.yaml: unknown key \"shape\"; did you mean \"shapes\"?",
            ),
            (
                "currency: USD\nshapes: {a: {hour: 1, ocpu: 2}}\n",
                "p.yaml:2:13: a: expected either hour, or ocpu and memory_gb",
            ),
            (
                "currency: USD\nshapes: {a: {hour: 1, preemptable: 2}}\n",
                "p.yaml:2:23: a: unknown key \"preemptable\"; did you mean \"preemptible\"?",
            ),
            (
                "currency: USD\nshapes: {a: {ocpu: 1, memory_gb: 1, preemptible: 2}}\n",
                "p.yaml:2:50: preemptible: expected a percentage",
            ),
            ("currency: USD\nshapes: {a: 0.12345678}\n", "p.yaml:2:13: a: expected an amount"),
        ] {
            let error = Prices::read("p.yaml", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_shape_without_a_price_has_none() {
        let prices = Prices::read(
            "p.yaml",
            "currency: USD\nshapes: {a: 1, F.Flex: {ocpu: 1, memory_gb: 1}}\n",
        )
        .unwrap();
        for shape in
            ["b", "F.Flex", "F.Flex.1", "F.Flex.1.x", "a preemptible", "F.Flex.1.1 preemptible", ""]
        {
            assert_eq!(prices.hour(shape), None, "{shape}");
        }
    }
}
