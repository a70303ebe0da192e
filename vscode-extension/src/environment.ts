// Find the Python environment that has the server; make a private one after asking.
import * as vscode from 'vscode';
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
// `python -m` looks for modules in the current folder first, which is the workspace: nothing of that may run.
const NOT_FROM_HERE = 'import sys; sys.path[:] = [p for p in sys.path if p]';
const SERVE = ['-c', `${NOT_FROM_HERE}; from accelopt_lsp.cli.main import main; main()`, 'lsp'];
const PROBE = `${NOT_FROM_HERE}; import accelopt_lsp; sys.exit(0 if sys.version_info >= (3, 10) else 1)`;

export interface FoundServer {
  command: string;
  args: string[];
  why: string;
}

/** The first that has AccelOpt: the setting, the workspace's `.venv`, the path, the private environment. */
export async function findServer(context: vscode.ExtensionContext): Promise<FoundServer | undefined> {
  const configured = vscode.workspace.getConfiguration('accelopt').get<string>('interpreter', '');
  if (configured) {
    if (!(await hasServer(configured))) {
      throw new Error(`accelopt.interpreter (${configured}) is no Python 3.10 or newer that can import accelopt_lsp`);
    }
    return { command: configured, args: SERVE, why: 'accelopt.interpreter' };
  }
  if (vscode.workspace.isTrusted) {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const python = path.join(folder.uri.fsPath, '.venv', 'bin', 'python');
      if (await hasServer(python)) {
        return { command: python, args: SERVE, why: 'the workspace\'s .venv' };
      }
    }
  }
  if (await answers('accelopt-lsp', ['--version'])) {
    return { command: 'accelopt-lsp', args: [], why: 'on the path' };
  }
  const python = privatePython(context);
  return (await hasServer(python)) ? { command: python, args: SERVE, why: 'the extension\'s own environment' } : undefined;
}

const privatePython = (context: vscode.ExtensionContext): string =>
  path.join(context.globalStorageUri.fsPath, 'venv', 'bin', 'python');

/** Ask, then install the bundled server into an environment of the extension's own. Whether there is one now. */
export async function offerEnvironment(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  const python = privatePython(context);
  const install = 'Install';
  const question = 'AccelOpt needs a Python environment for its server. Make one for this extension only?';
  if ((await vscode.window.showInformationMessage(question, install)) !== install) {
    return false;
  }
  const bundled = path.join(context.extensionPath, 'bundled');
  const wheel = fs.existsSync(bundled) ? fs.readdirSync(bundled).find((name) => name.endsWith('.whl')) : undefined;
  const requirement = wheel ? path.join(bundled, wheel) : 'accelopt-lsp';
  const title = 'AccelOpt: installing the server';
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, async () => {
    const folder = path.dirname(path.dirname(python));
    const cwd = context.extensionPath;  // not the workspace: modules are looked for in the current folder first
    await run('python3', ['-m', 'venv', '--clear', folder], { cwd });
    const { stdout } = await run(python, ['-m', 'pip', 'install', '--disable-pip-version-check', requirement], { cwd });
    output.info(stdout);
    return hasServer(python);
  });
}

async function hasServer(python: string): Promise<boolean> {
  return (!path.isAbsolute(python) || fs.existsSync(python)) && answers(python, ['-c', PROBE]);
}

async function answers(command: string, args: string[]): Promise<boolean> {
  return run(command, args, { timeout: 20_000 }).then(() => true, () => false);
}
