// The kernel that a command is about: the one at the cursor, or the one whose suggestion is looked at.
import * as vscode from 'vscode';
import { SCHEME, namedBy } from './candidate';
import type { Server } from './server';

export interface Place {
  uri: string;
  line: number;
}

/** The document and the 1-based line of the cursor, on either side of a suggestion's diff. */
export function placeOfCursor(): Place | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== 'python') {
    return undefined;
  }
  const shown = editor.document.uri;
  const uri = shown.scheme === SCHEME ? namedBy(shown).uri : shown.toString();
  return { uri, line: editor.selection.active.line + 1 };
}

/** Run a server command on the kernel at the cursor; where there is no Python file, say what to do. */
export async function onKernelAtCursor(server: Server, name: string, more: object = {}): Promise<void> {
  const place = placeOfCursor();
  if (place) {
    await server.execute(name, { ...place, ...more });
  } else {
    sayNoKernel();
  }
}

/** Say what to do where there is no kernel at the cursor. */
export function sayNoKernel(): void {
  const example = vscode.l10n.t('Open an Example');
  void vscode.window.showInformationMessage(vscode.l10n.t('Open a Python file and put the cursor into a kernel first.'), example)
    .then((answer) => answer === example && vscode.commands.executeCommand('accelopt.openExample'));
}
