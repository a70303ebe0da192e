//! Starts `accelopt-lsp` for Python files in Zed: the program of the settings, else the one on the worktree's path.

use zed_extension_api::{self as zed, serde_json::Value, settings::LspSettings, LanguageServerId, Result, Worktree};

const PROGRAM: &str = "accelopt-lsp";

struct AccelOpt;

impl zed::Extension for AccelOpt {
    fn new() -> Self {
        AccelOpt
    }

    fn language_server_command(&mut self, server: &LanguageServerId, worktree: &Worktree) -> Result<zed::Command> {
        let binary = LspSettings::for_worktree(server.as_ref(), worktree)?.binary;
        let (path, arguments) = binary.map_or((None, None), |binary| (binary.path, binary.arguments));
        let missing = || format!("{PROGRAM} is not on the path: install accelopt-lsp, or name it in lsp.accelopt.binary.path");
        Ok(zed::Command {
            command: path.or_else(|| worktree.which(PROGRAM)).ok_or_else(missing)?,
            args: arguments.unwrap_or_default(),
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        Ok(LspSettings::for_worktree(server.as_ref(), worktree)?.initialization_options)
    }
}

zed::register_extension!(AccelOpt);
