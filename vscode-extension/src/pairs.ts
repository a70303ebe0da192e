// The side bar's list of what is remembered of this project: each change with what it was used for, and its difference.
import * as vscode from 'vscode';
import type { Server } from './server';
import type { Status } from './states';

interface Use {
  id: string;
  kernel: string;
  file: string;
  state: string;
}

interface Pair {
  id: string;
  kernel: string;
  file: string;
  summary: string;
  gain: string;
  created: string;
  tries: string;
  uses: Use[];
}

type Node = { is: 'pair'; pair: Pair } | { is: 'use'; use: Use };

/** The texts of a pair: `accelopt-pair:/kernel.py?id=ID&side=slow`. */
export const PAIR_SCHEME = 'accelopt-pair';

export class PairTree implements vscode.TreeDataProvider<Node>, vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private running: string[] = [];

  constructor(private readonly server: Server) {}

  refresh(): void {
    this.changed.fire();
  }

  /** Ask again when something that may have changed the memory has ended: an accept, a rejection, a search. */
  tell({ jobs = [] }: Status): void {
    const now = jobs.filter(({ kind }) => kind !== 'profile').map(({ job }) => job);
    if (this.running.some((job) => !now.includes(job))) {
      this.refresh();
    }
    this.running = now;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) {
      return node.is === 'pair' ? node.pair.uses.map((use) => ({ is: 'use', use })) : [];
    }
    const answer = this.server.isRunning ? await this.server.execute<{ pairs?: Pair[] }>('pairs', {}) : undefined;
    return (answer?.pairs ?? []).map((pair) => ({ is: 'pair', pair }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.is === 'use') {
      const item = new vscode.TreeItem(vscode.l10n.t('{0}: {1}', node.use.kernel, node.use.state));
      item.description = vscode.workspace.asRelativePath(vscode.Uri.file(node.use.file));
      item.iconPath = new vscode.ThemeIcon(node.use.state === 'accepted' ? 'pass' : 'lightbulb');
      return item;
    }
    const { pair } = node;
    const { Collapsed, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(`${pair.kernel}: ${pair.gain}`, pair.uses.length ? Collapsed : None);
    item.id = pair.id;
    item.description = pair.summary;
    item.tooltip = [pair.summary, pair.tries, `${pair.file}, ${pair.created.slice(0, 10)}, ${pair.id}`].join('\n');
    item.iconPath = new vscode.ThemeIcon('archive');
    item.contextValue = 'pair';
    item.command = { command: 'accelopt.showPair', title: vscode.l10n.t('Show the difference'), arguments: [pair] };
    return item;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const asked = new URLSearchParams(uri.query);
    const texts = await this.server.execute<Record<string, string>>('pairs', { id: asked.get('id') });
    return texts?.[asked.get('side') ?? ''] ?? '';
  }

  /** Open the file before and after a change side by side. */
  async show({ id, kernel, gain }: Pair): Promise<void> {
    const text = (side: string) => vscode.Uri.from({ scheme: PAIR_SCHEME, path: `/${kernel}.py`, query: `id=${id}&side=${side}` });
    await vscode.commands.executeCommand('vscode.diff', text('slow'), text('fast'), vscode.l10n.t('{0}: remembered, {1}', kernel, gain));
  }

  dispose(): void {
    this.changed.dispose();
  }
}
