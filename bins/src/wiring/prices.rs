//! What machines cost, from the configuration.

use super::read;
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use history::cost::Prices;
use std::path::Path;

/// The file's name, beside `startnode.yaml`.
const PRICES: &str = "prices.yaml";

/// What machines cost: the file that is named, or the one beside the configuration.
pub fn prices(settings: &Settings, environment: &Environment) -> Result<Prices, Diagnostic> {
    let named = settings.paths.prices.as_deref().map(|path| environment.expand(path));
    let path = named.unwrap_or_else(|| Path::new(&settings.file).with_file_name(PRICES));
    let remedy = "copy the example of your cloud there and enter your prices, or set prices_file";
    let text = read(&path).map_err(|why| why.with_help(remedy))?;
    Ok(Prices::read(&path.display().to_string(), &text)?)
}
