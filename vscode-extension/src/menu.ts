// What a click on the status item offers: what runs now, and everything else that can be asked for.
import * as vscode from 'vscode';
import type { Server } from './server';
import { openSettings } from './settings';
import type { Status } from './status';

interface Choice extends vscode.QuickPickItem {
  run?: () => unknown;
}

const line = (label: string): Choice => ({ label, kind: vscode.QuickPickItemKind.Separator });

export async function showMenu(server: Server, status: Status): Promise<void> {
  const run = (label: string, command: string): Choice => ({ label, run: () => vscode.commands.executeCommand(command) });
  const choices: Choice[] = [];
  for (const { job, kind, title, paused } of status.jobs ?? []) {
    if (kind === 'optimize') {
      choices.push(paused
        ? { label: `$(debug-start) ${vscode.l10n.t('Resume: {0}', title)}`, run: () => server.execute('resume', { job }) }
        : { label: `$(debug-pause) ${vscode.l10n.t('Pause: {0}', title)}`, run: () => server.execute('pause', { job }) });
    }
    choices.push({ label: `$(stop-circle) ${vscode.l10n.t('Cancel: {0}', title)}`, run: () => server.execute('cancel', { job }) });
  }
  if (choices.length) {
    choices.unshift(line(vscode.l10n.t('running')));
  }
  if (vscode.window.activeTextEditor?.document.languageId === 'python' && server.isRunning) {
    choices.push(
      line(vscode.l10n.t('this file')),
      run(`$(rocket) ${vscode.l10n.t('Optimize the kernel at the cursor')}`, 'accelopt.optimize'),
      run(`$(comment) ${vscode.l10n.t('Optimize with instructions...')}`, 'accelopt.optimizeWithInstructions'),
      run(`$(list-ordered) ${vscode.l10n.t('Show the faster versions')}`, 'accelopt.showVersions'),
      run(`$(dashboard) ${vscode.l10n.t('Profile this file')}`, 'accelopt.profile'),
      run(`$(record) ${vscode.l10n.t('Record from a test...')}`, 'accelopt.record'),
      run(`$(history) ${vscode.l10n.t('Show the searches in this file')}`, 'accelopt.showRuns'),
      run(`$(archive) ${vscode.l10n.t('Show remembered changes...')}`, 'accelopt.showMemory'),
    );
  }
  choices.push(
    line('AccelOpt'),
    run(`$(sparkle) ${vscode.l10n.t('Choose one of the editor\'s models...')}`, 'accelopt.chooseModel'),
    run(`$(key) ${vscode.l10n.t('Set the model\'s key...')}`, 'accelopt.setModelKey'),
    { label: `$(gear) ${vscode.l10n.t('Open the settings')}`, run: () => openSettings() },
    run(`$(refresh) ${vscode.l10n.t('Restart the server')}`, 'accelopt.restart'),
    run(`$(output) ${vscode.l10n.t('Show the output')}`, 'accelopt.showOutput'),
  );
  const chosen = await vscode.window.showQuickPick(choices, { title: ['AccelOpt', status.message].join(': '), placeHolder: status.detail });
  await chosen?.run?.();
}
