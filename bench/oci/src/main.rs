//! `cloud-oci` launching against `cloud-sim`, each a process of its own: wall, CPU, peak memory and
//! requests, beside their bars.

mod client;
mod cloud;

use client::{Speed, Spent};
use cloud::{Asked, Child};
use std::process::ExitCode;

/// How many launches are under way at a time, in all runs.
const CONCURRENCY: u32 = 8;

/// How long the cloud takes for every answer, in seconds.
const LATENCY: f64 = 0.05;

/// Launches per second that the cloud takes when it throttles, and how many at once.
const RATE: f64 = 20.0;
const BURST: f64 = 20.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", directory, throttle] => cloud::serve(directory, throttle == "throttled"),
        ["client", count, speed, endpoint, config] => {
            let speeds = [Speed::Full, Speed::Usual];
            let speed = speeds.into_iter().find(|it| it.word() == speed).expect("a speed");
            println!("{}", client::run(count.parse().expect("a number"), speed, endpoint, config));
        }
        [] if report() => {}
        [] => return ExitCode::FAILURE,
        _ => {
            eprintln!("usage: bench-oci");
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

/// One run of a new client against a new cloud.
fn measure(client: (u32, Speed), throttled: bool) -> (Spent, Asked) {
    let directory = std::env::temp_dir().join(format!("bench-oci-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let cloud = Child::start(&directory, throttled);
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
