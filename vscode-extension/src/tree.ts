// The side bar's list of what was found: searches that run, and each kernel's checked versions, best first.
import * as vscode from 'vscode';
import type { Server } from './server';
import type { Status } from './states';
import type { Version, Versions } from './versions';

type Job = NonNullable<Status['jobs']>[number];
type Node =
  | { is: 'job'; job: Job }
  | { is: 'kernel'; uri: string; kernel: string; versions: Node[] }
  | { is: 'version'; version: Version; outdated: boolean };

export class VersionTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private jobs: Job[] = [];

  constructor(private readonly server: Server) {}

  refresh(): void {
    this.changed.fire();
  }

  /** Show the searches that run. */
  tell(status: Status): void {
    this.jobs = (status.jobs ?? []).filter(({ kind }) => kind === 'optimize');
    this.refresh();
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) {
      return node.is === 'kernel' ? node.versions : [];
    }
    const jobs: Node[] = this.jobs.map((job) => ({ is: 'job', job }));
    return [...jobs, ...kernels(this.server.isRunning ? await this.server.execute<Versions>('versions', {}) : undefined)];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.is === 'job') {
      const item = new vscode.TreeItem(node.job.title);
      item.iconPath = new vscode.ThemeIcon(node.job.paused ? 'debug-pause' : 'sync~spin');
      item.contextValue = 'search';
      return item;
    }
    if (node.is === 'kernel') {
      const item = new vscode.TreeItem(node.kernel, vscode.TreeItemCollapsibleState.Expanded);
      item.description = vscode.workspace.asRelativePath(vscode.Uri.parse(node.uri, true));
      item.iconPath = new vscode.ThemeIcon('symbol-function');
      return item;
    }
    const { version, outdated } = node;
    const item = new vscode.TreeItem(version.speedup);
    item.description = outdated ? vscode.l10n.t('outdated: the file has changed') : `${version.latency} · ${version.origin}`;
    item.tooltip = new vscode.MarkdownString(version.review);
    item.iconPath = new vscode.ThemeIcon(outdated ? 'warning' : 'pass');
    item.contextValue = outdated ? 'outdated' : 'version';
    const title = vscode.l10n.t('Show the difference');
    item.command = { command: 'accelopt.showSuggestion', title, arguments: [version] };
    return item;
  }

  dispose(): void {
    this.changed.dispose();
  }
}

function kernels(found: Versions | undefined): Node[] {
  const nodes = new Map<string, Node & { is: 'kernel' }>();
  for (const [versions, outdated] of [[found?.versions ?? [], false], [found?.outdated ?? [], true]] as const) {
    for (const version of versions) {
      const { uri, kernel } = version;
      const key = `${uri} ${kernel}`;
      const node = nodes.get(key) ?? { is: 'kernel', uri, kernel, versions: [] };
      node.versions.push({ is: 'version', version, outdated });
      nodes.set(key, node);
    }
  }
  return [...nodes.values()];
}
