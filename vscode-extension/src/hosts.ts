// Adding a host that kernels run on: one of ~/.ssh/config, asked at once what it has.
import * as vscode from 'vscode';
import * as fs from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Server } from './server';
import { keep } from './settings';

interface Reached {
  reachable: boolean;
  error: string;
  python: string;
  versions: Record<string, string>;
  devices: string[];
}

/** The names of `Host` lines in an SSH configuration that stand for one host each. */
export const hostNames = (config: string): string[] => [...new Set([...config.matchAll(/^\s*Host(?:\s*=\s*|\s+)(.+)$/gim)]
  .flatMap(([, names]) => names.trim().split(/\s+/)).filter((name) => !/[*?!#"]/.test(name)))];

/** Let the person choose a host, ask it what it has, then whether kernels run there from now on. */
export async function addHost(server: Server): Promise<void> {
  const config = await fs.readFile(path.join(os.homedir(), '.ssh', 'config'), 'utf8').catch(() => '');
  const enter = vscode.l10n.t('$(edit) Enter user@host...');
  const title = vscode.l10n.t('Add a host that kernels run on, over SSH');
  const chosen = await vscode.window.showQuickPick([...hostNames(config), enter],
    { title, placeHolder: vscode.l10n.t('The hosts of ~/.ssh/config; nothing is installed there') });
  const ssh = chosen === enter
    ? (await vscode.window.showInputBox({ title, prompt: 'user@host', ignoreFocusOut: true }))?.trim()
    : chosen;
  const python = ssh && await vscode.window.showInputBox({
    title, value: 'python3', ignoreFocusOut: true,
    prompt: vscode.l10n.t('The Python on that host (3.10 or newer), with torch and Triton or a Neuron SDK where it has devices'),
  });
  if (!ssh || !python) {
    return;
  }
  const name = ssh.replace(/^.*@/, '').replace(/[^A-Za-z0-9_.-]/g, '-');
  const hosts = vscode.workspace.getConfiguration('accelopt').inspect<object>('hosts')?.globalValue ?? {};
  await keep({ hosts: { ...hosts, [name]: { ssh, python } } });
  const asking = { location: vscode.ProgressLocation.Notification, title: vscode.l10n.t('AccelOpt: asking {0}', name) };
  const host = await vscode.window.withProgress(asking, async () => server.execute<Reached>('testHost', { id: name }));
  if (host?.reachable) {
    const has = [`Python ${host.python}`, ...Object.entries(host.versions).map((version) => version.join(' ')), ...host.devices];
    const use = vscode.l10n.t('Run Kernels There');
    if ((await vscode.window.showInformationMessage(vscode.l10n.t('{0} has {1}.', name, has.join(', ')), use)) === use) {
      await keep({ host: name });
    }
  } else if (host) {
    const again = vscode.l10n.t('Add It Again...');
    const remove = vscode.l10n.t('Remove It');
    const answer = await vscode.window.showErrorMessage(vscode.l10n.t('{0} cannot be used: {1}', name, host.error), again, remove);
    if (answer === again) {
      await addHost(server);
    } else if (answer === remove) {
      await keep({ hosts: Object.keys(hosts).length ? hosts : undefined });
    }
  }
}
