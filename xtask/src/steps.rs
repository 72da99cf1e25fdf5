//! `cargo xtask test`: all tests, in the order that finds out soonest what is wrong.

use std::cell::OnceCell;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::desktop::Desktop;
use crate::failure::{Failure, output_of, run};
use crate::{packages, tools};

/// One step of the tests.
struct Step {
    name: &'static str,
    title: &'static str,
    packages: &'static [&'static [&'static str]],
    run: fn(&Place) -> Result<(), Failure>,
}

/// The system packages of the steps that compile or run Tabwarden.
const ALL: &[&[&str]] = &[packages::APP, packages::DESKTOP, packages::TESTS];

/// The npm and PyPI packages of the client tests, and the tests.
const CLIENTS: &str = "src-tauri/tests/clients";

const STEPS: &[Step] = &[
    Step { name: "fmt", title: "The format", packages: &[], run: fmt },
    Step { name: "house", title: "The rules of the house", packages: &[], run: house },
    Step { name: "deny", title: "Licences and sources of what is used", packages: &[packages::APP], run: deny },
    Step { name: "clippy", title: "The lints", packages: ALL, run: clippy },
    Step { name: "rust", title: "The tests of the crates, the program and the window", packages: ALL, run: rust },
    Step { name: "ui", title: "The tests of the window's page", packages: ALL, run: ui },
    Step { name: "clients", title: "The stock clients", packages: ALL, run: clients },
];

/// Where steps run: a desktop that is started when the first one needs it.
#[derive(Default)]
struct Place {
    desktop: OnceCell<Desktop>,
}

impl Place {
    fn desktop(&self) -> Result<&Desktop, Failure> {
        if let Some(desktop) = self.desktop.get() {
            return Ok(desktop);
        }
        let desktop = Desktop::for_tests()?;
        Ok(self.desktop.get_or_init(|| desktop))
    }

    /// A program on the desktop of the tests, started in the top folder.
    fn command(&self, like: &Command) -> Result<Command, Failure> {
        let mut command = self.desktop()?.command(like.get_program());
        command.args(like.get_args()).current_dir(like.get_current_dir().unwrap_or_else(|| tools::top()));
        Ok(command)
    }
}

/// Runs all steps, and stops at the first that fails.
pub fn all() -> Result<(), Failure> {
    perform(STEPS.iter())
}

/// Runs one step.
pub fn one(name: &str) -> Result<(), Failure> {
    let step = STEPS.iter().find(|step| step.name == name).ok_or_else(|| Failure::NoSuchStep(name.to_owned()))?;
    perform(std::iter::once(step))
}

/// The steps, for the help.
pub fn steps_in_words() -> String {
    let lines = STEPS.iter().map(|step| format!("  {:<8} {}\n", step.name, step.title));
    format!("\nThe steps:\n{}", lines.collect::<String>())
}

fn perform(steps: impl Iterator<Item = &'static Step> + Clone) -> Result<(), Failure> {
    tools::ensure_node()?;
    let place = Place::default();
    let mut took: Vec<(&Step, Duration)> = Vec::new();
    let start = Instant::now();
    for step in steps {
        println!("\n=== {} ({}) ===", step.title, step.name);
        let start = Instant::now();
        packages::ensure(step.packages)?;
        (step.run)(&place)?;
        took.push((step, start.elapsed()));
    }
    println!("\n=== All passed ===");
    for (step, time) in took {
        println!("{} {}", in_minutes(time), step.title);
    }
    println!("{} in all", in_minutes(start.elapsed()));
    Ok(())
}

fn in_minutes(time: Duration) -> String {
    format!("{:>4}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

fn fmt(_: &Place) -> Result<(), Failure> {
    run(tools::cargo().args(["fmt", "--all", "--check"]))
}

fn house(_: &Place) -> Result<(), Failure> {
    run(tools::cargo().args(["test", "--locked", "--quiet", "--package", "xtask"]))
}

fn deny(_: &Place) -> Result<(), Failure> {
    let deny = || -> Result<Command, Failure> {
        let mut deny = tools::cargo_deny()?;
        // Twice the same crate is only a warning, and there are dozens of them.
        deny.args(["--locked", "--log-level", "error"]);
        Ok(deny)
    };
    run(deny()?.args(["check", "bans", "licenses", "sources"]))?;
    if output_of(deny()?.args(["fetch", "db"])).is_none() {
        println!("The database of security advisories cannot be reached from here, so they are not looked at.");
        return Ok(());
    }
    run(deny()?.args(["check", "--disable-fetch", "advisories"]))
}

/// Everything but xtask, which is built already: together with the others it would get other features, and be built anew.
const WORKSPACE: [&str; 4] = ["--locked", "--workspace", "--exclude", "xtask"];

fn clippy(_: &Place) -> Result<(), Failure> {
    run(tools::cargo().args(["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

/// Builds all that the tests run, the programs among it.
fn build() -> Result<(), Failure> {
    run(tools::cargo().arg("test").args(WORKSPACE).arg("--no-run"))
}

fn rust(place: &Place) -> Result<(), Failure> {
    build()?;
    run(&mut place.command(tools::cargo().arg("test").args(WORKSPACE))?)
}

fn ui(place: &Place) -> Result<(), Failure> {
    tools::ensure_npm_packages("ui")?;
    run(&mut place.command(tools::npm("ui").arg("test"))?)
}

fn clients(place: &Place) -> Result<(), Failure> {
    build()?;
    tools::ensure_npm_packages(CLIENTS)?;
    let python = tools::python_with(&format!("{CLIENTS}/requirements.txt"))?;
    let mut node = Command::new("node");
    node.arg(format!("{CLIENTS}/all.mjs")).arg(tools::target().join("debug/tabwarden")).arg(python);
    run(&mut place.command(&node)?)
}

/// Runs the benchmarks of the main job and of the firewall. Nothing is judged: the figures are for reading.
pub fn bench() -> Result<(), Failure> {
    tools::ensure_node()?;
    packages::ensure(ALL)?;
    let place = Place::default();
    for (package, bench) in [("tabwarden", "main_job"), ("tabwarden-firewall", "seal")] {
        let bench = ["bench", "--locked", "--package", package, "--bench", bench];
        run(tools::cargo().args(bench).arg("--no-run"))?;
        run(&mut place.command(tools::cargo().args(bench))?)?;
    }
    Ok(())
}
