//! Connecting the clients: what to run or to write, and writing it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tabwarden_contract::ClientSnippet;

/// The name under which Tabwarden stands in a client's configuration.
const ENTRY: &str = "tabwarden";

/// The clients whose configuration is known.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientName {
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
}

/// Why a configuration was not written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is no home folder.
    #[error(
        "The system names no home folder, so the client's configuration cannot be found. Run this without --write and add the text yourself."
    )]
    NoHome,
    /// The file is there but not of the form that is expected.
    #[error("{} is not plain {format} ({problem}), so it was left as it is. Run this without --write and add the text yourself.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// `JSON` or `TOML`.
        format: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Reading or writing failed.
    #[error("{} could not be written ({source}). Nothing was changed.", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// How a client starts the bridge.
#[derive(Clone, Debug)]
pub struct BridgeCommand {
    /// The executable.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl BridgeCommand {
    /// The bridge of the `tabwarden` that lies in this program's folder, for the socket and data folder that were named on the command line.
    pub fn of_this_program(places: &crate::cli::PlaceArgs) -> Self {
        let beside = |here: PathBuf| here.with_file_name(if cfg!(windows) { "tabwarden.exe" } else { "tabwarden" });
        let program = std::env::current_exe().map_or_else(|_| ENTRY.to_owned(), |p| beside(p).display().to_string());
        let mut args = vec!["mcp".to_owned()];
        for (option, path) in [("--socket", &places.socket), ("--data-dir", &places.data_dir)] {
            if let Some(path) = path {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                args.extend([option.to_owned(), path.display().to_string()]);
            }
        }
        Self { program, args }
    }

    fn to_json(&self, with_type: bool) -> serde_json::Value {
        let mut entry = serde_json::Map::new();
        if with_type {
            entry.insert("type".into(), "stdio".into());
        }
        entry.insert("command".into(), self.program.clone().into());
        entry.insert("args".into(), self.args.clone().into());
        entry.into()
    }
}

/// Where a client keeps its servers.
enum Format {
    /// A JSON file, with the servers under this member.
    Json { servers: &'static str, with_type: bool },
    /// Codex's TOML file.
    Toml,
}

impl ClientName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::Cursor, Self::Vscode, Self::Codex, Self::Gemini];

    fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
        }
    }

    fn format(self) -> Format {
        match self {
            Self::ClaudeCode => Format::Json { servers: "mcpServers", with_type: true },
            Self::Cursor | Self::Gemini => Format::Json { servers: "mcpServers", with_type: false },
            Self::Vscode => Format::Json { servers: "servers", with_type: true },
            Self::Codex => Format::Toml,
        }
    }

    /// The client's configuration file, below these folders.
    fn file(self, home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => config.join("Code/User/mcp.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::Gemini => home.join(".gemini/settings.json"),
        }
    }

    /// What to run or to write to connect this client.
    pub fn snippet(self, bridge: &BridgeCommand) -> ClientSnippet {
        let (text, file) = match self {
            Self::ClaudeCode => (shell_line(&["claude", "mcp", "add", "--scope", "user", ENTRY, "--"], bridge), None),
            _ => {
                let file = dirs::home_dir().zip(dirs::config_dir()).map(|(home, config)| self.file(&home, &config));
                (self.added_to("", bridge).unwrap_or_default(), file.map(|f| f.display().to_string()))
            }
        };
        ClientSnippet { id: self.id().into(), name: self.display_name().into(), text, file }
    }

    /// Adds the entry to the client's configuration, keeping all else in it and a backup beside it.
    pub fn write(self, bridge: &BridgeCommand) -> Result<PathBuf, SetupError> {
        let home = dirs::home_dir().ok_or(SetupError::NoHome)?;
        let config = dirs::config_dir().ok_or(SetupError::NoHome)?;
        self.write_below(&home, &config, bridge)
    }

    fn write_below(self, home: &Path, config: &Path, bridge: &BridgeCommand) -> Result<PathBuf, SetupError> {
        let path = self.file(home, config);
        // A configuration that is a link stays one: what it points to is written.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let io = |source| SetupError::Io { path: path.clone(), source };
        let before = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(io(error)),
        };
        let after = self.added_to(&before, bridge).map_err(|(format, problem)| SetupError::Unreadable {
            path: path.clone(),
            format,
            problem,
        })?;
        if after == before {
            return Ok(path);
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        if !before.is_empty() {
            std::fs::copy(&path, with_suffix(&path, ".before-tabwarden")).map_err(io)?;
        }
        // Written beside it and moved into place, so that a crash leaves the old file or the new one.
        let new = with_suffix(&path, ".tabwarden-new");
        std::fs::write(&new, &after).map_err(io)?;
        if let Ok(meta) = std::fs::metadata(&path) {
            std::fs::set_permissions(&new, meta.permissions()).map_err(io)?;
        }
        std::fs::rename(&new, &path).map_err(io)?;
        Ok(path)
    }

    /// The configuration with the entry added, or the format and why it could not be read.
    fn added_to(self, before: &str, bridge: &BridgeCommand) -> Result<String, (&'static str, String)> {
        match self.format() {
            Format::Json { servers, with_type } => {
                json_with_entry(before, servers, bridge.to_json(with_type)).map_err(|problem| ("JSON", problem))
            }
            Format::Toml => toml_with_entry(before, bridge).map_err(|problem| ("TOML", problem)),
        }
    }
}

