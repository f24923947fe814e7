//! The columns of the table, chosen so that it fits the terminal.

use crate::output::{Colour, Output};
use clap::ValueEnum;
use provision::listing::NodeRow;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    /// The node.
    Node,
    /// Its state in Slurm.
    Slurm,
    /// The state of its machine in the cloud.
    Cloud,
    /// The jobs that it runs or starts for.
    Job,
    /// The age of its machine.
    Age,
    /// Its address.
    Address,
    /// Its shape.
    Shape,
    /// Its zone.
    Zone,
    /// Its image.
    Image,
    /// Its machine's id.
    Instance,
    /// Why it is as it is.
    Why,
}

use Column::{Address, Age, Cloud, Image, Instance, Job, Node, Shape, Slurm, Why, Zone};

/// All columns, in the order of the table.
pub(super) const ALL: [Column; 11] =
    [Node, Slurm, Cloud, Job, Age, Address, Shape, Zone, Image, Instance, Why];

/// All columns, the most important first: where there is no room, the last are left out.
const BY_WEIGHT: [Column; 11] =
    [Node, Slurm, Cloud, Job, Why, Age, Zone, Address, Shape, Image, Instance];

/// How many of the most important columns are always there.
const ALWAYS: usize = 3;

/// Between two columns.
const GAP: &str = "  ";

/// The least room for a reason that is longer.
const LEAST_WHY: usize = 12;

/// Ids that are longer are shown by their end, which tells them apart.
const LONGEST_ID: usize = 16;

/// What all reasons of ours begin with.
const OURS: &str = "elastic: ";

/// How a table is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    /// The columns asked for; without any, those that fit.
    pub(super) chosen: &'a [Column],
    /// The width to fit into; without one, nothing is left out or cut.
    pub(super) width: Option<usize>,
}

impl Column {
    /// The word above the column; in lower case, its name in CSV.
    pub(super) fn head(self) -> &'static str {
        match self {
            Node => "NODE",
            Slurm => "SLURM",
            Cloud => "CLOUD",
            Job => "JOB",
            Age => "AGE",
            Address => "ADDRESS",
            Shape => "SHAPE",
            Zone => "ZONE",
            Image => "IMAGE",
            Instance => "INSTANCE",
            Why => "WHY",
        }
    }

    /// What a row has in the column, in full.
    pub(super) fn cell(self, row: &NodeRow) -> String {
        let jobs = || row.jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let value = match self {
            Node => Some(row.node.clone()),
            Slurm => row.slurm.clone(),
            Cloud => row.cloud.clone(),
            Job => Some(jobs()).filter(|jobs| !jobs.is_empty()),
            Age => row.age_seconds.map(age),
            Address => row.address.clone(),
            Shape => row.shape.clone(),
            Zone => row.zone.clone(),
            Image => row.image.clone(),
            Instance => row.instance.clone(),
            Why => return row.why.clone().unwrap_or_default(),
        };
        value.unwrap_or_else(|| "-".to_owned())
    }

    /// What a row has in the column, without what is the same for all nodes of a cluster or tells nobody anything.
    fn short(self, row: &NodeRow) -> String {
        let text = self.cell(row);
        match self {
            Slurm => text.replace("+cloud", ""),
            Image | Instance => end_of(&text),
            Why => text.trim_start_matches(OURS).to_owned(),
            Node | Cloud | Job | Age | Address | Shape | Zone => text,
        }
    }

    fn colour(self, text: &str) -> Option<Colour> {
        match self {
            Slurm => Some(slurm_colour(text)),
            Cloud => match text {
                "running" => Some(Colour::Green),
                "failed" => Some(Colour::Red),
                "pending" | "stopping" | "terminating" => Some(Colour::Yellow),
                _ => Some(Colour::Dim),
            },
            Node | Job | Age | Address | Shape | Zone | Image | Instance | Why => None,
        }
    }
}

fn slurm_colour(text: &str) -> Colour {
    let has = |words: &[&str]| text.split('+').any(|word| words.contains(&word));
    if has(&["down", "drain", "error", "fail", "invalid_reg", "not_responding"])
        && !has(&["powering_up"])
    {
        Colour::Red
    } else if has(&[
        "powering_up",
        "power_up",
        "powering_down",
        "power_down",
        "reboot_issued",
        "reboot_requested",
    ]) {
        Colour::Yellow
    } else if has(&["powered_down", "-"]) {
        Colour::Dim
    } else {
        Colour::Green
    }
}

