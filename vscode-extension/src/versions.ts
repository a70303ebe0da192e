// Several checked versions of one kernel: a list to choose from, and what to look at when a search has ended.
import * as vscode from 'vscode';
import { SCHEME, namedBy } from './candidate';
import { placeOfCursor, sayNoKernel } from './cursor';
import type { Ended, Server } from './server';

export interface Version {
  id: string;
  uri: string;
  kernel: string;
  title: string;
  speedup: string;
  latency: string;
  origin: string;
  summary: string;
  review: string;
  /** The versions that end with each of its steps, by id. */
  steps: string[];
}

/** The checked versions, best first per kernel, and those of an earlier text. */
export interface Versions {
  versions: Version[];
  outdated: Version[];
}

interface Kernel {
  uri: string;
  kernel?: string;
  line?: number;
}

const EXPLAIN: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon('info'),
  tooltip: vscode.l10n.t('Explain this version'),
};

/** List the versions for a kernel: the one named, the one of the diff in front (its address), or at the cursor. */
export async function showVersions(server: Server, of?: Kernel | vscode.Uri): Promise<void> {
  const shown = of instanceof vscode.Uri ? of : vscode.window.activeTextEditor?.document.uri;
  const looking = shown?.scheme === SCHEME ? namedBy(shown) : undefined;
  const asked = of && !(of instanceof vscode.Uri) ? of : looking ? { uri: looking.uri } : placeOfCursor();
  if (!asked) {
    sayNoKernel();
    return;
  }
  const answer = await server.execute<Versions>('versions', asked);
  if (!answer) {
    return;
  }
  const all = answer.versions;
  const kernel = all.find((one) => one.id === looking?.id)?.kernel;
  const versions = kernel ? all.filter((one) => one.kernel === kernel) : all;
  if (!versions.length) {
    const optimize = vscode.l10n.t('Optimize');
    const message = vscode.l10n.t('Nothing faster is known for this text of the kernel yet.');
    if ((await vscode.window.showInformationMessage(message, optimize)) === optimize) {
      await server.execute('optimize', asked);
    }
    return;
  }
  const chosen = await pick(server, versions, looking?.id);
  if (chosen) {
    await vscode.commands.executeCommand('accelopt.showSuggestion', chosen);
  }
}

/** Say how a search ended, with a way to what it found. */
export async function tellEnd(server: Server, { uri, kernel, message, versions }: Ended): Promise<void> {
  const best = vscode.l10n.t('Show the Best');
  const all = vscode.l10n.t('All {0} Versions', versions.length);
  const tried = vscode.l10n.t('What Was Tried');
  const choices = versions.length > 1 ? [best, all] : versions.length ? [best] : [tried];
  const answer = await vscode.window.showInformationMessage(message, ...choices);
  if (answer === best) {
    await vscode.commands.executeCommand('accelopt.showSuggestion', { ...versions[0], uri });
  } else if (answer === all) {
    await showVersions(server, { uri, kernel });
  } else if (answer === tried) {
    await server.execute('showRuns', { uri });
  }
}

function pick(server: Server, versions: Version[], current?: string): Promise<Version | undefined> {
  const list = vscode.window.createQuickPick<vscode.QuickPickItem & { version: Version }>();
  list.title = vscode.l10n.t('Versions that were checked and faster, best first');
  list.placeholder = vscode.l10n.t('Choose one to see what it changes');
  list.matchOnDescription = list.matchOnDetail = true;
  const several = new Set(versions.map((one) => one.kernel)).size > 1;
  list.items = versions.map((version) => ({
    version,
    label: several ? version.title : version.speedup,
    description: [several ? '' : version.origin, version.latency, version.id === current ? vscode.l10n.t('(shown)') : '']
      .filter(Boolean).join(' · '),
    detail: version.summary,
    buttons: [EXPLAIN],
  }));
  return new Promise((resolve) => {
    list.onDidAccept(() => {
      resolve(list.selectedItems[0]?.version);
      list.hide();
    });
    list.onDidTriggerItemButton(({ item: { version } }) => {
      void server.execute('explain', { id: version.id, uri: version.uri });
      list.hide();
    });
    list.onDidHide(() => {
      resolve(undefined);
      list.dispose();
    });
    list.show();
  });
}
