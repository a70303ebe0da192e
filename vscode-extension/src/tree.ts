// The side bar's list of what was found: searches that run, and each kernel's checked versions, best first.
import * as vscode from 'vscode';
import type { Server } from './server';
import type { Job, Status } from './states';
import type { Version, Versions } from './versions';

type Node =
  | { is: 'job'; job: Job }
  | { is: 'fact'; icon: string; text: string }
  | { is: 'kernel'; uri: string; kernel: string; versions: Node[] }
  | { is: 'version'; version: Version; outdated: boolean };

export class VersionTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private jobs: (Node & { is: 'job' })[] = [];
  private ticking: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server) {}

  refresh(): void {
    this.changed.fire(undefined);
  }

  /** Show the searches that run; the versions are asked for again only where other searches run than before. */
  tell(status: Status): void {
    const searches = (status.jobs ?? []).filter(({ kind }) => kind === 'optimize');
    const same = searches.map(({ job }) => job).join() === this.jobs.map(({ job: { job } }) => job).join();
    this.jobs = searches.map((job, at) => (same ? Object.assign(this.jobs[at], { job }) : { is: 'job', job }));
    same ? this.jobs.forEach((node) => this.changed.fire(node)) : this.refresh();
    clearInterval(this.ticking);
    this.ticking = searches.length ? setInterval(() => this.jobs.forEach((node) => this.changed.fire(node)), 1000) : undefined;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) {
      return node.is === 'kernel' ? node.versions : node.is === 'job' ? facts(node.job) : [];
    }
    return [...this.jobs, ...kernels(this.server.isRunning ? await this.server.execute<Versions>('versions', {}) : undefined)];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.is === 'job') {
      const item = new vscode.TreeItem(node.job.title, vscode.TreeItemCollapsibleState.Expanded);
      item.id = node.job.job;
      item.description = node.job.paused ? vscode.l10n.t('paused') : elapsed(node.job);
      item.iconPath = new vscode.ThemeIcon(node.job.paused ? 'debug-pause' : 'sync~spin');
      item.contextValue = 'search';
      return item;
    }
    if (node.is === 'fact') {
      const item = new vscode.TreeItem(node.text);
      item.tooltip = node.text;
      item.iconPath = new vscode.ThemeIcon(node.icon);
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
    clearInterval(this.ticking);
    this.changed.dispose();
  }
}

/** How far a search is: what it tried, the best so far, what it does now and whom it asks, tokens. */
function facts({ progress }: Job): Node[] {
  if (!progress) {
    return [];
  }
  const { tried, budget, best, unproved, doing, tokens } = progress;
  const fact = (icon: string, text: string): Node => ({ is: 'fact', icon, text });
  return [
    fact('beaker', vscode.l10n.t('{0} of {1} tried', tried, budget)),
    ...(best ? [fact('pass', vscode.l10n.t('best so far: {0}', best))] : []),
    ...(unproved ? [fact('question', vscode.l10n.t('not proved yet: {0}', unproved))] : []),
    fact('arrow-right', doing),
    ...(tokens ? [fact('comment', vscode.l10n.t('{0} tokens', tokens.toLocaleString('en')))] : []),
  ];
}

/** The time since the job began: `34 s`, `2 min 5 s`. */
function elapsed({ started }: Job): string {
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - (started ?? Date.now() / 1000)));
  return seconds < 60 ? vscode.l10n.t('{0} s', seconds) : vscode.l10n.t('{0} min {1} s', Math.floor(seconds / 60), seconds % 60);
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
