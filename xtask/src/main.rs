//! Runs and tests Tabwarden, with all the set-up that this needs: `cargo xtask run`, `cargo xtask test`.
#![allow(clippy::print_stdout, reason = "this is a command-line program")]

mod desktop;
mod failure;
mod packages;
mod run;
mod steps;

mod tools;

use std::process::ExitCode;

use failure::Failure;

const USAGE: &str = "\
cargo xtask run [-- ARGUMENTS]   install what is needed, build Tabwarden and run it with these arguments
cargo xtask test [--only STEP]   install what is needed and run all tests, or one step of them
cargo xtask bench                run the benchmarks of the main job and of the firewall, on release builds
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run"] => run::run(&[]),
        ["run", "--", rest @ ..] => run::run(rest),
        ["test"] => steps::all(),
        ["test", "--only", step] => steps::one(step),
        ["bench"] => steps::bench(),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}{}", steps::steps_in_words());
            return ExitCode::SUCCESS;
        }
        _ => Err(Failure::Usage),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
