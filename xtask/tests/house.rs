//! The rules of the house that no compiler knows: which crate may use which, how long a file may be, what things are
//! called, and that nothing here leads to somebody's own machine.
//!
//! They stand in xtask, since here they cost no build of the window.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More is seldom one concept.
const MAX_LINES: usize = 600;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the top folder")
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(top()).output().expect("it starts");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The files of the repository: those that git knows and those that it would take.
fn files() -> Vec<PathBuf> {
    // Continuous integration often runs as another user than the one who cloned, which git takes for an attack.
    let anyones = ["-c", "safe.directory=*"];
    let listed = output("git", &[&anyones[..], &["ls-files", "--cached", "--others", "--exclude-standard"]].concat());
    let files: Vec<PathBuf> = listed.lines().map(PathBuf::from).filter(|path| top().join(path).is_file()).collect();
    assert!(files.iter().any(|path| path == Path::new("Cargo.toml")), "this is no checkout: {listed}");
    files
}

/// The source files that a person writes, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let written = ["rs", "ts", "svelte", "js", "mjs", "py", "sh"];
    let is_source = |path: &PathBuf| path.extension().and_then(|e| e.to_str()).is_some_and(|e| written.contains(&e));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(top().join(&path)).expect("a source file is text");
        (path, text)
    };
    files().into_iter().filter(is_source).map(read).collect()
}

type Arrows = BTreeSet<(String, String)>;

/// The arrows that ARCHITECTURE.md allows: a line for each crate in its block named `arrows`, with those it may use.
fn allowed_arrows(architecture: &str) -> Arrows {
    let block = architecture.split("```arrows\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.expect("ARCHITECTURE.md has a block named arrows");
    let mut arrows = Arrows::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (from, to) = line.split_once("->").unwrap_or_else(|| panic!("'{line}' has no arrow"));
        arrows.extend(to.split_whitespace().map(|to| (from.trim().to_owned(), to.to_owned())));
    }
    arrows
}

/// The arrows that the manifests draw: dependencies of every kind between crates of this workspace.
fn drawn_arrows(metadata: &str) -> Arrows {
    let metadata: serde_json::Value = serde_json::from_str(metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    // As the folders are called, without what all of our packages have in front.
    let name = |value: &serde_json::Value| {
        let name = value["name"].as_str().expect("a name");
        name.strip_prefix("tabwarden-").unwrap_or(name).to_owned()
    };
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let mut arrows = Arrows::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let (from, to) = (name(package), name(dependency));
            // A crate may turn on its own features for its own tests.
            if ours.contains(&to) && from != to {
                arrows.insert((from, to));
            }
        }
    }
    arrows
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let architecture = std::fs::read_to_string(top().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let metadata = output(&cargo, &["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let (allowed, drawn) = (allowed_arrows(&architecture), drawn_arrows(&metadata));
    let undrawn: Vec<_> = allowed.difference(&drawn).collect();
    let unlisted: Vec<_> = drawn.difference(&allowed).collect();
    assert!(unlisted.is_empty(), "ARCHITECTURE.md does not allow these dependencies: {unlisted:?}");
    assert!(undrawn.is_empty(), "ARCHITECTURE.md lists these dependencies, which are gone: {undrawn:?}");
}

#[test]
fn an_arrow_of_any_kind_is_seen() {
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let metadata = r#"{"packages": [
        {"name": "tabwarden", "dependencies": [{"name": "tabwarden-b", "kind": null}, {"name": "serde", "kind": null}]},
        {"name": "tabwarden-b", "dependencies": [{"name": "c", "kind": "dev"}, {"name": "tabwarden-b", "kind": "dev"}]},
        {"name": "c", "dependencies": [{"name": "tabwarden", "kind": "build"}, {"name": "tabwarden-b", "kind": null}]}]}"#;
    let expect = Arrows::from([arrow("tabwarden", "b"), arrow("b", "c"), arrow("c", "tabwarden"), arrow("c", "b")]);
    assert_eq!(drawn_arrows(metadata), expect);
    let architecture = "Text\n```arrows\ntabwarden -> b\nb -> c\nc -> tabwarden b\nd ->\n```\nx -> y\n";
    assert_eq!(allowed_arrows(architecture), expect);
}

#[test]
fn no_file_is_too_long() {
    let lines = |text: &String| text.lines().count();
    let long: Vec<_> =
        sources().into_iter().filter(|(_, text)| lines(text) > MAX_LINES).map(|(path, _)| path).collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines, so more than one concept: {long:?}");
}

/// Words that say nothing of what a thing is.
const EMPTY_WORDS: [&str; 4] = ["manager", "service", "helper", "util"];

/// The names of a line's declarations.
fn declared(line: &str) -> impl Iterator<Item = &str> {
    const KINDS: [&str; 7] = ["struct", "enum", "trait", "type", "class", "interface", "mod"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let code = line.trim_start();
    let code = if ["//", "*", "#", "\""].iter().any(|start| code.starts_with(start)) { "" } else { code };
    let words: Vec<&str> = code.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let names: Vec<&str> = words.windows(2).filter(|pair| KINDS.contains(&pair[0])).map(|pair| pair[1]).collect();
    names.into_iter()
}

fn says_nothing(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    EMPTY_WORDS.iter().any(|word| name.contains(word))
}

#[test]
fn names_say_what_a_thing_is() {
    for (path, text) in sources() {
        let file = path.file_stem().and_then(|stem| stem.to_str()).expect("a file name");
        assert!(!says_nothing(file), "{}: name it after what is in it", path.display());
        for (number, line) in text.lines().enumerate() {
            let empty = declared(line).find(|name| says_nothing(name));
            assert_eq!(empty, None, "{}:{}: name it after what it is", path.display(), number + 1);
        }
    }
}

#[test]
fn a_name_that_says_nothing_is_seen() {
    let bad = |line: String| declared(&line).any(says_nothing);
    for word in EMPTY_WORDS {
        assert!(bad(format!("pub struct Tab_{word} {{")));
        assert!(bad(format!("export class Browser{}s {{", word.to_uppercase())));
        assert!(bad(format!("    pub(crate) mod {word}s;")));
        // Other people's names are theirs.
        assert!(!bad(format!("pub struct Tab(Box<dyn tower::{word}>);")));
        assert!(!bad(format!("// the type {word} of the browser")));
    }
}

#[test]
fn nothing_leads_to_somebodys_machine() {
    // Put together here, so that this file passes.
    let paths = [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/wo", "rk/"]].map(|parts| parts.concat());
    let hosts = [["registry.npm", "js.org"], ["pypi", ".org"], ["index.crates", ".io"]].map(|parts| parts.concat());
    for path in files() {
        // Pictures are no text.
        let Ok(text) = std::fs::read_to_string(top().join(&path)) else { continue };
        let found = paths.iter().chain(&hosts).find(|word| text.contains(word.as_str()));
        assert_eq!(found, None, "in {}", path.display());
    }
}
