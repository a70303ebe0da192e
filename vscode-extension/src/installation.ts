// Installing the server, and torch and Triton for kernels, as the person asked for; sizes are said before.
import * as vscode from 'vscode';
import { hasServer, install, installTorch, privatePython } from './environment';
import { interpreters } from './interpreter';
import { keep } from './settings';
import { tell } from './states';

/** Kept in the global state: the person wants to hear no more of it by itself. */
const DECLINED = 'environment.declined';

/** Say that there is no server, with what mends that; a person who declined is not told again. */
export async function offerInstallation(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<void> {
  if (context.globalState.get(DECLINED)) {
    return;
  }
  const torch = (await interpreters(context, output)).find((one) => one.torch && one.triton);
  const message = vscode.l10n.t('Install AccelOpt\'s server into an environment of its own (0.1 GB)?');
  const more = torch
    ? vscode.l10n.t('Triton kernels can see torch {0} and Triton {1} of {2}.', torch.torch, torch.triton, torch.path)
    : vscode.l10n.t('Triton kernels need torch and Triton too: about 0.4 GB to fetch, 1.7 GB on disk.');
  const never = vscode.l10n.t('Never');
  if ((await tell('not-installed', `${message} ${more}`, [never])) === never) {
    await context.globalState.update(DECLINED, true);
  }
}

/** Install the server alone into the private environment, made anew. Whether it is there now. */
export function installServer(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  return told(output, async () => (await install(context, output)) && seeTorch(context, output));
}

/** Install torch and Triton into the private environment, made with the server where there is none. */
export function installPackages(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  return told(output, async () => {
    const there = await hasServer(privatePython(context));
    return ((await (there ? installTorch(context, output) : install(context, output, { torch: true })))) && seeTorch(context, output);
  });
}

/** Name a Python with torch in the settings where the server would take one without it for kernels. */
async function seeTorch(context: vscode.ExtensionContext, output: vscode.LogOutputChannel): Promise<boolean> {
  const [usual, ...others] = await interpreters(context, output);
  const torch = usual?.torch ? undefined : others.find((one) => one.torch && one.triton);
  if (torch) {
    await keep({ python: torch.path });
  }
  return true;
}

async function told(output: vscode.LogOutputChannel, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    output.error(`The installation failed: ${error}`);
    const lines = (error instanceof Error ? error.message : String(error)).trim().split('\n');
    void tell('not-installed', vscode.l10n.t('AccelOpt could not install it: {0}', lines.at(-1) ?? ''));
    return false;
  }
}
