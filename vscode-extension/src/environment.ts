// Find the Python that has the server; make a private environment where the person wants one, and keep it at this version.
import * as vscode from 'vscode';
import { execFile, type ExecFileOptions } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
// `python -m` looks for modules in the current folder first, which is the workspace: nothing of that may run.
export const NOT_FROM_HERE = 'import sys; sys.path[:] = [p for p in sys.path if p]';
const SERVE = ['-c', `${NOT_FROM_HERE}; from accelopt_lsp.lsp_command import main; main()`];
const NEW_ENOUGH = 'sys.exit(0 if sys.version_info >= (3, 10) else 1)';
const PROBE = `${NOT_FROM_HERE}; import accelopt_lsp; ${NEW_ENOUGH}`;

/** A build for CPUs, by its local version: PyPI's brings ten times as much, for CUDA. Triton by itself, since that names none. */
export const TORCH = ['torch==2.13.0+cpu', '--extra-index-url', 'https://download.pytorch.org/whl/cpu'];
export const TRITON = ['triton==3.7.1'];

/** Kept in the global state: the version of the extension that filled the private environment. */
const FILLED_BY = 'environment.version';

export interface FoundServer {
  command: string;
  args: string[];
  why: string;
}

/** The program and arguments that serve coding agents below a folder, from where the server comes from. */
export function mcpCommand({ command, args }: FoundServer, folder: string): [string, string[]] {
  const own = ['mcp', '--root', folder];
  return args.length
    ? [command, ['-c', `${NOT_FROM_HERE}; from accelopt_lsp.cli.main import main; main()`, ...own]]
    : [command.replace(/-lsp$/, ''), own];
}

/** What is wrong with the setting, in words for a person. */
export class WrongInterpreter extends Error {}

/** The first that has AccelOpt: the setting, the workspace's `.venv`, the path, the private environment. */
export async function findServer(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel,
): Promise<FoundServer | undefined> {
  const configured = vscode.workspace.getConfiguration('accelopt').get<string>('interpreter', '');
  if (configured) {
    if (!(await hasServer(configured))) {
      throw new WrongInterpreter(
        vscode.l10n.t('accelopt.interpreter ({0}) is no Python 3.10 or newer that can import accelopt_lsp.', configured));
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
  if (!(await hasServer(python))) {
    return undefined;
  }
  if (context.globalState.get(FILLED_BY) !== versionOf(context)) {
    await fill(context, output, vscode.l10n.t('AccelOpt: updating the server'), [server(context)]).catch((error: unknown) =>
      output.warn(`The server could not be updated; the one of another version is started: ${error}`));
  }
  return (await hasServer(python)) ? { command: python, args: SERVE, why: 'the extension\'s own environment' } : undefined;
}

/** Make the private environment anew, with the server in it and, where wanted, torch and Triton. False: it was cancelled. */
export async function install(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel, { torch = false } = {},
): Promise<boolean> {
  return fill(context, output, vscode.l10n.t('AccelOpt: installing the server'),
    [...(torch ? [TORCH, TRITON] : []), server(context)], await basePython());
}

/** Install torch and Triton beside the server in the private environment. False: it was cancelled. */
export async function installTorch(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  return fill(context, output, vscode.l10n.t('AccelOpt: installing torch and Triton'), [TORCH, TRITON]);
}

/** Run pip for each of `packages` in the private environment, made anew by `base` where that is given: without it what is
 * there stays when that fails. False where the person cancelled it. */
async function fill(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel, title: string, packages: string[][], base?: string,
): Promise<boolean> {
  const python = privatePython(context);
  const progress = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  return vscode.window.withProgress(progress, async (shown, token) => {
    const stop = new AbortController();
    const listening = token.onCancellationRequested(() => stop.abort());
    // not in the workspace: modules are looked for in the current folder first
    const options = { cwd: context.extensionPath, signal: stop.signal, maxBuffer: 1 << 26 };
    try {
      if (base) {
        await run(base, ['-m', 'venv', '--clear', path.dirname(path.dirname(python))], options);
      }
      for (const wanted of packages) {
        const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--progress-bar', 'off', '--upgrade', ...wanted];
        await told(python, pip, options, (line) => {
          output.info(line);
          shown.report({ message: line.trim().slice(0, 80) });
        });
      }
    } catch (error) {
      if (token.isCancellationRequested) {
        return false;
      }
      throw error;
    } finally {
      listening.dispose();
    }
    if (packages.some(([first]) => first === server(context)[0])) {
      await context.globalState.update(FILLED_BY, versionOf(context));
    }
    return hasServer(python);
  });
}

/** What pip installs the server from: the wheel in the extension, else the package of that name. */
function server(context: vscode.ExtensionContext): string[] {
  const bundled = path.join(context.extensionPath, 'bundled');
  const wheel = fs.existsSync(bundled) ? fs.readdirSync(bundled).find((name) => name.endsWith('.whl')) : undefined;
  return [`${wheel ? path.join(bundled, wheel) : 'accelopt-lsp'}[model,mcp]`];
}

/** The newest Python on the path that can have the server. */
async function basePython(): Promise<string> {
  for (const name of ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10']) {
    if (await answers(name, ['-c', `import sys; ${NEW_ENOUGH}`])) {
      return name;
    }
  }
  throw new Error(vscode.l10n.t('there is no Python 3.10 or newer on the path; install one, or choose a Python that has AccelOpt'));
}

/** Run a program, and call `line` for each line that it writes. */
async function told(command: string, args: string[], options: ExecFileOptions, line: (text: string) => void): Promise<void> {
  const ending = run(command, args, options);
  let rest = '';
  ending.child.stdout?.on('data', (data: unknown) => {
    const lines = (rest + String(data)).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(line);
  });
  await ending;
}

const versionOf = (context: vscode.ExtensionContext): string => String(context.extension.packageJSON.version);

export const privatePython = (context: vscode.ExtensionContext): string =>
  path.join(context.globalStorageUri.fsPath, 'venv', 'bin', 'python');

export async function hasServer(python: string): Promise<boolean> {
  return (!path.isAbsolute(python) || fs.existsSync(python)) && answers(python, ['-c', PROBE]);
}

async function answers(command: string, args: string[]): Promise<boolean> {
  return run(command, args, { timeout: 60_000 }).then(() => true, () => false);
}
