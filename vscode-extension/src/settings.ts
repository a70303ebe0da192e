// The extension's settings: the server's, as a person set them; a way to them; and answers that are kept there.
import * as vscode from 'vscode';
import { settings } from '../../accelopt_lsp/accelopt_lsp/settings/schema.json';

/** The server's settings by the names that they have after `accelopt.`; a table that people add names to is one. */
const NAMES = [...new Set(settings.map(({ name }) => name.split('.NAME.')[0]))];

/** A value, or a table of them. */
interface Table {
  [name: string]: unknown;
}

/** What the person or the workspace set, in tables as in a file; null for the others, whose defaults would win over one. */
export function serverSettings(): Table {
  const configuration = vscode.workspace.getConfiguration('accelopt');
  const isSet = (name: string) => {
    const { globalValue, workspaceValue, workspaceFolderValue } = configuration.inspect(name) ?? {};
    return [globalValue, workspaceValue, workspaceFolderValue].some((value) => value !== undefined);
  };
  const all: Table = {};
  for (const name of NAMES) {
    const tables = name.split('.');
    const field = tables.pop() ?? '';
    const table = tables.reduce((outer, inner) => (outer[inner] ??= {}) as Table, all);
    table[field] = isSet(name) ? configuration.get(name) : null;
  }
  return all;
}

/** Keep values in the person's own settings (in a remote window: in that machine's). Says so where a workspace's win. */
export async function keep(values: Record<string, unknown>): Promise<boolean> {
  const configuration = vscode.workspace.getConfiguration('accelopt');
  for (const [name, value] of Object.entries(values)) {
    await configuration.update(name, value, vscode.ConfigurationTarget.Global);
  }
  const now = vscode.workspace.getConfiguration('accelopt');
  const other = Object.entries(values).find(([name, value]) =>
    value !== undefined && JSON.stringify(now.get(name)) !== JSON.stringify(value));
  if (other) {
    void vscode.window.showWarningMessage(vscode.l10n.t('The settings of this workspace have another accelopt.{0}; change it there.', other[0]));
  }
  return !other;
}

/** Open the settings whose names begin so, where they count: in a remote window those of its machine. */
export const openSettings = (query = 'accelopt.'): Thenable<unknown> => vscode.commands.executeCommand(
  vscode.env.remoteName ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings', { query });
