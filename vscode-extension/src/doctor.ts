// What `accelopt doctor` says, as a list: choosing a line does what mends it, where the extension can.
import * as vscode from 'vscode';
import type { Server } from './server';

interface Check {
  name: string;
  state: 'ok' | 'absent' | 'broken';
  found: string;
  fix: string;
}

const ICONS = { ok: '$(pass)', absent: '$(circle-slash)', broken: '$(error)' };
const WORST_FIRST = ['broken', 'absent', 'ok'];

/** By the name of a check, the command that mends it. */
const MENDS: Record<string, string> = {
  'Python for kernels': 'accelopt.chooseInterpreter',
  'torch': 'accelopt.installTorch',
  'triton': 'accelopt.installTorch',
  'model': 'accelopt.addModel',
  'ssh': 'accelopt.addHost',
  'settings': 'accelopt.openSettings',
  'memory': 'accelopt.openSettings',
};

export async function showDoctor(server: Server): Promise<void> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  const answer = server.execute<{ checks?: Check[] }>('doctor', { uri });
  const items = answer.then((told) => [...(told?.checks ?? [])]
    .sort((one, other) => WORST_FIRST.indexOf(one.state) - WORST_FIRST.indexOf(other.state))
    .map(({ name, state, found, fix }) => {
      const command = state === 'ok' ? undefined : MENDS[name];
      return { label: `${ICONS[state]} ${name}`, description: found, detail: fix && `${command ? '$(wrench) ' : ''}${fix}`, command };
    }));
  const title = vscode.l10n.t('What AccelOpt uses');
  const placeHolder = vscode.l10n.t('Choose a line with a wrench to have it mended');
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true, matchOnDetail: true });
  if (chosen?.command) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
