//! The `tabwarden` program; everything it does is in the library beside it.

fn main() -> std::process::ExitCode {
    tabwarden_app::main(tabwarden_app::tabwarden)
}