fn json_with_entry(before: &str, servers: &str, entry: serde_json::Value) -> Result<String, String> {
    let mut root: serde_json::Value = if before.trim().is_empty() {
        serde_json::json!({})
    } else {
        serde_json::from_str(before).map_err(|error| error.to_string())?
    };
    let members = root.as_object_mut().ok_or("it holds no object")?;
    let list = members.entry(servers).or_insert_with(|| serde_json::json!({}));
    let list = list.as_object_mut().ok_or_else(|| format!("{servers} is no object"))?;
    list.insert(ENTRY.to_owned(), entry);
    let text = serde_json::to_string_pretty(&root).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn toml_with_entry(before: &str, bridge: &BridgeCommand) -> Result<String, String> {
    let mut root: toml_edit::DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let servers = root.entry("mcp_servers").or_insert_with(|| {
        let mut table = toml_edit::Table::new();
        table.set_implicit(true);
        table.into()
    });
    let inline = servers.is_inline_table();
    let servers = servers.as_table_like_mut().ok_or("mcp_servers is no table")?;
    let mut entry = toml_edit::Table::new();
    entry["command"] = toml_edit::value(&bridge.program);
    entry["args"] = toml_edit::value(bridge.args.iter().collect::<toml_edit::Array>());
    let entry = if inline { toml_edit::value(entry.into_inline_table()) } else { entry.into() };
    servers.insert(ENTRY, entry);
    Ok(root.to_string())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A command line for a POSIX shell.
fn shell_line(front: &[&str], bridge: &BridgeCommand) -> String {
    let quote = |word: &str| -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = front.iter().map(|w| quote(w)).chain([quote(&bridge.program)]);
    words.chain(bridge.args.iter().map(|w| quote(w))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge() -> BridgeCommand {
        BridgeCommand { program: "/opt/my apps/tabwarden".into(), args: vec!["mcp".into()] }
    }

    #[test]
    fn the_entry_is_added_and_all_else_is_kept() {
        fn check(client: ClientName, before: &str, expect: &str) {
            let home = tempfile::tempdir().expect("home");
            let file = client.file(home.path(), home.path());
            if !before.is_empty() {
                std::fs::create_dir_all(file.parent().expect("folder")).expect("folder");
                std::fs::write(&file, before).expect("file");
            }
            for _again in 0..2 {
                client.write_below(home.path(), home.path(), &bridge()).expect("written");
                assert_eq!(std::fs::read_to_string(&file).expect("file"), expect);
            }
        }
        let cursor = "{\n  \"mcpServers\": {\n    \"tabwarden\": {\n      \"command\": \"/opt/my apps/tabwarden\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n";
        check(ClientName::Cursor, "", cursor);
        check(
            ClientName::Vscode,
            r#"{"zeta":1,"servers":{"other":{"command":"x"}},"alpha":[2]}"#,
            "{\n  \"zeta\": 1,\n  \"servers\": {\n    \"other\": {\n      \"command\": \"x\"\n    },\n    \"tabwarden\": {\n      \"type\": \"stdio\",\n      \"command\": \"/opt/my apps/tabwarden\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  },\n  \"alpha\": [\n    2\n  ]\n}\n",
        );
        check(
            ClientName::Codex,
            "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n",
            "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[mcp_servers.tabwarden]\ncommand = \"/opt/my apps/tabwarden\"\nargs = [\"mcp\"]\n",
        );
    }

    #[test]
    fn an_inline_table_stays_one() {
        let after = toml_with_entry("mcp_servers = { other = { command = \"y\" } }\n", &bridge()).expect("read");
        let root: toml_edit::DocumentMut = after.parse().expect("TOML");
        assert_eq!(root["mcp_servers"]["tabwarden"]["args"][0].as_str(), Some("mcp"));
        assert_eq!(root["mcp_servers"]["other"]["command"].as_str(), Some("y"));
        assert_eq!(after.lines().count(), 1, "{after}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_as_it_is() {
        let home = tempfile::tempdir().expect("home");
        let file = ClientName::Gemini.file(home.path(), home.path());
        std::fs::create_dir_all(file.parent().expect("folder")).expect("folder");
        for broken in ["{ // comment\n}", "[1]", r#"{"mcpServers": 3}"#] {
            std::fs::write(&file, broken).expect("file");
            let error = ClientName::Gemini.write_below(home.path(), home.path(), &bridge()).expect_err("refused");
            assert!(error.to_string().contains("left as it is"), "{error}");
            assert_eq!(std::fs::read_to_string(&file).expect("file"), broken);
        }
    }

    #[test]
    fn a_command_line_is_quoted() {
        assert_eq!(
            ClientName::ClaudeCode.snippet(&bridge()).text,
            "claude mcp add --scope user tabwarden -- '/opt/my apps/tabwarden' mcp"
        );
    }
}