/// The lines of the table, the header first.
pub(super) fn lines(rows: &[NodeRow], layout: Layout<'_>, output: Output) -> Vec<String> {
    let cell = |column: Column, row: &NodeRow| match layout.width {
        Some(_) => column.short(row),
        None => column.cell(row),
    };
    let size = |text: &str| text.chars().count();
    let natural = |column: Column| {
        let cells = rows.iter().map(|row| size(&cell(column, row)));
        cells.chain([size(column.head())]).max().unwrap_or_default()
    };
    let is_empty = |column: Column| rows.iter().all(|row| matches!(&*cell(column, row), "" | "-"));
    let columns = columns(layout, natural, is_empty);
    let widths = widths(&columns, layout.width, natural);
    let line = |text: &dyn Fn(Column) -> String,
                colour: &dyn Fn(Column, &str) -> Option<Colour>| {
        let cells = columns.iter().zip(&widths).enumerate().map(|(at, (column, width))| {
            let text = cut(&text(*column), *width);
            let is_last = at + 1 == columns.len();
            let padding = if is_last { 0 } else { width.saturating_sub(size(&text)) };
            let painted = colour(*column, &text).map(|colour| output.paint(colour, &text));
            format!("{}{:padding$}", painted.unwrap_or(text), "")
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    let head = line(&|column| column.head().to_owned(), &|_, _| Some(Colour::Bold));
    let body = rows.iter().map(|row| line(&|column| cell(column, row), &Column::colour));
    std::iter::once(head).chain(body).collect()
}

/// The columns that fit, in the order of the table.
fn columns(
    layout: Layout<'_>,
    natural: impl Fn(Column) -> usize,
    is_empty: impl Fn(Column) -> bool,
) -> Vec<Column> {
    let Some(width) = layout.width.filter(|_| layout.chosen.is_empty()) else {
        return if layout.chosen.is_empty() { ALL.to_vec() } else { layout.chosen.to_vec() };
    };
    let (mut kept, mut used) = (Vec::new(), 0);
    for (at, column) in BY_WEIGHT.into_iter().enumerate() {
        let least = if column == Why { natural(Why).min(LEAST_WHY) } else { natural(column) };
        let more = least + if at == 0 { 0 } else { GAP.len() };
        if at < ALWAYS || used + more <= width && !is_empty(column) {
            kept.push(column);
            used += more;
        }
    }
    ALL.into_iter().filter(|column| kept.contains(column)).collect()
}

/// How wide each column is: the last one has what the others leave.
fn widths(
    columns: &[Column],
    width: Option<usize>,
    natural: impl Fn(Column) -> usize,
) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| natural(*column)).collect();
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let over = width.map(|width| (widths.iter().sum::<usize>() + gaps).saturating_sub(width));
    if let (Some(over), Some(last)) = (over, widths.last_mut()) {
        *last = last.saturating_sub(over).max(1);
    }
    widths
}

/// A text that is not wider than this.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn end_of(id: &str) -> String {
    let over = id.chars().count().saturating_sub(LONGEST_ID);
    if over == 0 {
        id.to_owned()
    } else {
        format!("…{}", id.chars().skip(over + 1).collect::<String>())
    }
}

/// An age in the one unit that says most.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::output::Volume;

    /// Nodes in every kind of state, as of a cluster on OCI.
    pub(in crate::programs::listnodes) fn rows() -> Vec<NodeRow> {
        let row = |number: u32, slurm: &str, cloud: &str, why: &str| {
            let has = cloud != "-";
            let some = |text: String| has.then_some(text);
            NodeRow {
                node: format!("vm-standard2-1-ad1-000{number}"),
                slurm: Some(slurm.to_owned()),
                cloud: some(cloud.to_owned()),
                jobs: if slurm.starts_with("allocated") { vec![40 + number] } else { Vec::new() },
                address: some(format!("10.77.0.{number}")),
                age_seconds: has.then_some(u64::from(number) * 500),
                shape: some("VM.Standard2.1".to_owned()),
                zone: some("Uocm:PHX-AD-1".to_owned()),
                image: some("cloud.image.oc1.phx.aaaaaaaaimage000".to_owned()),
                instance: some(format!("cloud.instance.oc1.phx.anyhqljtinstance{number:03}")),
                why: (!why.is_empty()).then(|| why.to_owned()),
            }
        };
        vec![
            row(1, "allocated+cloud", "running", ""),
            row(2, "allocated+cloud+powering_up", "pending", ""),
            row(3, "idle+cloud+drain", "running", "fan broken"),
            row(4, "idle+cloud+powering_down", "terminating", ""),
            row(
                5,
                "idle+cloud+powered_down",
                "-",
                "elastic: launch: out of capacity (VM.Standard2.1 in Uocm:PHX-AD-1): Out of host capacity.",
            ),
        ]
    }

    pub(in crate::programs::listnodes) fn plain() -> Output {
        Output::new(Volume::Normal, true)
    }

    pub(in crate::programs::listnodes) fn matches(name: &str, lines: &[String]) {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, lines.join("\n")));
    }

    #[test]
    fn a_table_fits_the_terminal() {
        for width in [80, 120, 200] {
            let lines = lines(&rows(), Layout { chosen: &[], width: Some(width) }, plain());
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            matches(&format!("table-{width}"), &lines);
        }
        let lines = lines(&rows(), Layout { chosen: &[], width: Some(20) }, plain());
        assert!(lines.iter().all(|line| line.starts_with("NODE") || line.starts_with("vm-")));
    }

    #[test]
    fn a_wide_table_has_everything_and_chosen_columns_have_their_order() {
        let wide = lines(&rows(), Layout { chosen: &[], width: None }, plain());
        assert!(wide.iter().any(|line| line.contains("cloud.image.oc1.phx.aaaaaaaaimage000")));
        assert!(wide.iter().any(|line| line.ends_with("Out of host capacity.")));
        let some = lines(&rows(), Layout { chosen: &[Why, Node], width: None }, plain());
        assert_eq!(some.first().unwrap().split_whitespace().collect::<Vec<_>>(), ["WHY", "NODE"]);
    }

    #[test]
    fn states_have_colours_only_if_the_output_has() {
        let mut colours = plain();
        colours.colour = true;
        let layout = Layout { chosen: &[Slurm, Cloud], width: None };
        let painted = lines(&rows(), layout, colours).concat();
        for (code, text) in [
            (32, "allocated+cloud"),
            (33, "pending"),
            (31, "idle+cloud+drain"),
            (2, "idle+cloud+powered_down"),
        ] {
            assert!(painted.contains(&format!("\x1b[{code}m{text}\x1b[0m")), "{text}: {painted:?}");
        }
        assert!(!lines(&rows(), layout, plain()).concat().contains('\x1b'));
    }

    #[test]
    fn an_age_is_in_the_unit_that_says_most() {
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
        {
            assert_eq!(age(seconds), text);
        }
    }
}
