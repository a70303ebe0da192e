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

const TORCH = { does: vscode.l10n.t('Install torch and Triton (0.4 GB to fetch, 1.7 GB on disk)'), command: 'accelopt.installTorch' };
const HOST = { does: vscode.l10n.t('Add a host that has one'), command: 'accelopt.addHost' };
const SETTINGS = { does: vscode.l10n.t('Open the settings'), command: 'accelopt.openSettings' };

/** By the name of a check, what mends it. */
const MENDS: Record<string, { does: string; command: string }> = {
  'Python for kernels': { does: vscode.l10n.t('Choose a Python'), command: 'accelopt.chooseInterpreter' },
  'torch': TORCH,
  'triton': TORCH,
  'ptxas': TORCH,
  'Trainium': HOST,
  'NVIDIA GPU': HOST,
  'model': { does: vscode.l10n.t('Add a model'), command: 'accelopt.addModel' },
  'settings': SETTINGS,
  'memory': SETTINGS,
};

export async function showDoctor(server: Server): Promise<void> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  const answer = server.execute<{ checks?: Check[] }>('doctor', { uri });
  const items = answer.then((told) => [...(told?.checks ?? [])]
    .sort((one, other) => WORST_FIRST.indexOf(one.state) - WORST_FIRST.indexOf(other.state))
    .map(({ name, state, found, fix }) => {
      const mend = state === 'ok' ? undefined : MENDS[name];
      const detail = [mend && `$(wrench) ${mend.does}`, mend === TORCH ? '' : fix].filter(Boolean).join(' · ');
      return { label: `${ICONS[state]} ${name}`, description: found, detail, command: mend?.command };
    }));
  const title = vscode.l10n.t('What AccelOpt uses');
  const placeHolder = vscode.l10n.t('Choose a line with a wrench to have it mended');
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true, matchOnDetail: true });
  if (chosen?.command) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
