// The extension's wiring: what it registers, and what happens when trust or settings change.
import * as vscode from 'vscode';
import { actions } from '../../accelopt_lsp/accelopt_lsp/actions.json';
import { registerMcp } from './agents';
import { onKernelAtCursor } from './cursor';
import { showDoctor } from './doctor';
import { chooseTarget, openExample, showGuide, showKernels, tick } from './guide';
import { addHost } from './hosts';
import { forget, showMemory } from './memory';
import { installPackages, installServer } from './installation';
import { chooseInterpreter } from './interpreter';
import { showMenu } from './menu';
import { addModel, chooseModel } from './models';
import { PackageFixes } from './packages';
import { PAIR_SCHEME, PairTree } from './pairs';
import { PicturePanel } from './pictures';
import { onChosenPython } from './python';
import { askForModelKey } from './secrets';
import { Server } from './server';
import { keep, openSettings } from './settings';
import { tell } from './states';
import { StatusItem } from './status';
import { SuggestionView } from './suggestion';
import { registerTools } from './tools';
import { VersionTree } from './tree';
import { StubOffer } from './stubs';
import { showCosts } from './targets';
import { showVersions, tellEnd } from './versions';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel('AccelOpt', { log: true });
  const status = new StatusItem();
  const running = (server = new Server(context, output, status));
  const suggestions = new SuggestionView(running);
  const tree = new VersionTree(running);
  const pairs = new PairTree(running);
  const pictures = new PicturePanel(context, running);
  const stubs = new StubOffer(context, running);
  const command = (id: string, run: (...given: never[]) => unknown) =>
    context.subscriptions.push(vscode.commands.registerCommand(id, run));

  context.subscriptions.push(
    output, status, running, suggestions, tree, pairs, pictures,
    vscode.window.registerTreeDataProvider('accelopt.versions', tree),
    vscode.window.registerTreeDataProvider('accelopt.memory', pairs),
    vscode.workspace.registerTextDocumentContentProvider(PAIR_SCHEME, pairs),
    running.onSearchEnded((ended) => void tellEnd(running, ended)),
    running.onVersions((uri) => {
      tree.refresh();
      pairs.refresh();
      void suggestions.refresh(uri);
    }),
    status.onChanged((shown) => tree.tell(shown)),
    status.onChanged((shown) => pairs.tell(shown)),
    status.onChanged(tick),
    status.onChanged((shown) => void stubs.consider(shown)),
    vscode.window.onDidChangeActiveTextEditor(() => void stubs.consider(status.shown)),
    vscode.workspace.onDidCloseTextDocument((document) => suggestions.closed(document)),
  );
  for (const { name, palette } of actions) {
    if (palette && 'at_cursor' in palette) {
      command(`accelopt.${name}`, () => onKernelAtCursor(running, name));
    }
  }
  command('accelopt.optimizeWithInstructions', () => optimizeWithInstructions(running, status));
  command('accelopt.compareWithClipboard', async () => onKernelAtCursor(running, 'compare', { text: await vscode.env.clipboard.readText() }));
  command('accelopt.cancel', () => running.execute('cancel', {}));
  command('accelopt.pause', () => running.execute('pause', {}));
  command('accelopt.showMemory', () => showMemory(running));
  command('accelopt.forget', (row?: never) => forget(running, row));
  command('accelopt.showPair', (pair: never) => pairs.show(pair));
  const installed = async () => {
    await running.restart();
    if (running.isRunning) {
      void tell('no-kernel', vscode.l10n.t('AccelOpt is installed. Kernels are profiled when they are opened and saved.'));
    }
  };
  command('accelopt.install', async () => (await installServer(context, output)) && installed());
  command('accelopt.installTorch', async () => (await installPackages(context, output)) && installed());
  command('accelopt.chooseInterpreter', () => chooseInterpreter(context, output));
  command('accelopt.trust', () => trust(running));
  command('accelopt.runHere', () => keep({ host: 'local' }));
  command('accelopt.chooseModel', () => chooseModel());
  command('accelopt.addModel', () => addModel(context, running));
  command('accelopt.addHost', () => addHost(running));
  command('accelopt.chooseTarget', () => chooseTarget(context));
  command('accelopt.openExample', () => openExample(context, output, running));
  command('accelopt.showGuide', () => showGuide(status.shown));
  command('accelopt.showKernels', () => showKernels(context));
  command('accelopt.doctor', () => showDoctor(running));
  command('accelopt.openSettings', () => openSettings());
  command('accelopt.setModelKey', async () => (await askForModelKey(context)) && running.restart());
  command('accelopt.restart', () => running.restart({ asked: true }));
  command('accelopt.showOutput', () => output.show());
  command('accelopt.showMenu', () => showMenu(running, status.shown));
  command('accelopt.showSuggestion', (shown: never) => suggestions.show(shown));
  command('accelopt.showVersions', (of?: never) => showVersions(running, of));
  command('accelopt.showCosts', (kernel: never) => showCosts(running, kernel));
  command('accelopt.showPictures', () => pictures.show());
  command('accelopt.acceptSuggestion', (of?: never) => suggestions.accept(of));
  command('accelopt.explainSuggestion', (of?: never) => suggestions.explain(of));
  command('accelopt.rejectSuggestion', (of?: never) => suggestions.reject(of));
  command('accelopt.checkSuggestion', (of?: never, without?: never) => suggestions.check(of, without));

  context.subscriptions.push(...registerTools(running), ...registerMcp(running));
  const fixes = new PackageFixes(context, output);
  context.subscriptions.push(
    vscode.languages.registerCodeActionsProvider({ scheme: 'file', language: 'python' }, fixes, { providedCodeActionKinds: [PackageFixes.kind] }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => running.restart()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('accelopt.interpreter')) {
        void running.restart();
      }
    }),
  );
  void onChosenPython(context, output, () => void running.restart());
  void running.restart(); // not waited for: the commands are there at once
}

/** Trust what is open: the editor's own page where it restricts the window, else the server asks about the folder. */
async function trust(running: Server): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    await vscode.commands.executeCommand('workbench.trust.manage');
  } else {
    await running.execute('trust', { uri: vscode.window.activeTextEditor?.document.uri.toString() });
  }
}

/** A sentence from the person goes to the model that proposes rewrites. */
async function optimizeWithInstructions(running: Server, status: StatusItem): Promise<void> {
  const configured = status.shown.reached?.includes('model') || vscode.workspace.getConfiguration('accelopt').get('model.base_url');
  if (running.isRunning && !configured) {
    const add = vscode.l10n.t('Add a Model...');
    const message = vscode.l10n.t('No model is configured, and only a model can follow instructions.');
    if ((await vscode.window.showInformationMessage(message, add)) === add) {
      await vscode.commands.executeCommand('accelopt.addModel');
    }
    return;
  }
  const instructions = await vscode.window.showInputBox({
    title: vscode.l10n.t('Optimize the kernel at the cursor'),
    prompt: vscode.l10n.t('What the model should try, or leave alone'),
    placeHolder: vscode.l10n.t('keep the tile sizes; hold the weights in SBUF'),
  });
  if (instructions?.trim()) {
    await onKernelAtCursor(running, 'optimize', { instructions: instructions.trim() });
  }
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
