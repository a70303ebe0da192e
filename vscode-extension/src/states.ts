// What mends each state in which no kernel is profiled: buttons of a message, and the first rows of the menu.
import * as vscode from 'vscode';
import type { Status } from './status';

export interface Mend {
  icon: string;
  title: string;
  command: string;
}

const mend = (icon: string, title: string, command: string): Mend => ({ icon, title, command: `accelopt.${command}` });

const WITH_TORCH = mend('cloud-download', vscode.l10n.t('Install with torch and Triton'), 'installTorch');
const SERVER = mend('cloud-download', vscode.l10n.t('Install the Server Only'), 'install');
const PYTHON = mend('search', vscode.l10n.t('Choose a Python...'), 'chooseInterpreter');
const RESTART = mend('refresh', vscode.l10n.t('Restart the Server'), 'restart');
const OUTPUT = mend('output', vscode.l10n.t('Show the Output'), 'showOutput');

/** By state, what mends it soonest first. A state that is missing here needs no mending. */
export const MENDS: Partial<Record<Status['state'], Mend[]>> = {
  'not-installed': [WITH_TORCH, SERVER, PYTHON],
  'wrong-interpreter': [PYTHON, WITH_TORCH, SERVER],
  'stopped': [RESTART, OUTPUT, PYTHON],
  'untrusted': [mend('shield', vscode.l10n.t('Trust This Folder...'), 'trust')],
  'host-unreachable': [
    mend('refresh', vscode.l10n.t('Try Again'), 'restart'),
    mend('home', vscode.l10n.t('Run Kernels on This Machine'), 'runHere'),
    mend('add', vscode.l10n.t('Add a Host...'), 'addHost'),
    OUTPUT,
  ],
};

/** Say a sentence with what mends the state as buttons; a message that went away is reached again through the menu. */
export async function tell(state: Status['state'], message: string, more: string[] = []): Promise<string | undefined> {
  const mends = (MENDS[state] ?? []).slice(0, 3);
  const show = state === 'not-installed' ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
  const answer = await show(message, ...mends.map(({ title }) => title), ...more);
  const chosen = mends.find(({ title }) => title === answer);
  if (chosen) {
    await vscode.commands.executeCommand(chosen.command);
  }
  return chosen ? undefined : answer;
}
