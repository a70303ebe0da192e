// The guide of a first run: its steps tick when they are true, as the server and the extension know them.
import * as vscode from 'vscode';
import { interpreters } from './interpreter';
import type { Server } from './server';
import { keep } from './settings';
import type { Status } from './states';

/** The steps that the extension knows of; the others come with the server's status. */
const OWN = { python: 'python', server: 'server' } as const;

/** The steps that are true. */
function reached({ state, reached: told = [] }: Status): string[] {
  const running = !['starting', 'not-installed', 'wrong-interpreter', 'stopped'].includes(state);
  const found = running || state === 'stopped';
  return [...(found ? [OWN.python] : []), ...(running ? [OWN.server] : []), ...told];
}

const set = (step: string, value: boolean): Thenable<unknown> =>
  vscode.commands.executeCommand('setContext', `accelopt.reached.${step}`, value);

/** Tick the steps that are true now; one that was true once stays ticked, as VS Code remembers it. */
export function tick(status: Status): void {
  reached(status).forEach((step) => void set(step, true));
}

/** A tab that is only looked at is replaced by the next: the guide and the example stay. */
const KEEP = 'workbench.action.keepEditor';

/** Open the guide. VS Code ticks a step when its key becomes true, and one that was true before it read the guide never. */
export async function showGuide(status: Status): Promise<void> {
  await Promise.all(reached(status).map((step) => set(step, false)));
  await vscode.commands.executeCommand('workbench.action.openWalkthrough', 'accelopt.accelopt#accelopt.start', false);
  await vscode.commands.executeCommand(KEEP);
  tick(status);
}

/** Open the example that the kernels' Python can run: Triton's where it has Triton, else NKI's, which needs nothing. */
export async function openExample(context: vscode.ExtensionContext, output: vscode.LogOutputChannel, server: Server): Promise<void> {
  const [usual] = await interpreters(context, output);
  if ((await server.execute<{ uri?: string }>('openExample', { id: usual?.torch && usual.triton ? 'triton' : 'nki' }))?.uri) {
    await vscode.commands.executeCommand(KEEP);
  }
}

/** Open the page that says which functions are kernels. */
export async function showKernels(context: vscode.ExtensionContext): Promise<void> {
  await vscode.commands.executeCommand('markdown.showPreview', vscode.Uri.joinPath(context.extensionUri, 'walkthrough', 'kernels.md'));
}

interface Target extends vscode.QuickPickItem {
  setting: string;
  value: string;
}

/** Let the person choose what costs are stated for, of each kind of kernel. */
export async function chooseTarget(context: vscode.ExtensionContext): Promise<void> {
  const configuration = vscode.workspace.getConfiguration('accelopt');
  const properties = context.extension.packageJSON.contributes.configuration.properties as Record<string, { enum: string[] }>;
  const items = (setting: string, dialect: string): Target[] => properties[`accelopt.${setting}`].enum.map((value) => ({
    setting, value,
    label: `${configuration.get(setting) === value ? '$(check) ' : ''}${value || vscode.l10n.t('as the file needs')}`,
    description: vscode.l10n.t('for {0} kernels', dialect),
  }));
  const title = vscode.l10n.t('The hardware that the cost of a kernel is stated for');
  const chosen = await vscode.window.showQuickPick(
    [...items('target.triton', 'Triton'), ...items('target.nki', 'NKI')], { title, matchOnDescription: true });
  if (chosen) {
    await keep({ [chosen.setting]: chosen.value });
  }
}
