// Type stubs of NKI are offered once in a workspace, where a file imports it and nothing resolves that.
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Server } from './server';
import type { Status } from './states';

const IMPORT = /^\s*(?:import|from)\s+(?:nki|neuronxcc)\b/m;
const ANSWERED = 'accelopt.stubs';

/** The type checkers whose search for stubs can be set, by what their settings begin with. */
const CHECKERS = { 'ms-python.vscode-pylance': 'python.analysis', 'detachhead.basedpyright': 'basedpyright.analysis' };

export class StubOffer {
  private asking = false;

  constructor(private readonly context: vscode.ExtensionContext, private readonly server: Server) {}

  /** Offer stubs for the file in front, where the server has them as a quick fix. An answer holds for the workspace. */
  async consider({ state }: Status): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (this.asking || state !== 'idle' || !vscode.workspace.isTrusted || this.context.workspaceState.get(ANSWERED)
      || document?.languageId !== 'python' || !IMPORT.test(document.getText())) {
      return;
    }
    this.asking = true;
    try {
      if (await offered(document)) {
        await this.ask(document.uri);
      }
    } finally {
      this.asking = false;
    }
  }

  private async ask(uri: vscode.Uri): Promise<void> {
    const write = vscode.l10n.t('Write Stubs');
    const message = vscode.l10n.t('This file imports NKI, which is not installed. Write type stubs into typings/ of the project, so that a type checker and completion know it?');
    const answer = await vscode.window.showInformationMessage(message, write, vscode.l10n.t('No'));
    await this.context.workspaceState.update(ANSWERED, answer ?? 'closed');
    const { folder } = (answer === write && (await this.server.execute<{ folder?: string }>('writeStubs', { uri: uri.toString() }))) || {};
    if (folder) {
      await point(uri, folder);
    }
  }
}

async function offered(document: vscode.TextDocument): Promise<boolean> {
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider', document.uri, new vscode.Range(0, 0, document.lineCount, 0), 'quickfix.accelopt');
  return actions.some(({ command }) => command?.command === 'accelopt.server.writeStubs');
}

/** Have each type checker that would not look into `folder` look there, if the person agrees. */
async function point(uri: vscode.Uri, folder: string): Promise<void> {
  const root = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? path.dirname(folder);
  for (const [extension, section] of Object.entries(CHECKERS)) {
    const settings = vscode.workspace.getConfiguration(section, uri);
    const paths = settings.get<string[]>('extraPaths', []);
    const looked = [settings.get('stubPath', 'typings'), ...paths].map((one) => path.resolve(root, one));
    if (!vscode.extensions.getExtension(extension) || looked.includes(folder)) {
      continue;
    }
    const add = vscode.l10n.t('Add It');
    const message = vscode.l10n.t('The type checker does not look into {0}. Add it to {1}.extraPaths of this workspace?', folder, section);
    if ((await vscode.window.showInformationMessage(message, add, vscode.l10n.t('No'))) === add) {
      await settings.update('extraPaths', [...paths, path.relative(root, folder)], vscode.ConfigurationTarget.Workspace);
    }
  }
}
