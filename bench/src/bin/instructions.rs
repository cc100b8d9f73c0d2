//! How many instructions the parts of the hot path take, counted by callgrind: so that one that grows shows
//! on a machine that isn't quiet. `scripts/bench-instructions` runs this.
//!
//! The program starts itself under valgrind once for each part, with counting on only inside that part's
//! `count_…` function, and compares with the committed figures.
//!
//! ```text
//! instructions                    compares; fails if a part has grown by more than 5 % with the same compiler
//! instructions --update REASON    writes the figures anew, with the reason
//! ```

use ringmain_bench::frames::FRAME_MAX;
use ringmain_bench::pair::Pair;
use ringmain_codec::{Performative, split_frame};
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// Growth, in per cent, that is borne without a reason.
const GROWTH_MAX: f64 = 5.0;

/// Rounds that are counted, and those before them that aren't: until the numbers on the wire have their full
/// length and nothing more grows.
const ROUNDS: u32 = 10_000;
const WARM_UP: u32 = 1_000;

/// Deliveries of the range.
const RANGE: u32 = 64;

/// A part: its name, how many deliveries a round has, and a round.
struct Part {
    name: &'static str,
    /// The function inside which is counted.
    function: &'static str,
    deliveries: u32,
    round: fn(&mut Pair, u32, bool),
}

const PARTS: [Part; 4] = [
    Part { name: "decode-transfer", function: "count_decode", deliveries: 1, round: decode },
    Part { name: "forward-one-delivery", function: "count_forward", deliveries: 1, round: forward },
    Part { name: "settle-one-delivery", function: "count_settle", deliveries: 1, round: settle },
    Part { name: "settle-one-of-a-range-of-64", function: "count_settle", deliveries: RANGE, round: settle },
];

#[inline(never)]
fn count_decode(frame: &[u8]) {
    let (frame, _) = split_frame(frame, FRAME_MAX).expect("a frame").expect("a whole frame");
    black_box(Performative::decode(frame.body).expect("a transfer"));
}

#[inline(never)]
fn count_forward(pair: &mut Pair, transfers: &[u8]) {
    pair.forward(transfers);
}

#[inline(never)]
fn count_settle(pair: &mut Pair, dispositions: &[u8]) {
    pair.settle(dispositions);
}

fn decode(pair: &mut Pair, deliveries: u32, counts: bool) {
    let transfers = pair.transfers(deliveries);
    if counts {
        count_decode(black_box(&transfers));
    }
}

fn forward(pair: &mut Pair, deliveries: u32, counts: bool) {
    let (transfers, dispositions) = (pair.transfers(deliveries), pair.dispositions(deliveries, true));
    if counts {
        count_forward(pair, &transfers);
    } else {
        pair.forward(&transfers);
    }
    pair.settle(&dispositions);
    pair.discard_output();
}

fn settle(pair: &mut Pair, deliveries: u32, counts: bool) {
    let (transfers, dispositions) = (pair.transfers(deliveries), pair.dispositions(deliveries, true));
    pair.forward(&transfers);
    if counts {
        count_settle(pair, &dispositions);
    } else {
        pair.settle(&dispositions);
    }
    pair.discard_output();
}

/// What runs under valgrind.
fn run(part: &Part) {
    let mut pair = Pair::new();
    for _ in 0..WARM_UP.div_ceil(part.deliveries) {
        (part.round)(&mut pair, part.deliveries, false);
    }
    for _ in 0..ROUNDS.div_ceil(part.deliveries) {
        (part.round)(&mut pair, part.deliveries, true);
    }
}

/// The instructions that a part takes for each delivery.
fn count(part: &Part) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let out = env::temp_dir().join(format!("ringmain-callgrind-{}.{}", part.name, std::process::id()));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        // Whatever the compiler makes of the names.
        .arg(format!("--toggle-collect=*instructions*{}*", part.function))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(["--run", part.name])
        .output()
        .map_err(|error| format!("can't start valgrind ({error}): install it"))?;
    let profile = fs::read_to_string(&out);
    // It may not be there.
    let _ = fs::remove_file(&out);
    if !ran.status.success() {
        return Err(format!("{} under valgrind: {}", part.name, String::from_utf8_lossy(&ran.stderr)));
    }
    let profile = profile.map_err(|error| format!("callgrind's profile: {error}"))?;
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))
        .and_then(|total| total.trim().parse::<u64>().ok())
        .filter(|total| *total > 0)
        .ok_or_else(|| format!("{}: callgrind counted nothing inside {}", part.name, part.function))?;
    let deliveries = ROUNDS.div_ceil(part.deliveries) * part.deliveries;
    #[allow(clippy::cast_precision_loss)]
    Ok(total as f64 / f64::from(deliveries))
}

fn committed_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.tsv")
}

fn committed(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t')?.trim().parse().ok())
}

fn compiler() -> String {
    let version =
        Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())).arg("--version").output();
    version
        .map_or_else(|_| "unknown".to_owned(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Compares with the committed figures: whether none has grown too much. Those of another compiler are only shown.
fn compare(text: &str) -> Result<bool, String> {
    let mut good = true;
    println!("{:<30} {:>12} {:>12} {:>9}", "instructions per delivery", "committed", "now", "growth");
    for part in &PARTS {
        let now = count(part)?;
        let Some(before) = committed(text, part.name) else {
            println!("{:<30} {:>12} {now:>12.1} {:>9}   NOT COMMITTED", part.name, "-", "-");
            good = false;
            continue;
        };
        let growth = (now / before - 1.0) * 100.0;
        let verdict = if growth > GROWTH_MAX { "   TOO MUCH" } else { "" };
        println!("{:<30} {before:>12.1} {now:>12.1} {growth:>+8.1}%{verdict}", part.name);
        good &= growth <= GROWTH_MAX;
    }
    let compiler = compiler();
    let is_same = text.contains(&compiler);
    if !is_same {
        println!("The committed figures are another compiler's, so growth is no fault; this is {compiler}.");
    }
    Ok(good || !is_same)
}

/// Writes the figures anew. The reasons of earlier times stay.
fn update(text: &str, reason: &str) -> Result<(), String> {
    let mut new = String::from(
        "# Instructions per delivery, counted by scripts/bench-instructions, which fails when one grows by more than 5 %.\n\
         # Update with: scripts/bench-instructions --update 'REASON'\n",
    );
    // Writing to a string doesn't fail.
    let _ = writeln!(new, "# compiler: {}", compiler());
    for before in text.lines().filter(|line| line.starts_with("# reason: ")) {
        let _ = writeln!(new, "{before}");
    }
    let _ = writeln!(new, "# reason: {}", reason.replace('\n', " "));
    for part in &PARTS {
        let _ = writeln!(new, "{}\t{:.1}", part.name, count(part)?);
    }
    fs::write(committed_path(), &new).map_err(|error| format!("{}: {error}", committed_path().display()))?;
    print!("{new}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = fs::read_to_string(committed_path()).unwrap_or_default();
    let done = match arguments[..] {
        [] => compare(&text),
        ["--update", reason] if !reason.trim().is_empty() => update(&text, reason).map(|()| true),
        ["--run", name] => {
            let part = PARTS.iter().find(|part| part.name == name);
            part.map(run).ok_or_else(|| format!("there is no part '{name}'")).map(|()| true)
        }
        _ => Err("usage: instructions [--update REASON]".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "A part takes over {GROWTH_MAX} % more instructions than committed. Make it take fewer, or, if it is worth it, \
                 commit the new figures:\n    scripts/bench-instructions --update 'why it is worth it'"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
