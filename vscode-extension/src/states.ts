// What the server and the extension are doing, and what mends each state in which no kernel is profiled.
import * as vscode from 'vscode';

export interface Status {
  state:
    | 'idle' | 'profiling' | 'optimizing' | 'paused' | 'host-unreachable' | 'untrusted' // as the server says
    | 'starting' | 'not-installed' | 'wrong-interpreter' | 'stopped' // as the extension knows
    | 'no-kernel'; // of the file in front, while nothing else is to be said
  message: string;
  detail?: string;
  target?: string;
  reached?: string[];
  jobs?: Job[];
  plain?: string[];
}

/** What runs; `started` in seconds since the epoch. */
export interface Job {
  job: string;
  kind: string;
  title: string;
  paused?: boolean;
  started?: number;
  progress?: { budget: number; tried: number; best: string; unproved: string; tokens: number; doing: string } | null;
}

/** `button` is what a message has room for. */
export interface Mend {
  icon: string;
  title: string;
  button: string;
  command: string;
}

const mend = (icon: string, title: string, button: string, command: string): Mend =>
  ({ icon, title, button, command: `accelopt.${command}` });

const WITH_TORCH = mend('cloud-download', vscode.l10n.t('Install with torch and Triton'), vscode.l10n.t('With torch'), 'installTorch');
const SERVER = mend('cloud-download', vscode.l10n.t('Install the Server Only'), vscode.l10n.t('Server Only'), 'install');
const PYTHON = mend('search', vscode.l10n.t('Choose a Python...'), vscode.l10n.t('Python...'), 'chooseInterpreter');
const RESTART = mend('refresh', vscode.l10n.t('Restart the Server'), vscode.l10n.t('Restart'), 'restart');
const OUTPUT = mend('output', vscode.l10n.t('Show the Output'), vscode.l10n.t('Output'), 'showOutput');

/** By state, what mends it soonest first. A state that is missing here needs no mending. */
export const MENDS: Partial<Record<Status['state'], Mend[]>> = {
  'not-installed': [WITH_TORCH, SERVER, PYTHON],
  'wrong-interpreter': [PYTHON, WITH_TORCH, SERVER],
  'stopped': [RESTART, OUTPUT, PYTHON],
  'untrusted': [mend('shield', vscode.l10n.t('Trust This Folder...'), vscode.l10n.t('Trust...'), 'trust')],
  'host-unreachable': [
    mend('refresh', vscode.l10n.t('Try Again'), vscode.l10n.t('Try Again'), 'restart'),
    mend('home', vscode.l10n.t('Run Kernels on This Machine'), vscode.l10n.t('Run Here'), 'runHere'),
    mend('add', vscode.l10n.t('Add a Host...'), vscode.l10n.t('Add a Host...'), 'addHost'),
    OUTPUT,
  ],
  'no-kernel': [
    mend('beaker', vscode.l10n.t('Open an Example Kernel'), vscode.l10n.t('Open an Example'), 'openExample'),
    mend('question', vscode.l10n.t('How Kernels Are Recognised'), vscode.l10n.t('What Is a Kernel?'), 'showKernels'),
  ],
};

/** The status as it is for the file in front: a calm one says that this holds no kernel. */
export function inFront(status: Status): Status {
  const shown = vscode.window.activeTextEditor?.document.uri.toString();
  return status.state === 'idle' && shown && status.plain?.includes(shown)
    ? { ...status, state: 'no-kernel', message: vscode.l10n.t('No kernel in this file'), detail: NO_KERNEL }
    : status;
}

const NO_KERNEL = vscode.l10n.t('It has no function with @triton.jit or @nki.jit, so there is nothing to profile.');

/** Say a sentence with what mends the state as buttons; a message that went away is reached again through the menu. */
export async function tell(state: Status['state'], message: string, more: string[] = []): Promise<string | undefined> {
  const mends = (MENDS[state] ?? []).slice(0, 3);
  const show = ['not-installed', 'no-kernel'].includes(state) ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
  const answer = await show(message, ...mends.map(({ button }) => button), ...more);
  const chosen = mends.find(({ button }) => button === answer);
  if (chosen) {
    await vscode.commands.executeCommand(chosen.command);
  }
  return chosen ? undefined : answer;
}
