// What a click on the status item offers: what runs now, and everything else that can be asked for.
import * as vscode from 'vscode';
import type { Server } from './server';
import { openSettings } from './settings';
import { MENDS, inFront, type Status } from './states';

interface Choice extends vscode.QuickPickItem {
  command?: string;
  run?: () => unknown;
}

const line = (label: string): Choice => ({ label, kind: vscode.QuickPickItemKind.Separator });

export async function showMenu(server: Server, known: Status): Promise<void> {
  const status = inFront(known);
  const run = (label: string, command: string): Choice => ({ label, command, run: () => vscode.commands.executeCommand(command) });
  const mends = MENDS[status.state] ?? [];
  const choices: Choice[] = mends.map(({ icon, title, command }) => run(`$(${icon}) ${title}`, command));
  choices.push(...await fixes());
  if (choices.length) {
    choices.unshift(line(vscode.l10n.t('what helps')));
  }
  const jobs: Choice[] = [];
  for (const { job, kind, title, paused } of status.jobs ?? []) {
    if (kind === 'optimize') {
      jobs.push(paused
        ? { label: `$(debug-start) ${vscode.l10n.t('Resume: {0}', title)}`, run: () => server.execute('resume', { job }) }
        : { label: `$(debug-pause) ${vscode.l10n.t('Pause: {0}', title)}`, run: () => server.execute('pause', { job }) });
    }
    jobs.push({ label: `$(stop-circle) ${vscode.l10n.t('Cancel: {0}', title)}`, run: () => server.execute('cancel', { job }) });
  }
  if (jobs.length) {
    choices.push(line(vscode.l10n.t('running')), ...jobs);
  }
  if (vscode.window.activeTextEditor?.document.languageId === 'python' && server.isRunning && status.state !== 'no-kernel') {
    choices.push(
      line(vscode.l10n.t('this file')),
      run(`$(rocket) ${vscode.l10n.t('Optimize the kernel at the cursor')}`, 'accelopt.optimize'),
      run(`$(comment) ${vscode.l10n.t('Optimize with instructions...')}`, 'accelopt.optimizeWithInstructions'),
      run(`$(list-ordered) ${vscode.l10n.t('Show the faster versions')}`, 'accelopt.showVersions'),
      run(`$(dashboard) ${vscode.l10n.t('Profile this file')}`, 'accelopt.profile'),
      run(`$(record) ${vscode.l10n.t('Record from a test...')}`, 'accelopt.record'),
      run(`$(graph) ${vscode.l10n.t('Show pictures of the kernel')}`, 'accelopt.showPictures'),
      run(`$(history) ${vscode.l10n.t('Show the searches in this file')}`, 'accelopt.showRuns'),
      run(`$(archive) ${vscode.l10n.t('Show remembered changes...')}`, 'accelopt.showMemory'),
    );
  }
  const always = [
    run(`$(book) ${vscode.l10n.t('Open the guide')}`, 'accelopt.showGuide'),
    run(`$(beaker) ${vscode.l10n.t('Open an example kernel')}`, 'accelopt.openExample'),
    run(`$(pulse) ${vscode.l10n.t('Check the installation...')}`, 'accelopt.doctor'),
    run(`$(chip) ${vscode.l10n.t('Choose a target...')}`, 'accelopt.chooseTarget'),
    run(`$(search) ${vscode.l10n.t('Choose a Python...')}`, 'accelopt.chooseInterpreter'),
    run(`$(add) ${vscode.l10n.t('Add a host...')}`, 'accelopt.addHost'),
    run(`$(add) ${vscode.l10n.t('Add a model...')}`, 'accelopt.addModel'),
    run(`$(key) ${vscode.l10n.t('Set the model\'s key...')}`, 'accelopt.setModelKey'),
    { label: `$(gear) ${vscode.l10n.t('Open the settings')}`, run: () => openSettings() },
    run(`$(refresh) ${vscode.l10n.t('Restart the server')}`, 'accelopt.restart'),
    run(`$(output) ${vscode.l10n.t('Show the output')}`, 'accelopt.showOutput'),
  ];
  choices.push(line('AccelOpt'), ...always.filter((one) => !mends.some(({ command }) => command === one.command)));
  const chosen = await vscode.window.showQuickPick(choices, { title: ['AccelOpt', status.message].join(': '), placeHolder: status.detail });
  await chosen?.run?.();
}

/** What mends the findings of the file in front: no problem, a limit, a missing package. */
async function fixes(): Promise<Choice[]> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== 'python') {
    return [];
  }
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider', document.uri, new vscode.Range(0, 0, document.lineCount, 0), 'quickfix.accelopt');
  return actions.map(({ title, command }) => ({
    label: `$(wrench) ${title}`,
    run: () => command && vscode.commands.executeCommand(command.command, ...(command.arguments ?? [])),
  }));
}
