//! `entourage completion`: the completion script of a shell.

use std::io::Write;

use anyhow::Result;
use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};

use super::help;

/// The shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// source <(entourage completion bash)
    Bash,
    /// source <(entourage completion zsh)
    Zsh,
    /// entourage completion fish | source
    Fish,
    /// entourage completion powershell | Out-String | Invoke-Expression
    Powershell,
}

/// Flags of `entourage completion`.
#[derive(Args, Clone, Debug)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Target,
}

/// Runs the command; the script goes to `out`.
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &CompletionArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    out.write_all(&script(args.shell))?;
    out.flush()?;
    Ok(())
}

/// The script. It is made as a whole: the generator ends the process when it cannot write.
#[must_use]
pub fn script(target: Target) -> Vec<u8> {
    let shell = match target {
        Target::Bash => Shell::Bash,
        Target::Zsh => Shell::Zsh,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    generate(shell, &mut help::command(), "entourage", &mut script);
    script
}
