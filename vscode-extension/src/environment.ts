// Find the Python environment that has the server; make a private one after asking, and keep it at this version.
import * as vscode from 'vscode';
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { openSettings } from './settings';

const run = promisify(execFile);
// `python -m` looks for modules in the current folder first, which is the workspace: nothing of that may run.
const NOT_FROM_HERE = 'import sys; sys.path[:] = [p for p in sys.path if p]';
const SERVE = ['-c', `${NOT_FROM_HERE}; from accelopt_lsp.lsp_command import main; main()`];
const NEW_ENOUGH = 'sys.exit(0 if sys.version_info >= (3, 10) else 1)';
const PROBE = `${NOT_FROM_HERE}; import accelopt_lsp; ${NEW_ENOUGH}`;

/** Kept in the global state: the version of the extension that filled the private environment, and a "don't ask again". */
const FILLED_BY = 'environment.version';
const DECLINED = 'environment.declined';

export interface FoundServer {
  command: string;
  args: string[];
  why: string;
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
    await fill(context, output, vscode.l10n.t('AccelOpt: updating the server')).catch((error: unknown) =>
      output.warn(`The server could not be updated; the one of another version is started: ${error}`));
  }
  return (await hasServer(python)) ? { command: python, args: SERVE, why: 'the extension\'s own environment' } : undefined;
}

/** Ask, then install the bundled server into an environment of the extension's own. Whether there is one now. Who said
 * not to be asked again is asked only after a command of theirs (`asked`). */
export async function offerEnvironment(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel, asked: boolean,
): Promise<boolean> {
  if (context.globalState.get(DECLINED) && !asked) {
    return false;
  }
  const make = vscode.l10n.t('Install');
  const choose = vscode.l10n.t('Choose a Python...');
  const never = vscode.l10n.t('Don\'t Ask Again');
  const question = vscode.l10n.t('AccelOpt needs a Python environment for its server. Make one for this extension only?');
  const answer = await vscode.window.showInformationMessage(question, make, choose, never);
  await context.globalState.update(DECLINED, answer === never || undefined);
  if (answer === choose) {
    await openSettings('accelopt.interpreter');
  }
  return answer === make && fill(context, output, vscode.l10n.t('AccelOpt: installing the server'), true);
}

/** Install the server of this extension into the private environment, or into a new one in its place (`anew`); without
 * `anew` what is there stays when that fails. False where the person cancelled it. */
async function fill(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel, title: string, anew = false,
): Promise<boolean> {
  const python = privatePython(context);
  const bundled = path.join(context.extensionPath, 'bundled');
  const wheel = fs.existsSync(bundled) ? fs.readdirSync(bundled).find((name) => name.endsWith('.whl')) : undefined;
  const requirement = wheel ? path.join(bundled, wheel) : 'accelopt-lsp';
  const cwd = context.extensionPath; // not the workspace: modules are looked for in the current folder first
  if (anew && !(await answers('python3', ['-c', `import sys; ${NEW_ENOUGH}`]))) {
    throw new Error(vscode.l10n.t('there is no python3 3.10 or newer on the path; set accelopt.interpreter'));
  }
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, async (_, token) => {
    const stop = new AbortController();
    const listening = token.onCancellationRequested(() => stop.abort());
    try {
      const options = { cwd, signal: stop.signal, maxBuffer: 1 << 26 };
      if (anew) {
        await run('python3', ['-m', 'venv', '--clear', path.dirname(path.dirname(python))], options);
      }
      const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--upgrade', requirement];
      output.info((await run(python, pip, options)).stdout);
    } catch (error) {
      if (token.isCancellationRequested) {
        return false;
      }
      throw error;
    } finally {
      listening.dispose();
    }
    await context.globalState.update(FILLED_BY, versionOf(context));
    return hasServer(python);
  });
}

const versionOf = (context: vscode.ExtensionContext): string => String(context.extension.packageJSON.version);

const privatePython = (context: vscode.ExtensionContext): string =>
  path.join(context.globalStorageUri.fsPath, 'venv', 'bin', 'python');

async function hasServer(python: string): Promise<boolean> {
  return (!path.isAbsolute(python) || fs.existsSync(python)) && answers(python, ['-c', PROBE]);
}

async function answers(command: string, args: string[]): Promise<boolean> {
  return run(command, args, { timeout: 60_000 }).then(() => true, () => false);
}
