// The Pythons of this machine that kernels could see the packages of, and the choice among them.
import * as vscode from 'vscode';
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { NOT_FROM_HERE, hasServer, privatePython } from './environment';
import { chosenPythons } from './python';
import { keep } from './settings';

const run = promisify(execFile);
const VERSIONS = `${NOT_FROM_HERE}
import importlib.metadata as m, json, platform
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
print(json.dumps({n: version(n) for n in ("torch", "triton", "numpy", "accelopt-lsp")} | {"python": platform.python_version()}))`;

export interface Interpreter {
  path: string;
  python: string;
  torch: string;
  triton: string;
  server: string;
}

/** The interpreters that were found, in the order in which the server takes one for kernels where none is set. */
export async function interpreters(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel,
): Promise<Interpreter[]> {
  const trusted = vscode.workspace.isTrusted; // a repository's environment is a program of its author's
  const folders = trusted ? (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath) : [];
  const prefixes = [
    process.env.VIRTUAL_ENV, ...folders.flatMap((folder) => [path.join(folder, '.venv'), path.join(folder, 'venv')]),
    process.env.CONDA_PREFIX,
  ];
  const configured = vscode.workspace.getConfiguration('accelopt').get<string>('python', '');
  const places = [
    ...(configured ? [configured.replace(/^~/, os.homedir())] : []),
    ...Object.values(await chosenPythons(output)),
    ...prefixes.filter((prefix) => prefix).map((prefix) => path.join(String(prefix), 'bin', 'python')),
    privatePython(context),
    ...(process.env.PATH ?? '').split(path.delimiter).map((folder) => path.join(folder, 'python3')),
  ];
  const there = [...new Set(places)].filter((place) => path.isAbsolute(place) && fs.existsSync(place));
  return (await Promise.all(there.map(described))).filter((one) => one !== undefined);
}

async function described(python: string): Promise<Interpreter | undefined> {
  try {
    const { stdout } = await run(python, ['-c', VERSIONS], { timeout: 60_000 });
    const { 'accelopt-lsp': server, ...versions } = JSON.parse(stdout) as Record<string, string>;
    return { path: python, server, ...versions } as Interpreter;
  } catch {
    return undefined;
  }
}

/** Let the person choose the Python whose packages kernels see; where it has the server, that runs in it too. */
export async function chooseInterpreter(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  const enter = { label: `$(edit) ${vscode.l10n.t('Enter a path...')}`, path: '' };
  const items = interpreters(context, output).then((found) => [...found.map((one) => ({
    path: one.path,
    label: one.path.replace(os.homedir(), '~'),
    description: [`Python ${one.python}`, one.torch && `torch ${one.torch}`, one.triton && `Triton ${one.triton}`, one.server && `AccelOpt ${one.server}`]
      .filter(Boolean).join(' · '),
  })), enter]);
  const title = vscode.l10n.t('The Python whose packages your kernels see');
  const placeHolder = vscode.l10n.t('Triton kernels need one with torch and Triton');
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true });
  const python = chosen && (chosen.path || (await vscode.window.showInputBox({
    title, prompt: vscode.l10n.t('The path of a python program'), ignoreFocusOut: true,
    validateInput: (text) => (fs.existsSync(text.trim()) ? undefined : vscode.l10n.t('There is no such file')),
  }))?.trim());
  return Boolean(python) && keep({ python, ...((await hasServer(String(python))) ? { interpreter: python } : {}) });
}
