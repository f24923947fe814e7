//! Host lists on the command line, as `scontrol show hostnames|hostlist|hostlistsorted` and ClusterShell's `nodeset` have them.

mod steps;

use hostlist::{Hostlist, Parser};
use std::fmt::Display;
use std::io::{self, Read as _, Write};
use std::process::ExitCode;

const USAGE: &str = "\
usage: hostlist hostnames|hostlist|hostlistsorted EXPRESSION
       hostlist -c|-e|-f [-S TEXT] [--autostep N] SET [SET | -x SET | -i SET | -X SET]...

As scontrol show, with order and duplicates kept:
  hostnames         one name on each line
  hostlist          names folded
  hostlistsorted    names sorted and folded

As nodeset, each host once; operations apply from left to right:
  -c, --count       number of hosts
  -e, --expand      names, with -S TEXT between them (default: a space)
  -f, --fold        folded, with --autostep N as n[0-8/2] where N or more hosts (at least 3) make a step
  SET               add these hosts (union); `-` reads standard input
  -x, --exclude SET        remove these hosts (difference)
  -i, --intersection SET   keep only these hosts
  -X, --xor SET            keep the hosts that are in one of the two only
  SET is an expression such as n[1-4,7], with steps such as n[0-8/2].

Examples:
  hostlist hostnames 'n[1-3],login1'
  hostlist -f 'n[1-9]' -x n5 -i 'n[4-6]'
  hostlist -c 'rack[1-4]n[01-32]'
  squeue -h -o %N | hostlist -f -";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = run(&arguments, &mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(reason)) => complain(&format!("{reason}\n{USAGE}"), 2),
        Err(Failure::Input(reason)) => complain(&reason, 1),
        // The reader has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => complain(&error.to_string(), 1),
    }
}

fn complain(reason: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "hostlist: {reason}");
    ExitCode::from(code)
}

enum Failure {
    Usage(String),
    Input(String),
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn usage(reason: impl Display) -> Failure {
    Failure::Usage(reason.to_string())
}

fn run(arguments: &[String], out: &mut impl Write) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["-h" | "--help"] => Ok(writeln!(out, "{USAGE}")?),
        ["hostnames", expression] => lines(&read(expression, &Parser::new())?, out),
        ["hostlist", expression] => Ok(writeln!(out, "{}", read(expression, &Parser::new())?)?),
        ["hostlistsorted", expression] => {
            Ok(writeln!(out, "{}", read(expression, &Parser::new())?.sorted())?)
        }
        ["-c" | "--count", ref rest @ ..] => {
            let (set, _) = combine(rest)?;
            Ok(writeln!(out, "{}", set.len())?)
        }
        ["-e" | "--expand", ref rest @ ..] => {
            let (set, format) = combine(rest)?;
            set.write_to(out, format.separator)?;
            Ok(writeln!(out)?)
        }
        ["-f" | "--fold", ref rest @ ..] => {
            let (set, format) = combine(rest)?;
            let folded = set.to_string();
            let folded = match format.autostep {
                Some(least) => steps::fold(&folded, least),
                None => folded,
            };
            Ok(writeln!(out, "{folded}")?)
        }
        _ => Err(usage("the first argument says what to print")),
    }
}

fn lines(list: &Hostlist, out: &mut impl Write) -> Result<(), Failure> {
    list.write_to(out, "\n")?;
    if !list.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

struct Format<'a> {
    separator: &'a str,
    autostep: Option<usize>,
}

/// Applies the sets and operations from left to right.
fn combine<'a>(arguments: &[&'a str]) -> Result<(Hostlist, Format<'a>), Failure> {
    let parser = Parser::new().steps(true);
    let mut format = Format { separator: " ", autostep: None };
    let mut set = Hostlist::new();
    let mut arguments = arguments.iter();
    let mut sets = 0;
    while let Some(argument) = arguments.next() {
        let mut value =
            || arguments.next().ok_or_else(|| usage(format!("{argument} needs a value")));
        match *argument {
            "-S" | "--separator" => format.separator = value()?,
            "--autostep" => format.autostep = Some(autostep(value()?)?),
            "-x" | "--exclude" => set = set.difference(&read(value()?, &parser)?),
            "-i" | "--intersection" => set = set.intersection(&read(value()?, &parser)?),
            "-X" | "--xor" => set = set.symmetric_difference(&read(value()?, &parser)?),
            option if option.len() > 1 && option.starts_with('-') => {
                return Err(usage(format!("unknown option {option}")));
            }
            expression => {
                set = set.union(&read(expression, &parser)?);
                sets += 1;
            }
        }
    }
    if sets == 0 { Err(usage("no hosts given")) } else { Ok((set, format)) }
}

fn autostep(text: &str) -> Result<usize, Failure> {
    let least = text.parse().ok().filter(|least| *least >= 3);
    least.ok_or_else(|| usage(format!("--autostep takes a number from 3 on, not {text}")))
}

/// Reads an expression, or standard input.
fn read(expression: &str, parser: &Parser) -> Result<Hostlist, Failure> {
    let mut input = String::new();
    let expression = if expression == "-" {
        io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| Failure::Input(error.to_string()))?;
        &input
    } else {
        expression
    };
    parser.parse(expression).map_err(|error| Failure::Input(error.to_string()))
}
