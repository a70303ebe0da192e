// A suggestion side by side with the file it is for; what can be done with it are buttons in the editor's title.
import * as vscode from 'vscode';
import { SCHEME, candidateUri, namedBy } from './candidate';
import { ReviewThreads } from './review';
import type { Server } from './server';
import type { Version, Versions } from './versions';

interface Shown {
  id: string;
  uri: string;
  title?: string;
}

/** A version by the address of its text (from a button, or as text from a link), or as an item of the list. */
type Named = vscode.Uri | string | { version: Version };

/** How long the server's edit may take to arrive; where it refuses, it says why. */
const EDIT_ARRIVES_MS = 8000;

export class SuggestionView implements vscode.Disposable {
  private readonly threads = new ReviewThreads();

  constructor(private readonly server: Server) {}

  /** Open the diff: the file on the left, the suggestion (served by the server) on the right. */
  async show({ id, uri, title }: Shown): Promise<void> {
    const file = vscode.Uri.parse(uri, true);
    const candidate = candidateUri(id, uri);
    const document = await vscode.workspace.openTextDocument(candidate);
    await vscode.languages.setTextDocumentLanguage(document, 'python');
    const name = file.path.split('/').at(-1) ?? '';
    await vscode.commands.executeCommand('vscode.diff', file, candidate, title ?? vscode.l10n.t('{0}: suggested version', name));
    const { version, versions } = await this.known(id, uri);
    if (version) {
      this.threads.show(candidate, await vscode.workspace.openTextDocument(file), document, version, versions);
    }
  }

  /** Say of the versions that are looked at whether they still fit the file at `uri`. */
  async refresh(uri: string): Promise<void> {
    for (const candidate of this.threads.shown) {
      const named = namedBy(candidate);
      if (vscode.Uri.parse(named.uri).toString() !== vscode.Uri.parse(uri).toString()) {
        continue;
      }
      const { version, versions } = await this.known(named.id, uri);
      if (version) {
        this.threads.tell(candidate, version, versions);
      }
    }
  }

  /** A diff that was closed is reviewed no more. */
  closed(document: vscode.TextDocument): void {
    this.threads.close(document.uri);
  }

  /** The version of that id, and those that fit the text of the file. */
  private async known(id: string, uri: string): Promise<{ version?: Version; versions: Version[] }> {
    const { versions = [], outdated = [] } = (await this.server.execute<Versions>('versions', { uri })) ?? {};
    return { version: [...versions, ...outdated].find((one) => one.id === id), versions };
  }

  /** Accept the suggestion shown by `uri` (or by the active editor): the server applies the edit and remembers it. */
  async accept(uri?: Named): Promise<void> {
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

  async reject(uri?: Named): Promise<void> {
    const shown = this.shown(uri);
    if (shown && (await this.server.execute('reject', { id: shown.id, uri: shown.uri }))) {
      await this.close(shown.candidate);
    }
  }

  /** Have the suggestion explained; the server tells when the page is there. */
  async explain(uri?: Named): Promise<void> {
    const shown = this.shown(uri);
    if (shown) {
      await this.server.execute('explain', { id: shown.id, uri: shown.uri });
    }
  }

  /** Have the version made again in the file's text and checked, or without one of its steps (from 1). */
  async check(uri?: Named, without?: unknown): Promise<void> {
    const shown = this.shown(uri);
    if (shown) {
      await this.server.execute('check', { id: shown.id, uri: shown.uri, ...(typeof without === 'number' ? { without } : {}) });
    }
  }

  dispose(): void {
    this.threads.dispose();
  }

  private shown(named?: Named): { id: string; uri: string; candidate: vscode.Uri } | undefined {
    if (named && typeof named !== 'string' && 'version' in named) {
      const { id, uri } = named.version;
      return { id, uri, candidate: candidateUri(id, uri) };
    }
    const candidate = typeof named === 'string' ? vscode.Uri.parse(named) : named ?? vscode.window.activeTextEditor?.document.uri;
    return candidate?.scheme === SCHEME ? { ...namedBy(candidate), candidate } : undefined;
  }

  private async close(candidate: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const showing = (tab: vscode.Tab) =>
      tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === candidate.toString();
    this.threads.close(candidate);
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
