// A suggestion side by side with the file it is for; what can be done with it are buttons in the editor's title.
import * as vscode from 'vscode';
import { SCHEME, candidateUri, namedBy } from './candidate';
import type { Server } from './server';

interface Shown {
  id: string;
  uri: string;
  title?: string;
}

/** How long the server's edit may take to arrive; where it refuses, it says why. */
const EDIT_ARRIVES_MS = 8000;

export class SuggestionView {
  constructor(private readonly server: Server) {}

  /** Open the diff: the file on the left, the suggestion (served by the server) on the right. */
  async show({ id, uri, title }: Shown): Promise<void> {
    const file = vscode.Uri.parse(uri, true);
    const candidate = candidateUri(id, uri);
    const document = await vscode.workspace.openTextDocument(candidate);
    await vscode.languages.setTextDocumentLanguage(document, 'python');
    const name = file.path.split('/').at(-1) ?? '';
    await vscode.commands.executeCommand('vscode.diff', file, candidate, title ?? vscode.l10n.t('{0}: suggested version', name));
  }

  /** Accept the suggestion shown by `uri` (or by the active editor): the server applies the edit and remembers it. */
  async accept(uri?: vscode.Uri): Promise<void> {
    const shown = this.shown(uri);
    if (!shown) {
      return;
    }
    const file = vscode.Uri.parse(shown.uri, true);
    const applied = edited(file);
    await this.server.execute('accept', { id: shown.id, uri: shown.uri, apply: true });
    if (await applied) {
      await this.close(shown.candidate);
      await vscode.window.showTextDocument(file);
    }
  }

  async reject(uri?: vscode.Uri): Promise<void> {
    const shown = this.shown(uri);
    if (shown && (await this.server.execute('reject', { id: shown.id, uri: shown.uri }))) {
      await this.close(shown.candidate);
    }
  }

  /** Have the suggestion explained; the server tells when the page is there. */
  async explain(uri?: vscode.Uri): Promise<void> {
    const shown = this.shown(uri);
    if (shown) {
      await this.server.execute('explain', { id: shown.id, uri: shown.uri });
    }
  }

  private shown(uri?: vscode.Uri): { id: string; uri: string; candidate: vscode.Uri } | undefined {
    const candidate = uri ?? vscode.window.activeTextEditor?.document.uri;
    return candidate?.scheme === SCHEME ? { ...namedBy(candidate), candidate } : undefined;
  }

  private async close(candidate: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const showing = (tab: vscode.Tab) =>
      tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === candidate.toString();
    await vscode.window.tabGroups.close(tabs.filter(showing));
  }
}

/** Whether the document is edited within `EDIT_ARRIVES_MS`. */
function edited(uri: vscode.Uri): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (answer: boolean) => {
      clearTimeout(limit);
      listening.dispose();
      resolve(answer);
    };
    const limit = setTimeout(() => done(false), EDIT_ARRIVES_MS);
    const listening = vscode.workspace.onDidChangeTextDocument((change) => {
      if (change.document.uri.toString() === uri.toString() && change.contentChanges.length) {
        done(true);
      }
    });
  });
}
