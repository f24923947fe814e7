//! `cloud-oci` launching against `cloud-sim`, each a process of its own: wall, CPU, peak memory and
//! requests, beside their bars.

mod client;
mod cloud;
mod program;

use client::{Speed, Spent};
use cloud::{Asked, Child, Cloud};
use program::Start;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How many launches are under way at a time, in all runs.
const CONCURRENCY: u32 = 8;

/// How long the cloud takes for every answer, in seconds.
const LATENCY: f64 = 0.05;

/// How long a machine takes to boot, for `startnode`, in seconds.
const BOOT: f64 = 1.0;

/// How many launches of `startnode` are under way at a time.
const AT_A_TIME: f64 = 32.0;

/// Launches per second that the cloud takes when it throttles, and how many at once.
const RATE: f64 = 20.0;
const BURST: f64 = 20.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let called = std::env::args().next().map(PathBuf::from).unwrap_or_default();
    if let Some("scontrol" | "squeue" | "sinfo" | "sbatch") =
        called.file_name().and_then(|it| it.to_str())
    {
        // In the directory above bin.
        let directory = called.parent().and_then(Path::parent).expect("a link of ours");
        program::slurm(directory, &arguments);
        return ExitCode::SUCCESS;
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", directory, kind, address] => cloud::serve(directory, kind, address),
        ["client", count, speed, endpoint, config] => {
            let speeds = [Speed::Full, Speed::Usual];
            let speed = speeds.into_iter().find(|it| it.word() == speed).expect("a speed");
            println!("{}", client::run(count.parse().expect("a number"), speed, endpoint, config));
        }
        ["start", ours] if starts(Path::new(ours), None) => {}
        ["start", ours, before] if starts(Path::new(ours), Some(Path::new(before))) => {}
        [] if report() => {}
        [] | ["start", _] | ["start", _, _] => return ExitCode::FAILURE,
        _ => {
            eprintln!("usage: bench-oci [start EXECUTABLE [BEFORE]]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

const INTRODUCTION: &str = "\
Latency 50 ms, 8 launches at a time. Wall and CPU are barred for the launches, from the first sent to
the last accepted. CPU is barred a second time for the whole, from the first request (a listing) until
all run and their addresses are known; only the start of the process is left out of that. Many
instances share the requests that are not launches; one has them to itself, and each is signed, so that
its whole misses the bar of 3 ms. What the whole costs beside its signatures has a bar of its own.
They are sent as fast as 8 at a time can be, or as the programs do: slowly at first, and at most 100 a
second.
The first row is a process that starts and lists once.
";

/// How many times the cost of their signatures requests may cost in all.
const BESIDE_SIGNATURES: f64 = 3.0;

/// True if every bar was met.
fn report() -> bool {
    println!("{INTRODUCTION}");
    let (idle, _) = measure((0, Speed::Full), false);
    println!("{:>9} launches: CPU {:.1} ms, {:.1} MB", 0, idle.cpu * 1e3, idle.megabytes);
    let mut bars = Bars::default();
    for count in [1, 100, 1000] {
        let (spent, asked) = measure((count, Speed::Full), false);
        let floor = (f64::from(count) / f64::from(CONCURRENCY)).ceil() * LATENCY;
        println!("\n{count:>9} launches, no limit; asked: {}", asked.kinds());
        bars.check("wall / floor", spent.launching / floor, 1.3);
        bars.check("launch requests / instance", asked.launches() / f64::from(count), 1.05);
        bars.check("other requests", asked.others(), 25.0);
        let each = |seconds: f64| seconds * 1e3 / f64::from(count);
        bars.check("CPU ms / instance, launching", each(spent.cpu_launching), 3.0);
        let requests = asked.launches() + asked.others();
        bars.check("CPU ms / instance, whole", each(spent.cpu_whole), 3.0);
        let beside = spent.cpu_whole / spent.signatures(requests);
        bars.check("CPU / signatures, whole", beside, BESIDE_SIGNATURES);
        bars.check("peak MB", spent.megabytes, 30.0);
        spent.tell(requests);
    }
    let count = 1000;
    for speed in [Speed::Full, Speed::Usual] {
        let (spent, asked) = measure((count, speed), true);
        let floor = (f64::from(count) - BURST) / RATE;
        println!(
            "\n{count:>9} launches at {RATE} a second{}; asked: {}",
            speed.told(),
            asked.kinds()
        );
        bars.check("wall / floor", spent.launching / floor, 1.1);
        bars.check("rejected %", asked.rejected / f64::from(count) * 100.0, 3.0);
        bars.check("other requests", asked.others(), 25.0);
        spent.tell(asked.launches() + asked.others());
    }
    let (spent, asked) = measure((count, Speed::Usual), false);
    println!("\n{count:>9} launches, no limit{}; asked: {}", Speed::Usual.told(), asked.kinds());
    let floor = f64::from(count) / Speed::Usual.most();
    bars.check("wall / floor of that pace", spent.launching / floor, 1.3);
    bars.check("launch requests / instance", asked.launches() / f64::from(count), 1.05);
    bars.check("other requests", asked.others(), 25.0);
    bars.check("CPU ms / instance, whole", spent.cpu_whole * 1e3 / f64::from(count), 3.0);
    bars.check("peak MB", spent.megabytes, 30.0);
    spent.tell(asked.launches() + asked.others());
    println!("\n{} bars missed", bars.missed);
    bars.missed == 0
}

const STARTS: &str = "\
startnode, from its call to its end, by when Slurm has every address. Latency 50 ms, machines boot in 1 s, 32 launches at a time:
the floor is launches / 32 x 50 ms, or (launches - burst) / rate where the cloud throttles. CPU is that of startnode alone,
without Slurm's programs; requests are all that the cloud was sent.
";

/// True if every bar was met by our `startnode`; an earlier one is measured beside it.
fn starts(ours: &Path, before: Option<&Path>) -> bool {
    println!("{STARTS}");
    let mut bars = Bars::default();
    let free = |count, remembers| Start { count, remembers, throttled: false, user_data: 300 };
    for start in
        [1, 20, 100, 1000].into_iter().flat_map(|count| [free(count, false), free(count, true)])
    {
        let count = f64::from(start.count);
        let floor = count / AT_A_TIME * LATENCY;
        let (times, beside) = if start.remembers { (1.3, 0.4) } else { (1.5, 2.0) };
        let spent = announce(ours, before, start);
        bars.check("wall s", spent.wall, BOOT + times * floor + beside);
        bars.check(
            "requests / node",
            spent.requests / count,
            if start.count == 1000 { 1.02 } else { 30.0 },
        );
        let cpu = if start.count == 1 { 12.0 } else { 3.0 };
        bars.check("CPU ms / node", spent.cpu * 1e3 / count, cpu);
        bars.check("peak MB", spent.megabytes, 20.0);
    }
    let long = Start { user_data: 16 << 10, ..free(1000, true) };
    let spent = announce(ours, before, long);
    bars.check("peak MB", spent.megabytes, 30.0);
    for remembers in [false, true] {
        let start = Start { remembers, throttled: true, ..free(1000, true) };
        let floor = (f64::from(start.count) - BURST) / RATE;
        let spent = announce(ours, before, start);
        bars.check("wall s", spent.wall, BOOT + 1.1 * floor);
        bars.check("rejected %", spent.rejected / f64::from(start.count) * 100.0, 3.0);
    }
    println!("\n{} bars missed", bars.missed);
    bars.missed == 0
}

/// Measures a start, and an earlier program beside it.
fn announce(ours: &Path, before: Option<&Path>, start: Start) -> program::Spent {
    let memory = if start.remembers { "with memory of the pace" } else { "without" };
    let limit = if start.throttled { format!(", {RATE} launches a second") } else { String::new() };
    println!("\n{:>6} nodes, {memory}{limit}, {} bytes of user data", start.count, start.user_data);
    let show = |name: &str, spent: &program::Spent| {
        println!(
            "{name:>30} {:.2} s, {:.1} ms of CPU, {:.1} MB, {} requests, {} rejected",
            spent.wall,
            spent.cpu * 1e3,
            spent.megabytes,
            spent.requests,
            spent.rejected
        );
    };
    if let Some(before) = before {
        show("before", &program::measure(before, start));
    }
    let spent = program::measure(ours, start);
    show("now", &spent);
    spent
}

/// One run of a new client against a new cloud.
fn measure(client: (u32, Speed), throttled: bool) -> (Spent, Asked) {
    let directory = std::env::temp_dir().join(format!("bench-oci-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let kind = if throttled { Cloud::Throttled } else { Cloud::Free };
    let cloud = Child::start(&directory, kind, "127.0.0.1:0");
    let spent = client::spawn(client, &cloud.endpoint, &directory.join("config"));
    let asked = cloud.stop();
    std::fs::remove_dir_all(&directory).expect("it was there");
    (spent, asked)
}

/// Counts the bars that are missed.
#[derive(Default)]
struct Bars {
    missed: usize,
}

impl Bars {
    fn check(&mut self, name: &str, value: f64, bar: f64) {
        let met = value <= bar;
        self.missed += usize::from(!met);
        println!("{name:>30} {value:8.3}   bar {bar:5} {}", if met { "met" } else { "MISSED" });
    }
}
