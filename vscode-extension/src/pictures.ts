// A panel beside the editor with the charts of the kernel at the cursor, linked both ways to its lines.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { placeOfCursor, sayNoKernel, type Place } from './cursor';
import type { Server } from './server';

/** A chart as the server describes it: Vega-Lite, and a table that says the same. */
export interface Chart {
  name: string;
  title: string;
  about: string;
  spec: Record<string, unknown>;
  columns: string[];
  rows: string[][];
  lines: number[];
  versions: string[];
}

interface Answer {
  kernel: string;
  title: string;
  note: string;
  schedule: boolean;
  charts: Chart[];
}

export type Pictures = Answer & { tableTitle: string };

/** So long after an edit the charts are asked for again: lines have moved. */
const SETTLES_MS = 400;

export class PicturePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private place: Place | undefined;
  private kernel: string | undefined;
  private waiting: NodeJS.Timeout | undefined;
  private readonly listening: vscode.Disposable;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly server: Server,
  ) {
    this.listening = vscode.Disposable.from(
      server.onPictures((uri) => this.isOf(uri) && void this.refresh()),
      server.onStarted(() => void this.refresh()), // a new server does not know that somebody looks
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) => this.moved(textEditor, selections[0])),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.isOf(document.uri.toString()) && this.settle()),
    );
  }

  /** Show the charts of the kernel at the cursor, in a panel that stays. */
  async show(): Promise<void> {
    const place = placeOfCursor();
    if (!place) {
      sayNoKernel();
      return;
    }
    if (this.panel && !this.isOf(place.uri)) {
      this.leave();
    }
    this.place = place;
    this.kernel = undefined;
    if (this.panel) {
      this.panel.reveal(undefined, true);
      await this.refresh();
    } else {
      this.open();
    }
  }

  dispose(): void {
    this.listening.dispose();
    this.panel?.dispose();
  }

  /** Tell the server that nobody looks at these charts any more. */
  private leave(): void {
    if (this.place && this.server.isRunning) {
      void this.server.execute('pictures', { uri: this.place.uri, shown: false });
    }
  }

  private open(): void {
    const scripts = vscode.Uri.joinPath(this.context.extensionUri, 'dist');
    const panel = vscode.window.createWebviewPanel(
      'accelopt.pictures', 'AccelOpt', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, localResourceRoots: [scripts], retainContextWhenHidden: true });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.leave();
    });
    panel.webview.onDidReceiveMessage((message: { ready?: true; line?: number; version?: string }) =>
      message.version ? this.showVersion(message.version) : message.line ? this.reveal(message.line) : this.refresh());
    panel.webview.html = page(panel.webview.cspSource, panel.webview.asWebviewUri(vscode.Uri.joinPath(scripts, 'panel.js')));
    this.panel = panel;
  }

  private async refresh(): Promise<void> {
    if (!this.place || !this.panel) {
      return;
    }
    const asked = this.kernel ? { uri: this.place.uri, kernel: this.kernel } : this.place;
    const answer = await this.server.execute<Answer>('pictures', asked);
    if (!answer?.charts) {
      return; // the server said why
    }
    this.kernel = answer.kernel || undefined;
    this.panel.title = answer.title;
    const tableTitle = vscode.l10n.t('As a table');
    await this.panel.webview.postMessage({ pictures: { ...answer, tableTitle }, cursor: this.place.line });
    if (answer.schedule) {
      await this.server.execute('profile', { uri: this.place.uri, timeline: true });
    }
  }

  private async showVersion(id: string): Promise<void> {
    await vscode.commands.executeCommand('accelopt.showSuggestion', { id, uri: this.place?.uri });
  }

  private async reveal(line: number): Promise<void> {
    const uri = vscode.Uri.parse(this.place?.uri ?? '', true);
    const viewColumn = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString())?.viewColumn;
    const { range } = (await vscode.workspace.openTextDocument(uri)).lineAt(Math.max(0, line - 1));
    await vscode.window.showTextDocument(uri, { viewColumn: viewColumn ?? vscode.ViewColumn.One, selection: range });
  }

  private moved({ document }: vscode.TextEditor, selection: vscode.Selection | undefined): void {
    if (this.place && selection && this.isOf(document.uri.toString())) {
      this.place = { ...this.place, line: selection.active.line + 1 };
      void this.panel?.webview.postMessage({ cursor: this.place.line });
    }
  }

  private settle(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => void this.refresh(), SETTLES_MS);
  }

  private isOf(uri: string): boolean {
    return this.panel !== undefined && this.place !== undefined && vscode.Uri.parse(uri).toString() === vscode.Uri.parse(this.place.uri).toString();
  }
}

/** The page around the charts: it runs that one script, loads nothing else, and has the pattern of what waits. */
export function page(source: string, script: { toString(): string }): string {
  const nonce = randomBytes(16).toString('base64');
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; img-src ${source} data:`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<style nonce="${nonce}">
body { padding: 0 1rem; color: var(--vscode-editor-foreground); background: var(--vscode-editor-background); }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin: 1.6em 0 .2em; } p { margin: .2em 0 .6em; color: var(--vscode-descriptionForeground); }
svg text { font-family: var(--vscode-font-family) !important; } .waits { position: absolute; width: 0; height: 0; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .1em 1em .1em 0; font-weight: normal; }
th { border-bottom: 1px solid var(--vscode-descriptionForeground); }
tr[aria-current] { outline: 1px solid var(--vscode-focusBorder); }
button { font: inherit; padding: 0; border: 0; background: none; color: var(--vscode-textLink-foreground); cursor: pointer; text-decoration: underline; }
:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
</style>
</head>
<body>
<svg class="waits" aria-hidden="true"><defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="6" fill="currentColor" fill-opacity=".45"></rect></pattern></defs></svg>
<main id="page" aria-live="polite"></main>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}
